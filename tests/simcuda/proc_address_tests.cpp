#include <dlfcn.h>

#include <fstream>
#include <sstream>
#include <string>

#include "session.hpp"

namespace {

void* exported(const char* name) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  return dlsym(library, name);
}

struct Answer {
  CUresult result;
  void* pointer;
  CUdriverProcAddressQueryResult status;
};

Answer ask(const char* name, int version, cuuint64_t flags = 0) {
  Answer answer{CUDA_SUCCESS, &answer, CU_GET_PROC_ADDRESS_SUCCESS};
  answer.result = cuGetProcAddress_v2(name, &answer.pointer, version, flags, &answer.status);
  return answer;
}

// One "PFN_cuName_v12000_ptsz" of cudaTypedefs.h.
struct Typed {
  std::string name;
  int version = 0;
  bool per_thread = false;
};

std::vector<Typed> typed_in(const std::string& header) {
  const std::string mark = "*PFN_";
  std::vector<Typed> found;
  for (auto at = header.find(mark); at != std::string::npos; at = header.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const std::string word = header.substr(begin, header.find(')', begin) - begin);
    const auto version = word.rfind("_v");
    if (version == std::string::npos) continue;
    found.push_back({word.substr(0, version), std::stoi(word.substr(version + 2)),
                     word.ends_with("_ptsz") || word.ends_with("_ptds")});
  }
  return found;
}

}  // namespace

TEST_CASE("The version decides which form of an entry point is handed out", "[proc_address]") {
  CHECK(ask("cuCtxCreate", 3020).pointer == exported("cuCtxCreate_v2"));
  CHECK(ask("cuCtxCreate", 11030).pointer == exported("cuCtxCreate_v2"));
  CHECK(ask("cuCtxCreate", 11040).pointer == exported("cuCtxCreate_v3"));
  CHECK(ask("cuCtxCreate", 13000).pointer == exported("cuCtxCreate_v4"));
  CHECK(ask("cuStreamBeginCapture", 10000).pointer == exported("cuStreamBeginCapture"));
  CHECK(ask("cuStreamBeginCapture", 10010).pointer == exported("cuStreamBeginCapture_v2"));
  CHECK(ask("cuCtxGetDevice", 12080).pointer == exported("cuCtxGetDevice"));
  CHECK(ask("cuCtxGetDevice", 13000).pointer == exported("cuCtxGetDevice_v2"));
  CHECK(ask("cuGetProcAddress", 11030).pointer == exported("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 12000).pointer == exported("cuGetProcAddress_v2"));
}

TEST_CASE("Per-thread flags give the per-thread form where there is one", "[proc_address]") {
  constexpr cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  constexpr cuuint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  CHECK(ask("cuLaunchKernel", 7000, per_thread).pointer == exported("cuLaunchKernel_ptsz"));
  CHECK(ask("cuLaunchKernel", 7000, legacy).pointer == exported("cuLaunchKernel"));
  CHECK(ask("cuLaunchKernel", 4000).pointer == exported("cuLaunchKernel"));
  // Older than its per-thread form: the legacy one.
  CHECK(ask("cuLaunchKernel", 4000, per_thread).pointer == exported("cuLaunchKernel"));
  CHECK(ask("cuMemcpyHtoD", 13000, per_thread).pointer == exported("cuMemcpyHtoD_v2_ptds"));
  CHECK(ask("cuMemAlloc", 13000, per_thread).pointer == exported("cuMemAlloc_v2"));
  CHECK(ask("cuStreamGetCaptureInfo", 11030, per_thread).pointer ==
        exported("cuStreamGetCaptureInfo_v2_ptsz"));
}

TEST_CASE("What is not there is said in the status", "[proc_address]") {
  const Answer unknown = ask("cuNoSuchThing", 13000);
  CHECK(unknown.result == CUDA_SUCCESS);
  CHECK(unknown.pointer == nullptr);
  CHECK(unknown.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(ask("", 0).status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  const Answer young = ask("cuLaunchKernelEx", 11050);
  CHECK(young.pointer == nullptr);
  CHECK(young.status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(ask("cuInit", 13010).result == CUDA_ERROR_INVALID_VALUE);
  CHECK(ask("cuInit", 13000, 8).result == CUDA_ERROR_INVALID_VALUE);
  void* pointer = nullptr;
  CHECK(cuGetProcAddress_v2(nullptr, &pointer, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Every version in cudaTypedefs.h of an exported name is answered by an exported symbol",
          "[proc_address]") {
  std::ifstream file(std::string(SIMCUDA_TEST_CUDA_INCLUDE) + "/cudaTypedefs.h");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  int answered = 0;
  for (const auto& [name, version, per_thread] : typed_in(text.str())) {
    const Answer answer =
        ask(name.c_str(), version, per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : 0);
    if (answer.pointer == nullptr) continue;  // not simulated
    ++answered;
    Dl_info info{};
    REQUIRE(dladdr(answer.pointer, &info) != 0);
    INFO(name << " " << version << " gave " << (info.dli_sname ? info.dli_sname : "nothing"));
    REQUIRE(info.dli_sname != nullptr);
    const std::string symbol = info.dli_sname;
    CHECK(symbol.rfind(name, 0) == 0);
    CHECK((symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")) == per_thread);
  }
  CHECK(answered > 250);
}

TEST_CASE("No private table is imitated", "[proc_address]") {
  const void* table = &table;
  const CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_FOUND);
  CHECK(table == nullptr);
}

TEST_CASE("Nothing works before cuInit but the version", "[proc_address]") {
  // Runs first in its own process: see CMakeLists.txt.
  int version = 0;
  SUCCEEDS(cuDriverGetVersion(&version));
  CHECK(version == 13000);
  if (simcuda_host_time() > 0) return;  // another test of this process went before
  int count = 0;
  CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
}

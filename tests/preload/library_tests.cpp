// What the library is made of, as binutils see it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "catch.hpp"
#include "process.hpp"

#define __CUDA_API_VERSION_INTERNAL
#include "preload/contextune_abi.h"

using namespace contextune::test;

namespace {

const std::vector<std::string> driver_entries = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};
const std::vector<std::string> guarded_functions = {
#define CONTEXTUNE_GUARDED(name) #name,
#include "preload/registry/guarded.def"
#undef CONTEXTUNE_GUARDED
};
const std::vector<std::string> free_functions = {
#define CONTEXTUNE_FREE(name) #name,
#include "preload/registry/free.def"
#undef CONTEXTUNE_FREE
};
const std::vector<std::string> cupti_entries = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/cupti.def"
#undef CONTEXTUNE_ENTRY
};
const std::vector<std::string> nccl_entries = {
#define CONTEXTUNE_NCCL(name, ...) #name,
#define CONTEXTUNE_NCCL_LISTED(...)
#include "preload/registry/nccl.def"
#undef CONTEXTUNE_NCCL
#undef CONTEXTUNE_NCCL_LISTED
};

std::string output_of(const std::vector<std::string>& command) {
  const Outcome outcome = run(command);
  INFO(outcome.err);
  REQUIRE(outcome.exited_with(0));
  return outcome.out;
}

std::set<std::string> exported_symbols() {
  std::set<std::string> symbols;
  for (const std::string& line :
       lines_of(output_of({"nm", "-D", "--defined-only", CONTEXTUNE_PRELOAD_ALONE}))) {
    std::istringstream fields(line);
    std::string address;
    std::string kind;
    std::string name;
    fields >> address >> kind >> name;
    if (kind != "A") symbols.insert(name);  // the names of the versions themselves
  }
  return symbols;
}

/// The names in libcuda of what this machine's headers declare: with their versions, and with the
/// forms for a default stream per thread.
std::set<std::string> declared_functions() {
  const std::regex declaration(R"(CUDAAPI\s+(cu[A-Z]\w*)\s*\()");
  const std::regex renamed(
      R"(#\s*define\s+cu[A-Z]\w*\s+(__CUDA_API_PT(\w\w)\()?(cu[A-Z]\w*)\)?\s*)");
  std::set<std::string> names;
  for (const char* header : {"cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"}) {
    std::ifstream file(std::string(CONTEXTUNE_CUDA_INCLUDE_DIR "/") + header);
    for (std::string line; std::getline(file, line);) {
      if (line.find("cu") == std::string::npos) continue;
      std::smatch match;
      if (std::regex_search(line, match, declaration)) names.insert(match[1]);
      if (!std::regex_match(line, match, renamed)) continue;
      names.insert(match[3]);
      if (match[2] == "DS") names.insert(match[3].str() + "_ptds");
      if (match[2] == "SZ") names.insert(match[3].str() + "_ptsz");
    }
  }
  names.erase("cuGetProcAddress_v2_ptsz");  // a function of the header itself
  names.erase("cuWGLGetDevice");            // of another system
  return names;
}

}  // namespace

TEST_CASE("The frontend exports what the registry lists, hidden from lookups, and nothing else",
          "[library]") {
  std::set<std::string> expected = {
    "dlsym@@GLIBC_2.34",
    "__libc_start_main@GLIBC_2.34",
    "InitializeInjectionNvtx2",
    "InitializeInjectionNvtxExtension",
    "ncclTunerPlugin_v3",
    "ncclTunerPlugin_v4",
    "ncclTunerPlugin_v5",
    "ncclTunerPlugin_v6",
#if defined(__x86_64__)
    "dlsym@GLIBC_2.2.5",
    "exit@GLIBC_2.2.5",
    "__libc_start_main@GLIBC_2.2.5",
#else
    "dlsym@GLIBC_2.17",
    "exit@GLIBC_2.17",
    "__libc_start_main@GLIBC_2.17",
#endif
  };
  for (const std::string& name : driver_entries) expected.insert(name + "@CONTEXTUNE_1");
  for (const std::string& name : guarded_functions) expected.insert(name + "@CONTEXTUNE_1");
  for (const std::string& name : nccl_entries) expected.insert(name + "@CONTEXTUNE_1");
  for (const std::string& name : cupti_entries) {
    expected.insert(name + "@CONTEXTUNE_1");
    expected.insert(name + "@libcupti.so.12");
    expected.insert(name + "@libcupti.so.13");
  }
  CHECK(exported_symbols() == expected);
}

TEST_CASE("Every function that this machine's headers of the driver declare is listed once",
          "[library]") {
  std::map<std::string, int> listed;
  for (const auto* list : {&driver_entries, &guarded_functions, &free_functions}) {
    for (const std::string& name : *list) ++listed[name];
  }
  const std::set<std::string> declared = declared_functions();
  CHECK(declared.size() > 400);
  for (const std::string& name : declared) {
    INFO(name);
    CHECK(listed.contains(name));
  }
  for (const auto& [name, times] : listed) {
    INFO(name);
    CHECK(times == 1);
  }
}

TEST_CASE("The hidden version is the library's first, which unversioned references accept",
          "[library]") {
  const std::string versions = output_of({"readelf", "-V", "-W", CONTEXTUNE_PRELOAD_ALONE});
  CHECK(std::regex_search(versions, std::regex("Index: 2 +Cnt: 1 +Name: CONTEXTUNE_1")));
  CHECK(versions.find("2h(CONTEXTUNE_1)") != std::string::npos);
}

TEST_CASE("The frontend needs libc and nothing else", "[library]") {
  const std::string dynamic = output_of({"readelf", "-d", "-W", CONTEXTUNE_PRELOAD_ALONE});
  std::vector<std::string> needed;
  const std::regex pattern("NEEDED.*\\[(.*)\\]");
  for (const std::string& line : lines_of(dynamic)) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) needed.push_back(match[1]);
  }
  CHECK(needed == std::vector<std::string>{"libc.so.6"});
  CHECK(dynamic.find("TEXTREL") == std::string::npos);
}

TEST_CASE("The frontend has no constructor and no destructor", "[library]") {
  const std::string sections = output_of({"readelf", "-S", "-W", CONTEXTUNE_PRELOAD_ALONE});
  for (const char* name :
       {".init_array", ".fini_array", ".ctors", ".dtors", ".init ", ".fini ", ".preinit_array"}) {
    INFO(name);
    CHECK(sections.find(name) == std::string::npos);
  }
  const std::string dynamic = output_of({"readelf", "-d", "-W", CONTEXTUNE_PRELOAD_ALONE});
  CHECK(dynamic.find("(INIT") == std::string::npos);
  CHECK(dynamic.find("(FINI") == std::string::npos);
}

TEST_CASE("The frontend asks for no libc newer than 2.34", "[library]") {
  const std::string versions = output_of({"readelf", "-V", "-W", CONTEXTUNE_PRELOAD_ALONE});
  const std::regex pattern("GLIBC_2\\.([0-9]+)");
  int newest = 0;
  for (std::sregex_iterator it(versions.begin(), versions.end(), pattern), end; it != end; ++it) {
    newest = std::max(newest, std::stoi((*it)[1]));
  }
  CHECK(newest > 0);
  CHECK(newest <= 34);
}

TEST_CASE("The frontend's thread-local storage is small and needs no destructor", "[library]") {
  const std::string headers = output_of({"readelf", "-l", "-W", CONTEXTUNE_PRELOAD_ALONE});
  std::smatch match;
  REQUIRE(std::regex_search(
      headers, match,
      std::regex("TLS +0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x([0-9a-f]+)")));
  // A library that NVTX opens late gets its place from what libc keeps spare, about 1.6 KB.
  CHECK(std::stoul(match[1], nullptr, 16) <= 256);
  CHECK(output_of({"nm", "-D", CONTEXTUNE_PRELOAD_ALONE}).find("__cxa_thread_atexit") ==
        std::string::npos);
}

#if defined(__x86_64__)
TEST_CASE("The frontend keeps the shadow stack and indirect branch tracking", "[library]") {
  const std::string notes = output_of({"readelf", "-n", "-W", CONTEXTUNE_PRELOAD_ALONE});
  CHECK(notes.find("IBT") != std::string::npos);
  CHECK(notes.find("SHSTK") != std::string::npos);
}
#endif

TEST_CASE("dlsym and the guards are written for the other processor too", "[library]") {
  if (!installed("clang")) {
    WARN("skipped: clang, which assembles for every processor, is not installed");
    return;
  }
  for (const char* target : {"--target=x86_64-linux-gnu", "--target=aarch64-linux-gnu"}) {
    for (const char* source : {"/preload/dlsym.S", "/preload/guards.S"}) {
      const Outcome outcome =
          run({"clang", target, "-c", std::string(CONTEXTUNE_SOURCE) + source, "-o", "/dev/null"});
      INFO(source << " " << target << ": " << outcome.err);
      CHECK(outcome.exited_with(0));
    }
  }
}

TEST_CASE("No source of the frontend calls dlsym by name", "[library]") {
  const std::regex call("(^|[^_[:alnum:]])dlsym *\\(");
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(CONTEXTUNE_SOURCE "/preload")) {
    if (entry.path().extension() != ".c" && entry.path().extension() != ".h") continue;
    ++files;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      INFO(entry.path() << ":" << number << ": " << line);
      CHECK_FALSE(std::regex_search(line, call));
    }
  }
  CHECK(files > 10);
}

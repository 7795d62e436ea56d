// A tuner plugin that says what it is asked. TEST_TUNER names what it chooses, such as
// "1 0 4": the numbers of algorithm and protocol, and channels; TEST_TUNER_RANK limits that to
// the process with this TEST_RANK; TEST_TUNER_QUIET lets it say nothing. Compiled once for each
// version of the interface.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuner_abi.hpp>

namespace {

using namespace simnccl;

const bool is_quiet = std::getenv("TEST_TUNER_QUIET") != nullptr;

template <typename... Arguments>
void say(const char* format, Arguments... arguments) {
  if (!is_quiet) std::printf(format, arguments...);
}

struct Presence {
  Presence() { say("loaded\n"); }
  ~Presence() { say("unloaded\n"); }
};
const Presence presence;

void choose(float** handed, int* channels) {
  const char* const choice = std::getenv("TEST_TUNER");
  const char* const only = std::getenv("TEST_TUNER_RANK");
  if (choice == nullptr) return;
  if (only != nullptr && std::strcmp(only, std::getenv("TEST_RANK")) != 0) return;
  int algorithm = 0, protocol = 0;
  if (std::sscanf(choice, "%d %d %d", &algorithm, &protocol, channels) != 3) std::abort();
  auto* const table = reinterpret_cast<CostTable*>(handed);
  if ((*table)[algorithm][protocol] >= 0) (*table)[algorithm][protocol] = 0;
}

ncclResult_t ask(int function, std::size_t bytes, int pipelined, float** handed, int algorithms,
                 int protocols, int* channels) {
  const auto* const table = reinterpret_cast<const CostTable*>(handed);
  say("asked function=%d bytes=%zu ops=%d table=%dx%d channels=%d legal=", function, bytes,
      pipelined, algorithms, protocols, *channels);
  for (int i = 0; i < algorithms * protocols; ++i)
    say("%d", (*table)[i / protocols][i % protocols] >= 0 ? 1 : 0);
  say("\n");
  choose(handed, channels);
  return ncclSuccess;
}

#if TEST_TUNER_VERSION >= 5
ncclResult_t init(void** context, std::uint64_t comm, std::size_t ranks, std::size_t nodes,
                  TunerLog log, NvlDomainInfo* domains, TunerConstants* constants) {
  say("init comm=%llx ranks=%zu nodes=%zu given=%d\n", static_cast<unsigned long long>(comm), ranks,
      nodes, log != nullptr && domains->domains == 1 && constants != nullptr);
  *context = stdout;
  return std::getenv("TEST_TUNER_INIT_FAILS") == nullptr ? ncclSuccess : ncclInternalError;
}
#else
ncclResult_t init(std::size_t ranks, std::size_t nodes, TunerLog, void** context) {
  say("init ranks=%zu nodes=%zu\n", ranks, nodes);
  *context = stdout;
  return ncclSuccess;
}
#endif

#if TEST_TUNER_VERSION >= 4
ncclResult_t info(void* context, int function, std::size_t bytes, int pipelined, float** table,
                  int algorithms, int protocols, int, int* channels) {
#else
ncclResult_t info(void* context, int function, std::size_t bytes, int pipelined, float** table,
                  int algorithms, int protocols, int* channels) {
#endif
  if (context != stdout) return ncclInternalError;
  return ask(function, bytes, pipelined, table, algorithms, protocols, channels);
}

ncclResult_t finalize(void* context) {
  say("finalize %d\n", context == stdout);
  std::fflush(stdout);
  return ncclSuccess;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
#if TEST_TUNER_VERSION == 6
TunerV6 ncclTunerPlugin_v6{{"test", &init, &info, &finalize}, nullptr};
#elif TEST_TUNER_VERSION == 5
TunerV5 ncclTunerPlugin_v5{"test", &init, &info, &finalize};
#elif TEST_TUNER_VERSION == 4
TunerV4 ncclTunerPlugin_v4{"test", &init, &info, &finalize};
#else
TunerV3 ncclTunerPlugin_v3{"test", &init, &info, &finalize};
#endif
}
#pragma GCC visibility pop

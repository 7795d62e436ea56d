#include "tuner.hpp"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "error.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

// The plugin of this process. At most one of the pointers is set; a version 6 is a version 5 here.
struct Plugin {
  const TunerV5* v5 = nullptr;
  const TunerV4* v4 = nullptr;
  const TunerV3* v3 = nullptr;

  Plugin() {
    const std::string& wanted = Settings::instance().tuner;
    if (wanted == "none") return;
    // A name without a path is completed, as NCCL does.
    const char* const file = wanted.empty() ? "libnccl-tuner.so" : wanted.c_str();
    void* library = wanted == "STATIC_PLUGIN" ? dlopen(nullptr, RTLD_NOW | RTLD_LOCAL)
                                              : dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr && !wanted.empty() && wanted.find('/') == std::string::npos)
      library = dlopen(("libnccl-tuner-" + wanted + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    v5 = static_cast<const TunerV6*>(dlsym(library, "ncclTunerPlugin_v6"));
    if (v5 == nullptr) v5 = static_cast<const TunerV5*>(dlsym(library, "ncclTunerPlugin_v5"));
    if (v5 != nullptr) return;
    v4 = static_cast<const TunerV4*>(dlsym(library, "ncclTunerPlugin_v4"));
    if (v4 != nullptr) return;
    v3 = static_cast<const TunerV3*>(dlsym(library, "ncclTunerPlugin_v3"));
  }

  static const Plugin& instance() {
    static const auto* const plugin = new Plugin;
    return *plugin;
  }
};

// What NCCL prints with NCCL_DEBUG=WARN (2), INFO (3) and TRACE (5).
void log(int level, unsigned long, const char*, int, const char* format, ...) {
  const char* const wanted = std::getenv("NCCL_DEBUG");
  int most = 0;
  if (wanted != nullptr && std::strcmp(wanted, "WARN") == 0) most = 2;
  if (wanted != nullptr && std::strcmp(wanted, "INFO") == 0) most = 3;
  if (wanted != nullptr && std::strcmp(wanted, "TRACE") == 0) most = 5;
  if (level > most) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "simnccl: tuner: %s\n", line);
}

void check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) throw Error{result, what};
}

void fill(CostTable& table, int rank, const Workload& work) {
  const Settings& settings = Settings::instance();
  for (int algorithm = 0; algorithm < algorithm_count; ++algorithm)
    for (int protocol = 0; protocol < protocol_count; ++protocol) {
      const bool allowed = settings.algorithms[static_cast<std::size_t>(algorithm)] &&
                           settings.protocols[static_cast<std::size_t>(protocol)];
      const Choice choice{algorithm, protocol, 0, work.bytes};
      const bool legal = allowed && is_legal(work, algorithm, protocol) &&
                         settings.faults.find(Fault::Kind::illegal, rank, choice) == nullptr;
      table[algorithm][protocol] = legal ? estimate(work, algorithm, protocol) : illegal_cost;
    }
}

}  // namespace

Tuner::Tuner(std::uint64_t communicator, int ranks) {
  const Plugin& plugin = Plugin::instance();
  const auto count = static_cast<std::size_t>(ranks);
  constexpr const char* failure = "the tuner plugin's init failed";
  if (plugin.v5 != nullptr) {
    NvlDomainInfo domains{1, ranks, ranks};
    TunerConstants constants{};
    check(plugin.v5->init(&context_, communicator, count, 1, &log, &domains, &constants), failure);
  } else if (plugin.v4 != nullptr) {
    check(plugin.v4->init(count, 1, &log, &context_), failure);
  } else if (plugin.v3 != nullptr) {
    check(plugin.v3->init(count, 1, &log, &context_), failure);
  }
}

Tuner::~Tuner() {
  const Plugin& plugin = Plugin::instance();
  if (plugin.v5 != nullptr)
    plugin.v5->finalize(context_);
  else if (plugin.v4 != nullptr)
    plugin.v4->destroy(context_);
  else if (plugin.v3 != nullptr)
    plugin.v3->destroy(context_);
}

Decision Tuner::decide(int rank, const Workload& work, int aggregated) const {
  CostTable table;
  fill(table, rank, work);
  int channels = 0;
  const Plugin& plugin = Plugin::instance();
  constexpr const char* failure = "the tuner plugin's getCollInfo failed";
  auto* const handed = reinterpret_cast<float**>(table);
  if (plugin.v5 != nullptr)
    check(plugin.v5->get_coll_info(context_, work.function, work.bytes, aggregated, handed,
                                   algorithm_count, protocol_count, 0, &channels),
          failure);
  else if (plugin.v4 != nullptr)
    check(plugin.v4->get_coll_info(context_, work.function, work.bytes, aggregated, handed,
                                   algorithm_count, protocol_count, 0, &channels),
          failure);
  else if (plugin.v3 != nullptr)
    check(plugin.v3->get_coll_info(context_, work.function, work.bytes, aggregated, handed,
                                   algorithm_count, protocol_count, &channels),
          failure);
  Decision best{-1, -1, channels, 0};
  for (int algorithm = 0; algorithm < algorithm_count; ++algorithm)
    for (int protocol = 0; protocol < protocol_count; ++protocol) {
      const float cost = table[algorithm][protocol];
      if (cost < 0 || (best.algorithm >= 0 && cost >= best.microseconds)) continue;
      best.algorithm = algorithm;
      best.protocol = protocol;
      best.microseconds = cost;
    }
  require(best.algorithm >= 0, ncclInvalidUsage,
          "no algorithm is left: NCCL_ALGO, NCCL_PROTO or the tuner forbid all");
  // A plugin that sets an illegal cell to 0 gets what it asked for, on a real library a crash.
  require(is_legal(work, best.algorithm, best.protocol), ncclInternalError,
          "the tuner plugin chose an algorithm that does not exist here");
  return best;
}

}  // namespace simnccl

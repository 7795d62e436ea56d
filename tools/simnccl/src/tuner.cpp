#include "tuner.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "error.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

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
  const TunerFunctions& plugin = plugin_.functions();
  const auto count = static_cast<std::size_t>(ranks);
  const auto hosts = static_cast<std::size_t>(Settings::instance().hosts);
  constexpr const char* failure = "the tuner plugin's init failed";
  if (plugin.v5 != nullptr) {
    NvlDomainInfo domains{1, ranks, ranks};
    TunerConstants constants{};
    check(plugin.v5->init(&context_, communicator, count, hosts, &log, &domains, &constants),
          failure);
  } else if (plugin.v4 != nullptr) {
    check(plugin.v4->init(count, hosts, &log, &context_), failure);
  } else if (plugin.v3 != nullptr) {
    check(plugin.v3->init(count, hosts, &log, &context_), failure);
  }
}

Tuner::~Tuner() {
  const TunerFunctions& plugin = plugin_.functions();
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
  const TunerFunctions& plugin = plugin_.functions();
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

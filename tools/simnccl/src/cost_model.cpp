#include "cost_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "settings.hpp"

namespace simnccl {

namespace {

// Of one H200 host with eight GPUs on NVSwitch, rounded. Seconds, and bytes a second.
constexpr std::array<double, protocol_count> base_latency{4.5e-6, 6.0e-6, 8.0e-6};
constexpr std::array<double, protocol_count> hop_latency{0.6e-6, 1.2e-6, 2.2e-6};
constexpr std::array<double, protocol_count> efficiency{0.45, 0.92, 1.0};
constexpr double link_bandwidth = 370e9;
constexpr double channel_bandwidth = 24e9;
constexpr double channel_latency = 0.06e-6;
constexpr double nvls_latency = 13e-6;
constexpr double nvls_bandwidth = 460e9;
constexpr double nvls_channel_bandwidth = 34e9;
constexpr int most_nvls_channels = 16;

double hops(const Workload& work, int algorithm) {
  const double n = work.ranks;
  if (algorithm == nvls) return 0;
  if (algorithm == tree) return 2 * std::ceil(std::log2(n));
  return work.function == all_reduce ? 2 * (n - 1) : n - 1;
}

// Bytes that cross the busiest link of a rank.
double traffic(const Workload& work, int algorithm) {
  const double n = work.ranks;
  const auto bytes = static_cast<double>(work.bytes);
  const double share = (n - 1) / n;
  if (algorithm == tree) return 1.9 * bytes;
  if (algorithm == nvls) return bytes * (work.function == all_reduce ? 1.0 + 1.0 / n : share);
  switch (work.function) {
    case all_reduce:
      return 2 * share * bytes;
    case all_gather:
    case reduce_scatter:
      return share * bytes;
    default:
      return bytes;
  }
}

double latency(const Workload& work, int algorithm, int protocol) {
  const auto p = static_cast<std::size_t>(protocol);
  return algorithm == nvls ? nvls_latency
                           : base_latency.at(p) + hops(work, algorithm) * hop_latency.at(p);
}

double bandwidth(int algorithm, int protocol, double channels) {
  if (algorithm == nvls) return std::min(nvls_bandwidth, channels * nvls_channel_bandwidth);
  return std::min(link_bandwidth, channels * channel_bandwidth) *
         efficiency.at(static_cast<std::size_t>(protocol));
}

// splitmix64, in (0, 1].
double uniform(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  return (static_cast<double>(z >> 11) + 1.0) * 0x1.0p-53;
}

}  // namespace

int channels_used(const Workload& work, int algorithm, int protocol, int wanted, int available) {
  const int most = algorithm == nvls ? std::min(available, most_nvls_channels) : available;
  const int asked = wanted <= 0 ? most : std::min(wanted, most);
  std::size_t moved = work.bytes;
  if (work.function == all_reduce) moved *= 2;
  if (work.function == all_gather || work.function == reduce_scatter)
    moved *= static_cast<std::size_t>(work.ranks);
  if (protocol == ll) moved *= 4;
  constexpr std::size_t piece = 16 * 1024;
  const std::size_t pieces = std::max<std::size_t>(1, (moved + piece - 1) / piece);
  return static_cast<int>(std::min(static_cast<std::size_t>(asked), pieces));
}

bool is_legal(const Workload& work, int algorithm, int protocol) {
  const bool rooted = work.function == broadcast || work.function == reduce;
  switch (algorithm) {
    case ring:
      return true;
    case tree:
      return work.function == all_reduce;
    case nvls:
      return !rooted && protocol == simple && work.ranks > 2;
    default:  // between hosts only
      return false;
  }
}

float estimate(const Workload& work, int algorithm, int protocol) {
  const double believed =
      algorithm == nvls ? 1.25 * nvls_bandwidth : bandwidth(algorithm, protocol, 16);
  const double seconds = latency(work, algorithm, protocol) * (algorithm == nvls ? 0.8 : 1.0) +
                         traffic(work, algorithm) / believed;
  return static_cast<float>(seconds * 1e6);
}

double seconds_of(const Workload& work, int algorithm, int protocol, int channels) {
  return latency(work, algorithm, protocol) + channels * channel_latency +
         traffic(work, algorithm) / bandwidth(algorithm, protocol, channels);
}

double seconds_of_message(std::size_t bytes) {
  return base_latency[simple] + hop_latency[simple] + static_cast<double>(bytes) / link_bandwidth;
}

double noise_factor(std::uint64_t stream, std::uint64_t sequence) {
  const Settings& settings = Settings::instance();
  if (settings.noise <= 0) return 1.0;
  std::uint64_t state = settings.seed * 0xD1B54A32D192ED03ULL ^ (stream * 0x9E6C63D0876A9A47ULL) ^
                        (sequence * 0x2545F4914F6CDD1DULL);
  const double radius = std::sqrt(-2.0 * std::log(uniform(state)));
  return std::exp(settings.noise * radius * std::cos(2.0 * std::numbers::pi * uniform(state)));
}

}  // namespace simnccl

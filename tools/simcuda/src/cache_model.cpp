#include "cache_model.hpp"

#include <algorithm>
#include <iterator>

namespace simcuda {

namespace {
// Past this many stretches the cold ones are swept out.
constexpr std::size_t sweep_threshold = 512;
// A launch with another layout finds half of its lines in the near half of the chip by chance.
constexpr double near_by_chance = 0.5;
}  // namespace

CacheModel::Hits CacheModel::touch(const Access& access) {
  Hits hits;
  if (access.bytes == 0) return hits;
  const std::uintptr_t end = access.begin + access.bytes;
  cut(access.begin);
  cut(end);
  const auto first = stretches_.lower_bound(access.begin);
  auto last = first;
  for (; last != stretches_.end() && last->first < end; ++last) {
    const auto bytes = static_cast<double>(last->second.end - last->first);
    // What came after a stretch pushed it out from its beginning on.
    const double pushed =
        std::max(0.0, taken_in_ - last->second.stamp + bytes - static_cast<double>(capacity_));
    const double warm = std::max(0.0, bytes - pushed) * access.pressure;
    const double near_share = last->second.layout == access.layout ? 1.0 : near_by_chance;
    hits.near_bytes += warm * near_share;
    hits.far_bytes += warm * (1.0 - near_share);
  }
  hits.miss_bytes =
      std::max(0.0, static_cast<double>(access.bytes) - hits.near_bytes - hits.far_bytes);
  stretches_.erase(first, last);
  if (access.keep) {
    taken_in_ += hits.miss_bytes;
    stretches_.emplace(access.begin, Stretch{end, taken_in_, access.layout});
    if (stretches_.size() > sweep_threshold) forget_cold();
  }
  return hits;
}

void CacheModel::forget(std::uintptr_t begin, std::size_t bytes) {
  cut(begin);
  cut(begin + bytes);
  stretches_.erase(stretches_.lower_bound(begin), stretches_.lower_bound(begin + bytes));
}

void CacheModel::cut(std::uintptr_t at) {
  auto after = stretches_.upper_bound(at);
  if (after == stretches_.begin()) return;
  const auto holder = std::prev(after);
  if (holder->first >= at || holder->second.end <= at) return;
  const Stretch tail = holder->second;
  holder->second.end = at;
  holder->second.stamp -= static_cast<double>(tail.end - at);
  stretches_.emplace_hint(after, at, tail);
}

void CacheModel::forget_cold() {
  std::erase_if(stretches_, [this](const auto& entry) {
    return taken_in_ - entry.second.stamp >= static_cast<double>(capacity_);
  });
}

}  // namespace simcuda

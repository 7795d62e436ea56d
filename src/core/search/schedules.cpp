#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/search/schedule.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

std::uint64_t passes_per_config(const ScheduleShape& shape) {
  return static_cast<std::uint64_t>(shape.n_warmup) + static_cast<std::uint64_t>(shape.n_repeat);
}

Step run(std::uint64_t config, std::uint64_t round, const ScheduleShape& shape) {
  return {Step::Kind::Run, static_cast<std::uint32_t>(config),
          static_cast<int>(round) - shape.n_warmup};
}

std::vector<std::uint32_t> included(std::span<const Trial> trials) {
  std::vector<std::uint32_t> configs;
  for (std::uint32_t config = 0; config < trials.size(); ++config)
    if (!trials[config].excluded) configs.push_back(config);
  return configs;
}

/// Config after config, as the ancestor does.
class TableSchedule final : public Schedule {
 public:
  [[nodiscard]] Step step(std::uint64_t p, const ScheduleShape& shape,
                          std::span<const Trial> trials, bool) const override {
    const std::uint64_t each = passes_per_config(shape);
    std::uint64_t place = p / each;
    for (std::uint32_t config = 0; config < trials.size(); ++config)
      if (!trials[config].excluded && place-- == 0) return run(config, p % each, shape);
    return {};
  }
};

/// Every config once, then every config again: slow drift of the clock hits all alike.
class InterleavedSchedule final : public Schedule {
 public:
  [[nodiscard]] Step step(std::uint64_t p, const ScheduleShape& shape,
                          std::span<const Trial> trials, bool) const override {
    const std::vector<std::uint32_t> configs = included(trials);
    if (p >= passes_per_config(shape) * configs.size()) return {};
    return run(configs[p % configs.size()], p / configs.size(), shape);
  }
};

/// Round-robin over the configs that are not clearly beaten yet. Looks back once a round.
class RacingSchedule final : public Schedule {
 public:
  [[nodiscard]] Step step(std::uint64_t p, const ScheduleShape& shape,
                          std::span<const Trial> trials, bool settled) const override {
    std::vector<std::uint32_t> alive = included(trials);
    for (std::uint64_t round = 0; round < passes_per_config(shape); ++round) {
      if (p < alive.size()) return run(alive[p], round, shape);
      p -= alive.size();
      const int counted = static_cast<int>(round) + 1 - shape.n_warmup;
      if (counted < 1) continue;
      // A step of the next round needs what this one found.
      if (p == 0 && !settled) return {Step::Kind::Wait, 0, 0};
      drop_beaten(alive, trials, static_cast<std::size_t>(counted));
    }
    return {};
  }

 private:
  /// Looks only at what the first `counted` rounds gave, so that a later call sees the same past.
  /// The default always stays: every verdict is against it.
  static void drop_beaten(std::vector<std::uint32_t>& alive, std::span<const Trial> trials,
                          std::size_t counted) {
    std::vector<std::vector<double>> seen(trials.size());
    PooledNoise noise;
    for (const std::uint32_t config : alive) {
      const auto& samples = trials[config].samples;
      for (std::size_t i = 0; i < std::min(counted, samples.size()); ++i)
        if (!std::isnan(samples[i])) seen[config].push_back(samples[i]);
      noise.add(seen[config]);
    }
    const auto reach = [&](std::uint32_t config) {
      return doubt * noise.relative() / std::sqrt(static_cast<double>(seen[config].size()));
    };
    double best = std::numeric_limits<double>::infinity();
    // Single samples tell no noise, so nothing is clear yet.
    if (noise.degrees() > 0) {
      for (const std::uint32_t config : alive)
        if (!seen[config].empty())
          best = std::min(best, median(seen[config]) * (1 + reach(config)));
    }
    std::erase_if(alive, [&](std::uint32_t config) {
      if (config == 0) return false;
      const Trial& trial = trials[config];
      if (trial.given_up() && trial.given_up_at < static_cast<int>(counted)) return true;
      return !seen[config].empty() && median(seen[config]) * (1 - reach(config)) > best;
    });
  }

  /// Standard errors on either side of a median that count as doubt.
  static constexpr double doubt = 2.5;
};

}  // namespace

const Schedule& schedule_of(ScheduleKind kind) {
  // Never destroyed: for other ranks, one may be asked while this process ends.
  static const Schedule& table = *new TableSchedule;
  static const Schedule& interleaved = *new InterleavedSchedule;
  static const Schedule& racing = *new RacingSchedule;
  switch (kind) {
    case ScheduleKind::Interleaved:
      return interleaved;
    case ScheduleKind::Racing:
      return racing;
    case ScheduleKind::Table:
      break;
  }
  return table;
}

}  // namespace contextune

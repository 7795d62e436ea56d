#include "intercept/process_ranks.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include <contextune/version.hpp>

#include "core/batch_planner.hpp"
#include "core/scoped_tuning.hpp"
#include "core/shared_tuning.hpp"
#include "core/stable_hash.hpp"
#include "core/tuning.hpp"
#include "rank/make_coordinator.hpp"

namespace contextune::intercept {
namespace {

/// Kinds of questions that ranks ask one another.
constexpr std::uint32_t batch_kind = 1;

/// In place of ranks that could not be found: nothing is agreed on.
class NoCoordinator final : public Coordinator {
 public:
  explicit NoCoordinator(std::string why) : why_(std::move(why)) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return 0; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept override { return 1; }
  void say(const Topic&, std::uint32_t, Payload, double) noexcept override {}
  [[nodiscard]] Agreement poll(const Topic&) noexcept override {
    return {Verdict::Aborted, {}, why_, Agreement::no_rank, 0};
  }
  [[nodiscard]] Agreement wait(const Topic& topic, double) noexcept override { return poll(topic); }
  void withdraw(const Topic&, std::string) noexcept override {}
  [[nodiscard]] std::string lost() const override { return why_; }

 private:
  std::string why_;
};

/// The space files as they are: ranks that read others would mean other configs.
std::uint64_t hash_of_inputs(const Options& options) {
  StableHash hash;
  hash.add(CONTEXTUNE_VERSION);
  hash.add(options.only);
  hash.add(options.exclude);
  hash.add(options.force);
  hash.add(options.tolerance);
  hash.add(options.buckets);
  hash.add(static_cast<std::uint64_t>(options.exactness));
  hash.add(static_cast<std::uint64_t>(options.nearest_size));
  hash.add(static_cast<std::uint64_t>(options.comm_memory));
  hash.add(static_cast<std::uint64_t>(options.allow_rounding));
  hash.add(static_cast<std::uint64_t>(options.auto_knobs));
  hash.add(static_cast<std::uint64_t>(options.scope));
  for (std::size_t start = 0; start < options.space.size();) {
    const std::size_t end = std::min(options.space.find(':', start), options.space.size());
    std::ifstream file(options.space.substr(start, end - start), std::ios::binary);
    hash.add(std::string(std::istreambuf_iterator<char>(file), {}));
    start = end + 1;
  }
  return hash.value();
}

}  // namespace

std::unique_ptr<RegionTuning> ProcessRanks::tuning_of(const std::string& region,
                                                      const Options& options,
                                                      TuningObserver& observer) {
  const TuningOptions tuning = tuning_options(options);
  Coordinator* others = nullptr;
  if (options.distributed != Distributed::Off) {
    std::string why;
    others = joined(options.distributed == Distributed::On, why);
    if (others == nullptr && !why.empty()) {
      log_.fallback(FallbackReason::NoRendezvous, region, {}, why);
      const std::lock_guard lock(mutex_);
      if (coordinator_ == nullptr) coordinator_ = std::make_unique<NoCoordinator>(why);
      others = coordinator_.get();
    }
  }
  if (others == nullptr) return std::make_unique<Tuning>(tuning, &observer);
  SharedTuningSettings settings;
  StableHash group;
  group.add(region);
  settings.group = group.value();
  for (std::uint32_t rank = 0; rank < others->num_ranks(); ++rank) settings.ranks.push_back(rank);
  settings.kind = batch_kind;
  settings.inputs_hash = hash_of_inputs(options);
  settings.presync_timeout = options.presync_timeout;
  if (options.scope == Scope::Local)
    return std::make_unique<ScopedTuning>(tuning, std::move(settings), *others, observer);
  return std::make_unique<SharedTuning>(tuning, std::move(settings), *others, observer);
}

Coordinator* ProcessRanks::joined(bool by_launcher, std::string& why) {
  const std::lock_guard lock(mutex_);
  has_regions_ = true;
  if (coordinator_ != nullptr) return coordinator_.get();
  // Ranks of a launcher may have nothing to do with one another.
  if (!by_launcher && std::getenv("CONTEXTUNE_WORLD_SIZE") == nullptr) return nullptr;
  const rank::Rendezvous found = rank::find_rendezvous();
  if (!found.error.empty()) {
    why = found.error;
  } else if (!found.missing.empty()) {
    why = found.missing;
  } else if (found.num_ranks <= 1) {
    if (by_launcher && found.source == "none") {
      why = "distributed is on, and nothing in the environment says which rank this is";
    }
  } else {
    start(found);
    return coordinator_.get();
  }
  return nullptr;
}

void ProcessRanks::start(const rank::Rendezvous& found) {
  auto planners = std::make_shared<GroupPlanners>();
  coordinator_ = rank::make_coordinator(
      found,
      rank::Deciders{{batch_kind, [planners](const Topic& topic, std::span<const Payload> said,
                                             std::string& refused) {
                        return planners->decide(topic, said, refused);
                      }}});
  StableHash job;
  job.add(found.job);
  job_ = job.value() | 1;
}

rank::Standing ProcessRanks::standing() {
  const std::lock_guard lock(mutex_);
  if (coordinator_ != nullptr) return {"it has joined other ranks before", job_};
  return {has_regions_ ? "it has entered a region before" : "", 0};
}

void ProcessRanks::join(const rank::Rendezvous& met) {
  if (!met.error.empty()) log_.fallback(FallbackReason::NoRendezvous, {}, {}, met.error);
  const std::lock_guard lock(mutex_);
  if (coordinator_ != nullptr) return;
  if (!met.error.empty()) {
    coordinator_ = std::make_unique<NoCoordinator>(met.error);
  } else if (!met.address.empty()) {
    start(met);
  }
}

}  // namespace contextune::intercept

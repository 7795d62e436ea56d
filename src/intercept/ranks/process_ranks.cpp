#include "intercept/ranks/process_ranks.hpp"

#include <algorithm>
#include <utility>

#include <contextune/error.hpp>
#include <contextune/version.hpp>

#include "core/agreement/batch_planner.hpp"
#include "core/agreement/domain_planner.hpp"
#include "core/agreement/joining_tuning.hpp"
#include "core/agreement/scoped_tuning.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "core/value/parse_number.hpp"
#include "core/value/stable_hash.hpp"
#include "environment/variables.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/ranks/question_kind.hpp"
#include "intercept/ranks/region_companions.hpp"
#include "log/rank_of_environment.hpp"
#include "rank/meeting/make_coordinator.hpp"
#include "space/file_text.hpp"

namespace contextune::intercept {
namespace {

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
// "" for one that cannot be used, which its rules say.
std::string text_of_space_file(const std::string& path) {
  try {
    return space::read_space_file(path);
  } catch (const Error&) {
    return {};
  }
}

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
  // How a rank hands over its launches is its own affair.
  hash.add(static_cast<std::uint64_t>(options.auto_knobs.collectives));
  hash.add(static_cast<std::uint64_t>(options.auto_knobs.attributes));
  hash.add(static_cast<std::uint64_t>(options.scope));
  hash.add(static_cast<std::uint64_t>(options.align));
  for (std::size_t start = 0; start < options.space.size();) {
    const std::size_t end = std::min(options.space.find(':', start), options.space.size());
    hash.add(text_of_space_file(options.space.substr(start, end - start)));
    start = end + 1;
  }
  return hash.value();
}

std::optional<std::uint32_t> declared_ranks() {
  const char* const text = variable("CONTEXTUNE_WORLD_SIZE");
  if (text == nullptr) return std::nullopt;
  return parse_number<std::uint32_t>(text).value_or(0);
}

SharedTuningSettings settings_of(std::uint64_t region, const Options& options) {
  SharedTuningSettings settings;
  settings.group = region;
  settings.kind = question_kind::batch;
  settings.lockstep_kind = question_kind::lockstep;
  settings.inputs_hash = hash_of_inputs(options);
  settings.presync_timeout = options.presync_timeout;
  return settings;
}

void add_all_ranks(SharedTuningSettings& settings, std::uint32_t num_ranks) {
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) settings.ranks.push_back(rank);
}

std::uint64_t number_of_region(const std::string& region) {
  StableHash group;
  group.add(region);
  return group.value();
}

/// How many ranks of the communicator are in this process, as far as NCCL asks about them.
std::uint32_t ranks_here(std::uint64_t communicator) {
  const auto all = collective_calls().tuned();
  return static_cast<std::uint32_t>(std::ranges::count_if(
      all, [&](const collective::TunedCommunicator& one) { return one.id == communicator; }));
}

}  // namespace

std::unique_ptr<RegionTuning> ProcessRanks::tuning_of(const std::string& region,
                                                      const Options& options,
                                                      TuningObserver& observer, bool store_knows,
                                                      bool is_one_site) {
  TuningOptions tuning = tuning_options(options);
  tuning.store_knows = store_knows;
  // Configs that its refinement chooses by the region's time have passed no margin yet.
  if (is_one_site) tuning.least_gain = options.margin;
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
  if (others == nullptr || (has_parts() && others->num_ranks() > 1)) {
    auto companions = std::make_unique<RegionCompanions>(
        *this, settings_of(number_of_region(region), options), options);
    return std::make_unique<JoiningTuning>(tuning, std::move(companions), observer);
  }
  SharedTuningSettings settings = settings_of(number_of_region(region), options);
  add_all_ranks(settings, others->num_ranks());
  if (options.scope != Scope::Global)
    return std::make_unique<ScopedTuning>(tuning, std::move(settings), *others, observer,
                                          options.scope);
  return std::make_unique<SharedTuning>(tuning, std::move(settings), *others, observer);
}

bool ProcessRanks::is_declared() noexcept {
  return declared_ranks().has_value();
}

std::unique_ptr<Coordinator> ProcessRanks::meet(const rank::Rendezvous& where) {
  const auto decider = [](auto planner) -> Coordinator::Decide {
    return [planner](const Topic& topic, std::span<const Payload> said, std::string& refused) {
      return planner->decide(topic, said, refused);
    };
  };
  return rank::make_coordinator(
      where, {{question_kind::batch, decider(std::make_shared<GroupPlanners>())},
              {question_kind::domain, decider(std::make_shared<DomainPlanner>())},
              {question_kind::lockstep, &Lockstep::decide}});
}

Coordinator* ProcessRanks::joined(bool by_launcher, std::string& why) {
  const std::lock_guard lock(mutex_);
  has_regions_ = true;
  if (coordinator_ != nullptr && (by_launcher || !is_founded_)) return coordinator_.get();
  // Ranks of a launcher may have nothing to do with one another.
  if (!by_launcher && !is_declared()) return nullptr;
  const rank::Rendezvous found = founder_.with_id(rank::find_rendezvous());
  if (!found.error.empty()) {
    why = found.error;
  } else if (!found.missing.empty()) {
    why = found.missing + "; or make a communicator of all of them before the first region";
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
  coordinator_ = meet(found);
  StableHash job;
  job.add(found.job);
  job_ = job.value() | 1;
  local_rank_ = found.local_rank;
}

std::uint32_t ProcessRanks::num_ranks() {
  const std::lock_guard lock(mutex_);
  if (coordinator_ != nullptr) return coordinator_->num_ranks();
  if (founder_.is_known()) return founder_.ranks();
  return log::ranks_of_environment();
}

RankPlace ProcessRanks::place() {
  const std::lock_guard lock(mutex_);
  // Where no ranks were found, the launcher still says which one this is.
  if (coordinator_ != nullptr && coordinator_->num_ranks() > 1)
    return {coordinator_->rank(), coordinator_->num_ranks()};
  const RankPlace launched = launched_place();
  const bool is_launched = launched.num_ranks > 1;
  return !is_launched && founder_.is_known() ? RankPlace{founder_.rank(), founder_.ranks()}
                                             : launched;
}

bool ProcessRanks::is_first_on_host(std::span<const std::uint32_t> ranks) {
  const std::lock_guard lock(mutex_);
  if (ranks.empty() || coordinator_ == nullptr) return local_rank_ == 0;
  const std::uint32_t own = coordinator_->rank();
  return std::ranges::none_of(
      ranks, [&](std::uint32_t other) { return other < own && own - other <= local_rank_; });
}

rank::Standing ProcessRanks::standing() {
  const std::lock_guard lock(mutex_);
  if (coordinator_ == nullptr) return {has_regions_ ? "it has entered a region before" : "", 0};
  // Who has lost the others is of no job any more.
  if (std::string lost = coordinator_->lost(); !lost.empty()) return {std::move(lost), 0};
  return {"it has joined other ranks before", job_, coordinator_->rank(),
          coordinator_->num_ranks()};
}

std::string ProcessRanks::join(const rank::Rendezvous& met) {
  std::string why = met.error;
  {
    const std::lock_guard lock(mutex_);
    const bool meets = why.empty() && !met.address.empty();
    if (coordinator_ != nullptr) {
      if (meets) why = "another thread has joined ranks meanwhile, and they stay joined";
      // A rendezvous that the program asks for is for all its regions.
      if (why.empty()) is_founded_ = false;
    } else if (!why.empty()) {
      coordinator_ = std::make_unique<NoCoordinator>(why);
    } else if (meets) {
      start(met);
      is_of_communicator_ = true;
    }
  }
  if (!why.empty()) log_.fallback(FallbackReason::NoRendezvous, {}, {}, why);
  return why;
}

void ProcessRanks::nccl_begins(const contextune_nccl_call& call) noexcept {
  if (call.num_made == 1 && call.comm != nullptr) has_parts_.store(true);
  if (call.unique_id == 0 || call.num_made != 1 || call.rank < 0 || call.nranks <= 1) return;
  std::unique_lock lock(mutex_);
  const bool is_first = founder_.see(call, !is_declared());
  const std::uint32_t job = declared_ranks().value_or(founder_.ranks());
  if (static_cast<std::uint32_t>(call.nranks) != job) has_parts_.store(true);
  lock.unlock();
  if (is_first && is_rank_ != nullptr)
    is_rank_(static_cast<std::uint32_t>(call.rank), static_cast<std::uint32_t>(call.nranks));
}

void ProcessRanks::nccl_ended(const contextune_nccl_call& call, bool has_regions) noexcept {
  const bool ends_group = call.kind == contextune_nccl_group && call.group_depth <= 1 &&
                          call.fn != contextune_fn_ncclGroupStart;
  const bool makes = ends_group || (call.num_made != 0 && call.group_depth == 0);
  if (!has_regions || !makes) return;
  const bool declared = has_parts() && !joined_early_.exchange(true) &&
                        distributed_ == Distributed::Auto && is_declared();
  if (!declared && !founder_.may_meet()) return;
  try {
    if (std::string why; declared) (void)joined(false, why);
    const std::lock_guard lock(mutex_);
    (void)found();
  } catch (const std::exception&) {
    // No memory: the first region that needs others tries it again.
  }
}

Coordinator* ProcessRanks::found() {
  if (coordinator_ != nullptr) return coordinator_.get();
  if (distributed_ == Distributed::Off || is_declared()) return nullptr;
  if (const auto where = founder_.meet()) {
    start(*where);
    is_founded_ = is_of_communicator_ = true;
  }
  return coordinator_.get();
}

Coordinator* ProcessRanks::coordinator() {
  const std::lock_guard lock(mutex_);
  return found();
}

bool ProcessRanks::knows_job() {
  const std::lock_guard lock(mutex_);
  return coordinator_ != nullptr;
}

void ProcessRanks::expect(const Options& options) {
  // Others may still be joined by the program, before its first region.
  if (options.distributed == Distributed::Off || !is_declared()) return;
  std::string why;  // said when they are needed
  (void)joined(options.distributed == Distributed::On, why);
}

Coordinator* ProcessRanks::others(const Options& options, std::string& why, bool is_job) {
  if (options.distributed == Distributed::Off) {
    why = "--distributed is off";
    return nullptr;
  }
  // What is known of communicators comes first: it does so on all ranks.
  is_job = is_job && coordinator() == nullptr;
  (void)joined(is_job || options.distributed == Distributed::On, why);
  const std::lock_guard lock(mutex_);
  Coordinator* const all = found();
  if (all == nullptr) {
    if (why.empty()) why = founder_.why_alone();
    if (why.empty()) why = "its ranks do not know one another";
    return nullptr;
  }
  why = all->lost();
  return why.empty() ? all : nullptr;
}

bool ProcessRanks::are_certain() {
  const std::lock_guard lock(mutex_);
  return is_declared() || (coordinator_ != nullptr && !is_founded_);
}

bool ProcessRanks::may_have_others() {
  const std::lock_guard lock(mutex_);
  return coordinator_ != nullptr || founder_.may_meet();
}

std::string ProcessRanks::obstacle(std::uint64_t communicator, int ranks, Distributed distributed) {
  const std::uint32_t here = ranks_here(communicator);
  if (here >= static_cast<std::uint32_t>(ranks)) return {};
  const std::string its = "its " + std::to_string(ranks) + " ranks ";
  if (distributed == Distributed::Off)
    return its + "are not tuned together, because --distributed is off";
  const std::lock_guard lock(mutex_);
  if (const Coordinator* const others = found()) {
    // A process that stands for several devices is one rank of the job, and several of these.
    const std::uint64_t known = std::uint64_t{others->num_ranks()} * std::max(here, 1U);
    if (static_cast<std::uint64_t>(ranks) <= known) return {};
    return its + "are more than the " + std::to_string(others->num_ranks()) +
           " of the job that is tuned together";
  }
  if (!founder_.why_alone().empty()) return its + "are not tuned together: " + founder_.why_alone();
  return its + "are not tuned together; see --distributed and `contextune run -n`";
}

bool ProcessRanks::covers_all_peers(Distributed distributed) {
  if (distributed == Distributed::Off) return false;
  const std::lock_guard lock(mutex_);
  const Coordinator* const others = found();
  if (others == nullptr) return false;
  return !is_of_communicator_ ||
         (!founder_.has_foreign() && others->num_ranks() == founder_.ranks());
}

Companions ProcessRanks::companions(const SharedTuningSettings& region, Distributed distributed,
                                    std::span<const DecisionStanding> used) {
  Companions all;
  const bool all_here = !used.empty() && std::ranges::all_of(used, [](const DecisionStanding& one) {
    return one.here >= one.ranks;
  });
  const std::lock_guard lock(mutex_);
  if (all_here) {
    if (own_devices_ == nullptr) own_devices_ = meet({});
    all.coordinator = own_devices_.get();
  } else if (distributed != Distributed::Off) {
    all.coordinator = found();
  }
  if (all.coordinator == nullptr) return all;
  all.state = Companions::State::Known;
  all.settings = region;
  add_all_ranks(all.settings, all.coordinator->num_ranks());
  return all;
}

}  // namespace contextune::intercept

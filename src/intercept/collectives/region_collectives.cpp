#include "intercept/collectives/region_collectives.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "intercept/host/clock.hpp"
#include "intercept/nccl/nccl_function.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/screening.hpp"

namespace contextune::intercept {
namespace {

// Between two looks at whether a decision is permitted.
constexpr std::chrono::microseconds least_pause{50};
constexpr std::chrono::microseconds most_pause{1000};
constexpr std::uint64_t largest_bucket = std::uint64_t{1} << 40U;

/// The collective that a key stands for.
collective::Collective collective_of(const DecisionMade& made) {
  collective::Collective one;
  one.function = made.key.function;
  if (is_reduction(one.function) && made.key.kind > 0) {
    one.datatype = collective::datatype_of(made.key.kind);
    one.op = collective::operator_of(made.key.kind);
  }
  one.bytes = std::min(made.key.bytes, largest_bucket);
  one.communicator.ranks = made.ranks;
  one.communicator.nodes = made.nodes;
  return one;
}

/// "Ring Simple"; empty: NCCL has no choice.
std::string default_choice_of(const DecisionMade& made) {
  if (!made.default_cell) return {};
  return std::string(name_of(made.default_cell->algorithm)) + ' ' +
         std::string(name_of(made.default_cell->protocol));
}

}  // namespace

RegionCollectives::RegionCollectives(std::string region, const gpu::Driver& driver, Search& search,
                                     SiteTable& table, ProcessRanks& ranks, const Options& options,
                                     EventLog& log, Objective objective)
    : region_(std::move(region)),
      driver_(driver),
      search_(search),
      table_(table),
      ranks_(ranks),
      options_(options),
      objective_(objective),
      log_(log),
      is_shared_(process_collectives().regions().add(*this) && search.ranks().keep_in_step(*this)) {
}

Site* RegionCollectives::make_site(const DecisionMade& made, bool is_foreign, bool is_part) {
  const collective::CollectiveSpace& space = process_collectives().space();
  const collective::Collective what = collective_of(made);
  SiteSpec spec;
  spec.name = std::string(name_of(what.function));
  spec.key = key_of(what, space.of(what.function).buckets);
  if (made.key.kind == 0) spec.key.add("mixed", 1);
  if (made.key.operations > 1) spec.key.add("grouped", static_cast<int>(made.key.operations));
  collective::SiteConfigs configs = configs_of(what, space, made.legal, made.default_cell);
  std::string why(configs.why_none);
  FallbackReason reason = FallbackReason::NoKnobs;
  if (configs.needs_rounding) reason = FallbackReason::Rounding;
  if (!space.of(what.function).excluded.empty()) reason = FallbackReason::Excluded;
  const bool is_exchange = what.function == collective::Function::AllToAll;
  if (is_exchange) {
    reason = FallbackReason::CollectiveFixed;
  } else if (made.key.kind == 0) {
    reason = FallbackReason::CollectiveFixed;
    why = "operations of several datatypes or operators are one group";
  } else if (is_foreign) {
    reason = FallbackReason::CollectiveFixed;
    why = "another region that has it as well decides how it is done";
  } else if (made.communicator == 0) {
    reason = FallbackReason::CollectiveFixed;
    why = "this version of NCCL does not say which communicator it is";
  }
  const std::string obstacle = ranks_.obstacle(made.communicator, made.ranks, options_.distributed);
  if (!obstacle.empty() || !is_shared_) {
    if (why.empty()) {
      reason = FallbackReason::NoRendezvous;
      why = obstacle.empty() ? "there are more regions with collectives than are kept in step"
                             : obstacle;
    }
    // Entries are made for the search, which ranks unknown to it would not do.
    if (options_.mode == Mode::Body)
      search_.stop(FallbackReason::NoRendezvous,
                   "The region is not repeated, because other ranks would not repeat it: " +
                       (obstacle.empty() ? why : obstacle) + ".");
  }
  if (!why.empty()) {
    configs.configs.resize(1);
    configs.unusable.clear();
    log_.fallback(reason, region_, spec.name + "{" + spec.key.to_string() + "}",
                  "'" + spec.name + "' keeps its default: " + why + ".");
  }
  std::vector<std::uint32_t> left_out;
  if (why.empty())
    left_out = too_large_to_connect(made, spec.name + "{" + spec.key.to_string() + "}", configs);
  configs.unusable.insert(configs.unusable.end(), left_out.begin(), left_out.end());
  spec.configs = std::move(configs.configs);
  spec.collective = is_shared_ && obstacle.empty();
  // It has no time of its own: what the group takes says as much of the others.
  spec.objective = is_part ? Objective::Region : objective_;
  spec.n_warmup = space.of(what.function).n_warmup;
  spec.n_repeat = space.of(what.function).n_repeat;
  Site* const site = table_.collective(std::move(spec), default_choice_of(made), configs.unusable);
  if (site != nullptr) search_.screening().leave_out(*site, left_out);
  return site;
}

void RegionCollectives::made(std::span<const DecisionMade> all, bool counts,
                             double seconds) noexcept {
  try {
    const bool is_watched = counts && search_.watch() != Watch::Nothing;
    for (const DecisionMade& made : all) {
      if (made.is_described && !is_watched) continue;
      Site* site = nullptr;
      bool is_new = false;
      {
        const std::lock_guard lock(mutex_);
        auto at = std::find_if(streams_.begin(), streams_.end(),
                               [&](const Stream& one) { return one.key == made.key; });
        is_new = at == streams_.end();
        if (is_new) {
          Stream& stream = streams_.emplace_back();
          stream.key = made.key;
          stream.communicator = made.communicator;
          stream.handle = made.handle;
          stream.ranks = static_cast<std::uint32_t>(made.ranks);
          stream.first = made.grant.number;
        } else {
          site = at->site;
        }
      }
      // Not under the lock: the search asks for standings under its own.
      const bool is_foreign =
          is_new && process_collectives().regions().is_of_another(made.key, *this);
      if (is_new) {
        const auto in_group = std::count_if(all.begin(), all.end(), [&](const DecisionMade& one) {
          return one.key.communicator == made.key.communicator;
        });
        site = make_site(made, is_foreign, in_group > 1);
      }
      if (site == nullptr) continue;
      if (is_new) {
        const std::lock_guard lock(mutex_);
        for (Stream& stream : streams_) {
          if (stream.key != made.key) continue;
          stream.site = site;
          stream.is_gone = is_foreign;
        }
      }
      if (is_new && !is_foreign && is_shared_ && site->configs.size() > 1) search_.ranks().reopen();
      if (!is_watched || site->index == no_site) continue;
      count(made, *site, seconds);
    }
  } catch (const std::exception&) {
    // No memory to know it: what it ran counts for nobody.
  }
}

void RegionCollectives::count(const DecisionMade& made, const Site& site, double seconds) {
  const std::uint64_t tag = search_.pass().tag(site.index);
  search_.pass().launched(tag, site.index, 1, 0);
  if (made.was_refused) search_.pass().failed(tag, site.index);
  if (const std::uint64_t bytes = too_many_bytes(made))
    search_.pass().took_too_much(tag, site.index, bytes);
  if (site.configs.size() == 1) return;
  // A collective that connects on its way is no sample of its time; by itself the program connects
  // anyway.
  if (made.is_first_use && made.grant.config != 0)
    search_.pass().was_held_up(tag, site.index, seconds);
  const bool is_sample = made.grant.config == site.planned() && !made.is_first_use;
  if (!is_sample) search_.pass().ran_another(tag, site.index);
}

std::uint64_t RegionCollectives::too_many_bytes(const DecisionMade& made) {
  if (!made.ran || made.grant.config == 0 || !made.grant.is_trial) return 0;
  const std::pair which(made.key.communicator, made.ran->algorithm);
  const std::lock_guard lock(mutex_);
  if (made.is_first_use && made.connection_bytes > process_collectives().space().connection_bytes)
    given_up_[which] = made.connection_bytes;
  const auto known = given_up_.find(which);
  return known == given_up_.end() ? 0 : known->second;
}

std::vector<std::uint32_t> RegionCollectives::too_large_to_connect(
    const DecisionMade& made, const std::string& label, const collective::SiteConfigs& configs) {
  auto to_connect =
      configs_to_connect(configs, process_collectives().connected(made.key.communicator));
  std::set<collective::Algorithm> algorithms;
  for (const std::uint32_t config : to_connect)
    algorithms.insert(collective::decision_of(configs.configs[config]).cell.algorithm);
  const std::uint64_t needed =
      process_collectives().space().connection_bytes * std::uint64_t{algorithms.size()};
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (algorithms.empty() || driver_.cuMemGetInfo(&free_bytes, &total_bytes) != CUDA_SUCCESS ||
      free_bytes >= needed) {
    return {};
  }
  log_.fallback(FallbackReason::CommMemory, region_, label,
                "Algorithms that have no connections yet are not tried: " +
                    std::to_string(free_bytes >> 20U) + " MiB of device memory are free, and " +
                    std::to_string(needed >> 20U) +
                    " MiB may be needed, --comm-memory for each algorithm.");
  return to_connect;
}

bool RegionCollectives::has(const collective::LeaseKey& key) const noexcept {
  const std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](const Stream& stream) { return stream.key == key && !stream.is_gone; });
}

void RegionCollectives::note_used(const void* communicator) noexcept {
  if (!look_.is_on.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (std::find(look_.used.begin(), look_.used.end(), communicator) != look_.used.end()) return;
  try {
    look_.used.push_back(communicator);
  } catch (const std::exception&) {
    // No memory. Nobody knows the ranks of what is not there, and nothing is repeated.
    if (!look_.used.empty()) look_.used.front() = nullptr;
  }
}

std::vector<const void*> RegionCollectives::end_look() {
  look_.is_on.store(false);
  const std::lock_guard lock(mutex_);
  return std::exchange(look_.used, {});
}

void RegionCollectives::too_many_at_once() noexcept {
  log_.fallback(FallbackReason::CollectiveFixed, region_, {},
                "A group has more collectives than are told apart; they keep their default.");
}

void RegionCollectives::decides_later() noexcept {
  log_.fallback(
      FallbackReason::CollectiveFixed, region_, {},
      "Collectives of a communicator that does not block keep their default: NCCL decides "
      "about them on a thread of its own, after the call.");
}

void RegionCollectives::nobody_is_asked(contextune_tuner_state state) noexcept {
  if (said_.unasked.load(std::memory_order_relaxed)) return;
  try {
    const std::string why = why_not_asked(state);
    if (why.empty() || said_.unasked.exchange(true, std::memory_order_relaxed)) return;
    log_.fallback(FallbackReason::CollectiveFixed, region_, {},
                  "Collectives keep what NCCL chooses: " + why + ".");
  } catch (const std::exception&) {
    // Not said, then.
  }
}

void RegionCollectives::saw_untunable(contextune_nccl_fn function) noexcept {
  if (said_.untunable[function].exchange(true, std::memory_order_relaxed)) return;
  const NcclFunction& what = nccl_function(function);
  try {
    log_.fallback(
        FallbackReason::CollectiveFixed, region_, {},
        "'" + std::string(what.name) + "' is not tuned: " + std::string(what.why_not_tuned) + ".");
  } catch (const std::exception&) {
    // Not said, then.
  }
}

Site* RegionCollectives::site_of(std::span<const DecisionMade> made) const noexcept {
  if (made.size() != 1) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const Stream& stream : streams_)
    if (stream.key == made.front().key) return stream.site;
  return nullptr;
}

std::vector<const Site*> RegionCollectives::sites() const {
  std::vector<const Site*> all;
  const std::lock_guard lock(mutex_);
  for (const Stream& stream : streams_) {
    if (stream.site != nullptr && std::find(all.begin(), all.end(), stream.site) == all.end())
      all.push_back(stream.site);
  }
  return all;
}

bool RegionCollectives::permits(std::uint32_t decisions) const noexcept {
  if (!holding_.load(std::memory_order_seq_cst)) return true;
  const std::lock_guard lock(mutex_);
  return std::none_of(streams_.begin(), streams_.end(), [&](const Stream& stream) {
    return stream.is_held && process_collectives().decisions(stream.key) + decisions > stream.limit;
  });
}

void RegionCollectives::await_permission(std::uint32_t decisions, double until) noexcept {
  for (auto pause = least_pause; !permits(decisions) && now_seconds() < until;) {
    try {
      if (search_.ranks().settle(now_seconds())) return;
    } catch (const std::exception&) {
      // No memory to take in what was agreed on, which all others have: it is tried again.
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, most_pause);
  }
}

void RegionCollectives::forget(std::uint64_t context) noexcept {
  const std::lock_guard lock(mutex_);
  for (Stream& stream : streams_)
    if (stream.key.communicator == context) stream.is_gone = true;
}

std::vector<DecisionStanding> RegionCollectives::standings() {
  std::vector<DecisionStanding> all;
  const std::lock_guard lock(mutex_);
  for (const Stream& stream : streams_) {
    if (stream.site == nullptr || stream.site->index == no_site || stream.is_gone) continue;
    if (stream.communicator == 0 || stream.key.kind == 0) continue;
    if (stream.key.function == collective::Function::AllToAll) continue;  // nobody asks
    const DecisionStanding one{stream.site->index,
                               stream.communicator,
                               stream.ranks,
                               1,
                               process_collectives().decisions(stream.key),
                               stream.first,
                               process_collectives().is_sound(stream.key, stream.handle)};
    const auto same = std::find_if(all.begin(), all.end(), [&](const DecisionStanding& other) {
      return other.site == one.site && other.communicator == one.communicator;
    });
    if (same == all.end()) {
      all.push_back(one);
    } else {
      // Another rank of the communicator in this process.
      ++same->here;
      same->sound = same->sound && one.sound && same->decisions == one.decisions;
    }
  }
  return all;
}

void RegionCollectives::hold(std::span<const Limit> limits) {
  {
    const std::lock_guard lock(mutex_);
    for (Stream& stream : streams_) {
      stream.is_held = false;
      for (const Limit& limit : limits) {
        if (stream.site == nullptr || stream.site->index != limit.site ||
            stream.communicator != limit.communicator) {
          continue;
        }
        stream.is_held = true;
        stream.limit = limit.decisions;
      }
    }
  }
  holding_.store(true, std::memory_order_seq_cst);
  process_collectives().regions().hold(true);
}

void RegionCollectives::release() {
  process_collectives().regions().hold(false);
  holding_.store(false, std::memory_order_seq_cst);
}

std::string RegionCollectives::commit(const DecisionLease& lease) {
  std::vector<collective::Lease> own;
  {
    const std::lock_guard lock(mutex_);
    for (const Stream& stream : streams_) {
      if (stream.site == nullptr || stream.site->index != lease.site || stream.is_gone ||
          stream.communicator != lease.communicator) {
        continue;
      }
      const std::vector<Config>& configs = stream.site->configs;
      const auto decision = [&](std::uint32_t config) {
        return config == 0 || config >= configs.size() ? collective::Decision()
                                                       : collective::decision_of(configs[config]);
      };
      collective::Lease& one = own.emplace_back();
      one.key = stream.key;
      one.epoch = lease.epoch;
      one.first_decision = lease.first_decision;
      for (const std::uint32_t config : lease.configs) {
        if (!one.spans.empty() && one.spans.back().config == config) {
          one.spans.back().decisions += lease.per_pass;
        } else {
          one.spans.push_back({decision(config), config, lease.per_pass});
        }
      }
      one.afterwards = decision(lease.afterwards);
      one.config_afterwards = lease.afterwards;
    }
  }
  for (const collective::Lease& one : own) {
    std::string why = process_collectives().commit(one);
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace contextune::intercept

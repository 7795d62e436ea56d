#include "intercept/regions/body_ranks.hpp"

#include <exception>
#include <utility>

#include "core/agreement/rank_list.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/capture_watch.hpp"
#include "log/events.hpp"

namespace contextune::intercept {

RegionRanks::Answer BodyRanks::ask(const std::function<bool()>& is_ready, std::string& why) {
  if (!may_repeat()) {
    why = "other processes do it as well, which do not tune it with this one";
    return Answer::Lost;
  }
  if (region_.services().ranks.num_ranks() <= 1) return RegionRanks::ask(is_ready, why);
  return search_.ranks().ask(is_ready, options_.trial_timeout, why);
}

void BodyRanks::repeat_together(std::span<const std::uint32_t> ranks) noexcept {
  together_ = true;
  try {
    search_.ranks().repeat_together(ranks);
  } catch (const std::exception& error) {
    region_.stop(FallbackReason::InternalError, error.what());
  }
}

bool BodyRanks::may_repeat() noexcept {
  // Other processes have to repeat as often what the body has in common with them. Ranks that the
  // author named have been found.
  if (together_ || collectives_ == nullptr || !collective_calls().has_peers()) return true;
  try {
    if (groups().may_differ(options_)) return true;  // find() is to tell
    if (!collectives_->may_repeat()) {
      search_.ranks().say_untuned(
          FallbackReason::NoRendezvous,
          "The region's body is not repeated: the program has communicators with "
          "other processes, which do not tune the region together.");
      return false;
    }
    search_.ranks().repeat_together({});
  } catch (const std::exception& error) {
    region_.stop(FallbackReason::InternalError, error.what());
    return false;
  }
  return true;
}

BodyRanks::Before BodyRanks::come() noexcept {
  const bool may_differ = !region_.services().captures.any() && groups().may_differ(options_);
  if (may_differ && !has_place_.exchange(true)) groups().note_place(region_.name(), true, options_);
  if (together_ || !may_differ) return Before::Pass;
  if (collectives_ == nullptr || !collective_calls().has_peers()) {
    return guarded_find(false) ? Before::Pass : Before::Nothing;
  }
  looks_ = true;
  collectives_->begin_look();
  return Before::Look;
}

void BodyRanks::leave() noexcept {
  if (has_place_.exchange(false)) groups().note_place(region_.name(), false, options_);
}

std::optional<bool> BodyRanks::end_look() noexcept {
  if (!std::exchange(looks_, false)) return std::nullopt;
  return guarded_find(true);
}

void BodyRanks::abandon_look() {
  if (std::exchange(looks_, false)) (void)collectives_->end_look();
}

bool BodyRanks::guarded_find(bool has_looked) noexcept {
  together_ = true;
  try {
    return find(has_looked ? collectives_->end_look() : std::vector<const void*>(), has_looked);
  } catch (const std::exception& error) {
    region_.stop(FallbackReason::InternalError, error.what());
    return false;
  }
}

bool BodyRanks::find(const std::vector<const void*>& used, bool has_looked) {
  const std::string& region = region_.name();
  RankGroup group = groups().ranks_at(region, used, options_);
  std::string why = group.why;
  // None repeats what another one does not.
  if (has_looked && group.ranks.size() > 1) {
    const auto all = groups().lockstep_among("look at " + region, group, options_, why);
    if (all == nullptr || !all->meet({})) {
      if (all != nullptr) why = all->why();
      group.reason = FallbackReason::NoAgreement;
      group.ranks.clear();
    }
  }
  if (group.ranks.empty()) {
    region_.stop(group.reason, "The region's body is not repeated: " + why + ".");
    return false;
  }
  if (!group.is_whole_job) {
    search_.ranks().limit_to(group.ranks);
    const std::string ranks = text_of_ranks(group.ranks);
    EventLog& log = region_.services().log;
    if (group.is_cut_short) {
      log.fallback(FallbackReason::NoAgreement, region, {},
                   "With --scope auto these ranks tune the region by themselves, as the "
                   "others did not come in time: " +
                       ranks + ".");
    } else {
      log::write_ranks_of_region(
          log.lines(), region, ranks,
          "These ranks tune the region by themselves: " + group.found_by + ".");
    }
  }
  if (!used.empty()) search_.ranks().repeat_together({});
  return true;
}

}  // namespace contextune::intercept

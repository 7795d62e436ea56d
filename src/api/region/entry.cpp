#include "api/region/entry.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <contextune/error.hpp>

#include "api/communicator_group.hpp"
#include "api/last_error.hpp"
#include "api/process.hpp"
#include "api/region/region_table.hpp"
#include "api/region/repetition_rule.hpp"
#include "api/region/snapshot.hpp"
#include "api/tunable/tunable_record.hpp"
#include "core/agreement/rank_list.hpp"
#include "core/value/option_table.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/replay/repetition_check.hpp"

namespace contextune::api {
namespace {

using intercept::Region;
using intercept::RegionRanks;
using intercept::Runtime;
using intercept::TooManyRegions;

/// The data that an entry needs only while its region still searches.
struct Search {
  std::string name;
  StoredAs as;
  std::atomic<bool>* refused = nullptr;  ///< told that there can be no such region; may be null
  int device = -1;
  Options author;
  bool repeatable = false;
  std::optional<std::vector<std::uint32_t>> together;  ///< ranks that the body waits for
  bool rows = false;                                   ///< its passes are
  std::vector<Snapshot::Span> spans;
  int (*restore)(void* user) = nullptr;
  void* restore_user = nullptr;
  std::unique_ptr<Snapshot> snapshot;
  bool is_unsaid = false;  ///< before it is repeated, two runs have to leave the same
  std::unique_ptr<intercept::RepetitionCheck> check;

  /// Undoes what the body did. False: it could not.
  [[nodiscard]] bool undo() const noexcept {
    try {
      if (snapshot) snapshot->restore();
      return restore == nullptr || restore(restore_user) == 0;
    } catch (const std::exception& error) {
      if (Runtime* now = Runtime::get()) {
        now->log().fault("region '" + name + "': " + error.what() +
                         "; the search ends, and what the last pass left stays");
      }
      return false;
    }
  }
};

enum class State : std::uint32_t {
  Begun,    ///< the body has not run
  Through,  ///< it runs, untouched
  Pass,     ///< it runs, and will run again
  Check,    ///< it runs for the second time, to see whether that leaves the same
  Last,     ///< it runs for the last time
  Done
};

/// The contents of a contextune_entry after word 0, which is the table.
struct Entry {
  Region* region;
  Search* search;  ///< null once nothing is searched
  State state;
  bool untuned = false;  ///< it was to be tuned with other ranks, and last_error() says why not
};
static_assert(sizeof(Entry) <= sizeof(contextune_entry) - sizeof(std::uint64_t));

Entry& of(contextune_entry* entry) noexcept {
  return *std::launder(static_cast<Entry*>(static_cast<void*>(&entry->opaque[1])));
}
const Entry& of(const contextune_entry* entry) noexcept {
  return *std::launder(static_cast<const Entry*>(static_cast<const void*>(&entry->opaque[1])));
}

void forget_search(Entry& entry) noexcept {
  delete entry.search;
  entry.search = nullptr;
}

/// Who repeats: what the operator said, else what the author said, else whoever can.
Mode mode_of(Runtime& runtime, Search& search) {
  Mode mode = runtime.options().mode;
  if (mode == Mode::Auto) mode = search.author.mode;
  if (mode == Mode::Live || mode == Mode::Replay) return mode;
  const bool is_undone = search.restore != nullptr || !search.spans.empty();
  const Repetition repetition = repetition_of(search.as.kind, search.repeatable, is_undone);
  search.is_unsaid = repetition == Repetition::ToShow;
  if (repetition != Repetition::Never) return Mode::Body;
  runtime.log().fallback(FallbackReason::NotRepeatable, search.name, {}, {});
  return Mode::Live;
}

/// The region of a first entry, and its snapshot where the body is to be repeated.
/// @return whether it may be
[[nodiscard]] bool prepare(Runtime& runtime, Entry& entry) {
  Search& search = *entry.search;
  search.author.mode = mode_of(runtime, search);
  if (entry.region == nullptr) {
    entry.region = &make_region(runtime, search.name, search.device, search.author, search.as);
  }
  if (search.together) entry.region->ranks().repeat_together(*search.together);
  if (search.rows && search.author.mode == Mode::Body) entry.region->time_rows();
  // Copies would end the capture, and what is captured does nothing yet that could be undone.
  if (search.author.mode != Mode::Body || runtime.is_capturing()) return false;
  if (search.spans.empty() || entry.region->finished()) return true;
  const gpu::Driver* cuda = driver();
  if (cuda == nullptr) throw Error("there is no driver to copy memory with");
  search.snapshot =
      std::make_unique<Snapshot>(*cuda, search.spans, runtime.options().trial_timeout);
  return true;
}

/// The body runs once, as it is, for that reason.
void report_unprepared(Runtime& runtime, const Search& search, const std::exception& why) {
  // The next call would not fare better.
  if (search.refused != nullptr) search.refused->store(true, std::memory_order_relaxed);
  if (dynamic_cast<const TooManyRegions*>(&why) == nullptr) {
    runtime.log().fault("region '" + search.name + "': " + why.what() +
                        "; its body runs once, as it is");
    return;
  }
  // Names and keys may be endless: it is said once, and once of each function and choice.
  if (search.as.kind == StoredKind::Region) {
    runtime.log().fallback(
        FallbackReason::TooManySites, {}, {},
        std::string("A region is not tuned, nor are others that come now: ") + why.what() + ".");
    return;
  }
  const std::string kind(to_string(search.as.kind));
  runtime.log().fallback(
      FallbackReason::TooManySites, search.as.name, {},
      "A key of the " + kind +
          " cannot have a region of its own, so it and all others that come now run "
          "their default; give the " +
          kind + " a coarser key, or buckets of sizes.");
}

void note_untuned(Entry& entry) noexcept {
  try {
    const std::string why = entry.region->ranks().why_untuned();
    if (why.empty()) return;
    entry.untuned = true;
    fail("region '" + entry.region->name() + "' is not tuned: " + why);
  } catch (const std::exception&) {
    // No memory to say it.
  }
}

/// Starts a pass, or the last run of the body.
int start_run(Entry& entry, bool may_be_pass) noexcept {
  if (may_be_pass && entry.region->begin_pass()) {
    entry.state = State::Pass;
    return 1;
  }
  if (may_be_pass) note_untuned(entry);
  forget_search(entry);
  entry.region->begin_entry();
  entry.state = State::Last;
  return 1;
}

int start_first_run(Entry& entry) noexcept {
  Runtime* now = entry.region != nullptr || entry.search != nullptr ? Runtime::get() : nullptr;
  if (now == nullptr) {
    forget_search(entry);
    entry.region = nullptr;
    entry.state = State::Through;
    return 1;
  }
  bool may_be_pass = false;
  if (entry.search != nullptr) {
    try {
      may_be_pass = prepare(*now, entry);
    } catch (const std::exception& error) {
      report_unprepared(*now, *entry.search, error);
    }
    if (entry.region == nullptr) {
      forget_search(entry);
      entry.state = State::Through;
      return 1;
    }
  }
  return start_run(entry, may_be_pass);
}

/// The program goes on with what the first run has left.
int refuse_to_repeat(Entry& entry, const std::string& why) noexcept {
  try {
    const std::string remedy =
        ". Say .repeatable if it may be run again, or what to .restore before a run";
    entry.untuned = true;
    fail("function '" + entry.search->as.name + "' is not tuned, since " + why + remedy);
    entry.region->give_up(FallbackReason::NotRepeatable,
                          "The function runs its default, since " + why + remedy + ".");
  } catch (const std::exception&) {
    entry.region->give_up(FallbackReason::NotRepeatable, {});  // no memory to say more
  }
  forget_search(entry);
  entry.state = State::Done;
  return 0;
}

/// Asks all ranks that run it: each looks at its own memory, and either all run it again or none.
/// @param look       this rank's own answer; no clause: yes
/// @param other_rank a clause on what another one has said
/// @param lost       the beginning of one where they have not come together
/// @return why it is not repeated, a clause; empty: it is
std::string why_not_on_all(Entry& entry, const std::function<std::string()>& look,
                           const char* other_rank, const std::string& lost) {
  std::string own;
  std::string why;
  const auto is_ready = [&] { return (own = look()).empty(); };
  switch (entry.region->ranks().ask(is_ready, why)) {
    case RegionRanks::Answer::All:
      return {};
    case RegionRanks::Answer::NotThis:
      return own;
    case RegionRanks::Answer::NotAll:
      return other_rank;
    case RegionRanks::Answer::Lost:
      break;
  }
  return own.empty() ? lost + why : own;
}

int start_check(Entry& entry) noexcept {
  const char* const nobody_tells = "nobody can tell whether it may be run again: ";
  try {
    const auto begin = [&]() -> std::string {
      try {
        Runtime* const now = Runtime::get();
        if (now == nullptr) return "nothing is tuned any more";
        entry.search->check = now->check_repetition();
        entry.search->check->begin();
        return {};
      } catch (const std::exception& error) {
        return std::string(nobody_tells) + error.what();
      }
    };
    const std::string why = why_not_on_all(
        entry, begin, "nobody can tell on another rank whether it may be run again", nobody_tells);
    if (!why.empty()) return refuse_to_repeat(entry, why);
    entry.state = State::Check;
    return 2;
  } catch (const std::exception&) {
    return refuse_to_repeat(entry, "there is no memory to see whether it may be run again");
  }
}

/// @param ended false: the second run was left early
int finish_check(Entry& entry, bool ended) noexcept {
  const char* const not_compared = "two runs of its default cannot be compared";
  try {
    const auto find_change = [&]() -> std::string {
      try {
        std::string change = entry.search->check->find_change();
        entry.search->check.reset();
        return ended ? change : "a second run of its default did not come to its end";
      } catch (const std::exception& error) {
        if (Runtime* now = Runtime::get()) {
          now->log().fault("region '" + entry.search->name + "': after two runs of its body " +
                           error.what() + "; what the second one left stays");
        }
        return not_compared;
      }
    };
    const std::string why = why_not_on_all(
        entry, find_change, "a second run of its default left something else on another rank",
        std::string(not_compared) + ": ");
    if (!why.empty()) return refuse_to_repeat(entry, why);
  } catch (const std::exception&) {
    return refuse_to_repeat(entry, not_compared);
  }
  entry.search->is_unsaid = false;
  return start_run(entry, true);
}

int finish_pass(Entry& entry) noexcept {
  if (entry.region->end_pass()) {
    note_untuned(entry);
    forget_search(entry);
    entry.state = State::Done;
    return 0;
  }
  if (entry.search->is_unsaid) return start_check(entry);
  if (entry.search->undo()) return start_run(entry, true);
  // The result of one run of the body is in place; the body cannot be run on top of that.
  if (entry.region->begin_pass()) entry.region->abandon_pass();
  forget_search(entry);
  entry.state = State::Done;
  return 0;
}

void enter(Entry& entry, std::string_view name, const StoredAs& as,
           std::atomic<bool>* refused) noexcept {
  const int device = current_device();
  entry.region = find_region(name, device);
  if (entry.region != nullptr && entry.region->finished()) return;
  try {
    entry.search = new Search;
    entry.search->name = name;
    entry.search->refused = refused;
    entry.search->as = as;
    entry.search->device = device;
  } catch (const std::bad_alloc&) {
    forget_search(entry);
  }
}

/// Setters that come when nothing is searched have nothing to do.
template <class Set>
int set(contextune_entry* entry, const Set& call) noexcept {
  Entry& mine = of(entry);
  if (mine.search == nullptr) return 0;
  if (mine.state != State::Begun) {
    return fail("region '" + mine.search->name +
                "' has begun; set options between contextune_region_begin and the first "
                "contextune_region_next");
  }
  try {
    return call(*mine.search);
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

/// The body is done by those ranks. Where they are not known, it runs once, as it is.
int set_ranks(Entry& entry, Search& search, Runtime& runtime, intercept::RankGroup group) {
  if (!group.is_whole_job && group.ranks.empty()) {
    const std::string text =
        "region '" + search.name + "' is not tuned: its ranks were not found: " + group.why;
    runtime.log().fallback(group.reason, search.name, {},
                           "The region's body runs once, as it is: " + group.why + ".");
    entry.region = nullptr;
    entry.untuned = true;
    entry.state = State::Begun;
    forget_search(entry);
    return fail(text);
  }
  // A problem of a function has its group in its key.
  if (!group.is_whole_job && search.as.kind == StoredKind::Region) {
    search.name += "{group=" + text_of_ranks(group.ranks) + "}";
    entry.region = find_region(search.name, search.device);
  }
  search.together = group.is_whole_job ? std::vector<std::uint32_t>() : std::move(group.ranks);
  if (entry.region != nullptr && entry.region->finished()) forget_search(entry);
  return 0;
}

}  // namespace

void begin_region(contextune_entry* entry, const char* name) noexcept {
  Entry& mine = *new (&entry->opaque[1]) Entry{nullptr, nullptr, State::Begun, false};
  if (runtime() == nullptr || name == nullptr) return;
  enter(mine, name, {}, nullptr);
}

void begin_region_as(contextune_entry* entry, std::string_view name, const StoredAs& as,
                     std::atomic<bool>& refused) noexcept {
  Entry& mine = *new (&entry->opaque[1]) Entry{nullptr, nullptr, State::Begun, false};
  if (runtime() != nullptr) enter(mine, name, as, &refused);
}

void begin_region_of(contextune_entry* entry, contextune_tunable* tunable, uint32_t key) noexcept {
  Entry& mine = *new (&entry->opaque[1]) Entry{nullptr, nullptr, State::Begun, false};
  TunableProblem* problem = tunable == nullptr ? nullptr : tunable->problem(key);
  if (problem == nullptr || runtime() == nullptr) return;
  try {
    enter(mine, tunable->region_name(*problem),
          {StoredKind::Function, tunable->name, tunable->site_name, problem->key},
          &problem->refused);
    if (!problem->group.empty()) static_cast<void>(set_region_group(entry, problem->group.c_str()));
  } catch (const std::bad_alloc&) {
    // No name, no region: the body runs once.
  }
}

int region_tunes(const contextune_entry* entry) noexcept {
  return of(entry).search != nullptr ? 1 : 0;
}

int set_region_option(contextune_entry* entry, const char* name, const char* value) noexcept {
  return set(entry, [&](Search& search) {
    const std::string option = name == nullptr ? "" : name;
    const std::string text = value == nullptr ? "" : value;
    if (option == "repeatable") {
      search.repeatable = text == "true" || text == "1" || text == "on" || text == "yes";
      const bool no = text == "false" || text == "0" || text == "off" || text == "no";
      return search.repeatable || no
                 ? 0
                 : fail("option repeatable is '" + text + "'; it must be on or off");
    }
    Options changed = search.author;
    if (const std::string wrong = parse_option(changed, option, text); !wrong.empty()) {
      return fail("region '" + search.name + "': " + wrong);
    }
    for (const OptionInfo& info : option_table()) {
      if (info.name != option || info.scope == OptionScope::Region) continue;
      return fail("option " + option + " is none of a region; set it with " + info.variable +
                  ", not for region '" + search.name + "'");
    }
    search.author = changed;
    return 0;
  });
}

int add_restore_buffer(contextune_entry* entry, void* pointer, size_t size_bytes) noexcept {
  return set(entry, [&](Search& search) {
    search.spans.push_back({pointer, size_bytes});
    return 0;
  });
}

int set_restore_call(contextune_entry* entry, int (*restore)(void* user), void* user) noexcept {
  return set(entry, [&](Search& search) {
    search.restore = restore;
    search.restore_user = user;
    return 0;
  });
}

int set_region_communicator(contextune_entry* entry, void* communicator) noexcept {
  return set(entry, [&](Search& search) {
    Runtime* const now = runtime();
    if (now == nullptr || communicator == nullptr) return 0;
    const intercept::Uncancelled uncancelled;
    return set_ranks(of(entry), search, *now, group_of(*now, communicator));
  });
}

int set_region_group(contextune_entry* entry, const char* ranks) noexcept {
  return set(entry, [&](Search& search) {
    Runtime* const now = runtime();
    if (now == nullptr || ranks == nullptr || *ranks == '\0') return 0;
    const intercept::Uncancelled uncancelled;
    return set_ranks(of(entry), search, *now, now->ranks().named(ranks_of_text(ranks)));
  });
}

int region_untuned(const contextune_entry* entry) noexcept {
  return of(entry).untuned ? 1 : 0;
}

void make_passes_together(contextune_entry* entry, std::vector<std::uint32_t> ranks) noexcept {
  if (Search* const search = of(entry).search) search->together = std::move(ranks);
}

void time_rows(contextune_entry* entry) noexcept {
  if (Search* const search = of(entry).search) search->rows = true;
}

int next_pass(contextune_entry* entry) noexcept {
  Entry& mine = of(entry);
  // Of an entry that only runs its body, the region itself sees to that.
  std::optional<intercept::Uncancelled> uncancelled;
  if (mine.search != nullptr) uncancelled.emplace();
  switch (mine.state) {
    case State::Begun:
      return start_first_run(mine);
    case State::Pass:
      return finish_pass(mine);
    case State::Check:
      return finish_check(mine, true);
    case State::Last:
      mine.region->end_entry();
      break;
    case State::Through:
    case State::Done:
      break;
  }
  mine.state = State::Done;
  return 0;
}

void end_region(contextune_entry* entry) noexcept {
  Entry& mine = of(entry);
  std::optional<intercept::Uncancelled> uncancelled;
  if (mine.search != nullptr) uncancelled.emplace();
  if (mine.state == State::Pass) {
    mine.region->abandon_pass();
    static_cast<void>(mine.search->undo());
  } else if (mine.state == State::Check) {
    static_cast<void>(finish_check(mine, false));
  } else if (mine.state == State::Last) {
    mine.region->end_entry();
  }
  forget_search(mine);
  mine.state = State::Done;
}

}  // namespace contextune::api

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "core/submission/period_finder.hpp"

/// Reads a finder as its caller does, and holds it to what it promises of every step: an entry that
/// is complete is made of just the tokens that its period has.
class PeriodReader {
 public:
  struct Entry {
    std::uint32_t id;
    std::uint64_t begin;  ///< its first step
    std::uint64_t length;
  };

  contextune::PeriodStep see(std::uint64_t token) {
    using contextune::PeriodStep;
    const PeriodStep step = finder.see(token);
    const std::uint64_t at = steps_.size();
    steps_.push_back(token);
    switch (step) {
      case PeriodStep::Outside:
        demand(!open_, "outside while an entry is open");
        break;
      case PeriodStep::Inside:
        demand(open_, "inside no entry");
        demand(matched_ < expected_.size() && expected_[matched_] == token, "not the token inside");
        ++matched_;
        break;
      case PeriodStep::Begins:
        if (open_) complete(at);
        begin(at, token);
        break;
      case PeriodStep::Broken:
        demand(open_, "broken without an entry");
        open_ = false;
        ++broken;
        break;
      case PeriodStep::Restarts:
        demand(open_, "restarted without an entry");
        ++broken;
        begin(at, token);
        break;
    }
    return step;
  }
  /// Tells the finder that entries last too long.
  bool keep_inside() {
    const bool kept = finder.keep_inside();
    open_ = open_ && !kept;
    return kept;
  }
  void see(std::span<const std::uint64_t> tokens) {
    for (const std::uint64_t token : tokens) see(token);
  }

  /// What the lists promise at any time. Empty if they keep it.
  [[nodiscard]] std::string broken_promise() const {
    if (!broken_promise_.empty()) return broken_promise_;
    const auto periods = finder.found();
    if (periods.size() > contextune::KnownPeriods::most) return "too many periods";
    for (std::size_t i = 0; i < periods.size(); ++i) {
      const contextune::FoundPeriod& period = periods[i];
      if (period.steps != period.entries * period.length) return "steps are not those of entries";
      if (period.steps > finder.steps()) return "a step counts twice";
      if (i > 0 && period.steps > periods[i - 1].steps) return "not sorted";
      const auto tokens = finder.tokens(period.id);
      if (tokens.size() != period.length) return "other tokens";
      for (std::size_t cut = 1; cut < tokens.size(); ++cut)
        if (tokens.size() % cut == 0 &&
            std::equal(tokens.begin() + static_cast<std::ptrdiff_t>(cut), tokens.end(),
                       tokens.begin()))
          return "a cycle is several of another";
      for (std::size_t j = 0; j < i; ++j)
        if (periods[j].length == period.length && periods[j].identity == period.identity)
          return "one cycle twice";
    }
    using contextune::PeriodFinder;
    // The steps that follow a search may pay for it.
    const std::uint64_t searches = 400'000;
    if (finder.work() > contextune::SearchPace::work_a_step * finder.steps() + searches)
      return "too much work: " + std::to_string(finder.work());
    return {};
  }
  /// How often a period came in all steps, without a step that counts twice: no finder may say
  /// more.
  [[nodiscard]] std::uint64_t times_seen(std::uint32_t id) const {
    const auto tokens = finder.tokens(id);
    std::uint64_t times = 0;
    for (auto at = steps_.begin();; ++times) {
      at = std::search(at, steps_.end(), tokens.begin(), tokens.end());
      if (at == steps_.end()) return times;
      at += static_cast<std::ptrdiff_t>(tokens.size());
    }
  }
  [[nodiscard]] const std::vector<std::uint64_t>& steps() const { return steps_; }

  contextune::PeriodFinder finder;
  std::vector<Entry> entries;  ///< complete ones
  std::uint64_t broken = 0;

 private:
  void demand(bool kept, const char* promise) {
    if (!kept && broken_promise_.empty())
      broken_promise_ = std::string(promise) + " at step " + std::to_string(steps_.size() - 1);
  }
  void begin(std::uint64_t at, std::uint64_t token) {
    open_ = true;
    begin_ = at;
    id_ = finder.followed();
    const auto tokens = finder.tokens(id_);
    expected_.assign(tokens.begin(), tokens.end());
    demand(!expected_.empty() && expected_[0] == token, "begins with another token");
    demand(finder.followed_length() == expected_.size(), "another length");
    matched_ = 1;
  }
  void complete(std::uint64_t at) {
    demand(matched_ == expected_.size() && at - begin_ == matched_, "an entry was cut short");
    entries.push_back({id_, begin_, at - begin_});
  }

  std::vector<std::uint64_t> steps_;  ///< all that it saw
  std::string broken_promise_;
  std::vector<std::uint64_t> expected_;
  std::size_t matched_ = 0;
  std::uint64_t begin_ = 0;
  std::uint32_t id_ = 0;
  bool open_ = false;
};

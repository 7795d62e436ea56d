#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The runs of one search between its entries, which only look at what configs compute, and what
/// they are to look at. Any thread.
class Screening {
 public:
  using Trials = std::vector<std::pair<const Site*, std::uint32_t>>;

  explicit Screening(Search& search) noexcept : search_(search) {}

  /// Whether the config may be among what the search tries: it is not known from earlier runs.
  [[nodiscard]] bool may_try(const Site& site, std::uint32_t config) const;
  /// The same, but for the winner of an earlier run that holds.
  [[nodiscard]] bool has_to_time(const Site& site, std::uint32_t config) const;
  /// Those that are to be tried alone before anything else is.
  [[nodiscard]] std::vector<std::uint32_t> suspects(const Site& site) const;
  /// Some of those are not tried yet, and will be.
  [[nodiscard]] bool has_suspects() const;
  /// Takes in what has come of trials. True: the GPU has not ended all of them.
  [[nodiscard]] bool awaits_trials(double now);
  /// Whether this process or an earlier one has compared it, and it was right.
  [[nodiscard]] bool was_right(const Site& site, std::uint32_t config) const;
  /// These compute what the defaults do: a run of them was compared.
  void were_right(const Trials& trials);
  /// It is never run: nobody has compared what it computes. Between entries.
  void leave_uncompared(const Site& site, std::uint32_t config, const std::string& text);
  /// Those of the configs that the site was added without are not tried in this run only.
  void leave_out(const Site& site, std::span<const std::uint32_t> configs);
  /// A config that the site was added without computes something else than the default.
  void was_wrong(const Site& site, std::uint32_t config);
  /// The config computes something else than the default: it is never run again. Between entries.
  void reject(const Site& site, std::uint32_t config);
  /// Such a run is about to be made with these configs.
  void begin(const Trials& trials);
  /// It has ended.
  void end();

 private:
  Search& search_;
};

}  // namespace contextune::intercept

#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/compare/side.hpp"

namespace contextune::cli {

/// How often each word was said.
struct WordCounts {
  std::array<std::size_t, 4> of_word{};

  void add(Word word) { ++of_word[static_cast<std::size_t>(word)]; }
  [[nodiscard]] std::size_t of(Word word) const { return of_word[static_cast<std::size_t>(word)]; }
  [[nodiscard]] std::size_t all() const {
    return of_word[0] + of_word[1] + of_word[2] + of_word[3];
  }
};

/// A parameter in which two winners differ; empty: that one does not have it.
struct DifferingParameter {
  std::string name;
  std::string a;
  std::string b;
};

/// A site of both. Points into the sides, as all that follows.
struct SitePair {
  const ComparedSite* a = nullptr;
  const ComparedSite* b = nullptr;
  Change settled;
  Change by_default;
  bool loosely = false;         ///< their keys differ in what another build changes
  bool winners_differ = false;  ///< both are known
  std::vector<DifferingParameter> differing;
};

struct GainPair {
  const ComparedGain* a = nullptr;
  const ComparedGain* b = nullptr;
  Change change;
};

struct RegionPair {
  const ComparedRegion* a = nullptr;
  const ComparedRegion* b = nullptr;
  bool other_hardware = false;  ///< of a store's entries
  std::vector<SitePair> sites;
  std::vector<GainPair> gains;
  std::vector<const ComparedSite*> only_in_a;
  std::vector<const ComparedSite*> only_in_b;
};

/// A fact in which the sides differ.
struct DifferingFact {
  std::string name;
  std::string a;
  std::string b;
};

struct SideComparison {
  double margin = 0;
  std::vector<DifferingFact> facts;
  bool is_same_run = false;    ///< everything is compared with itself
  bool has_other_gpu = false;  ///< their times are of different GPUs
  bool is_simulated_and_real = false;
  std::vector<RegionPair> regions;
  std::vector<const ComparedRegion*> only_in_a;
  std::vector<const ComparedRegion*> only_in_b;
  WordCounts settled;
  WordCounts defaults;
  WordCounts gains;

  [[nodiscard]] bool has_slower() const {
    return settled.of(Word::Slower) + gains.of(Word::Slower) > 0;
  }
  [[nodiscard]] bool is_empty() const { return settled.all() + gains.all() == 0; }
};

/// Both sides must outlive it.
[[nodiscard]] SideComparison compare_sides(const ComparedSide& a, const ComparedSide& b,
                                           double margin);

}  // namespace contextune::cli

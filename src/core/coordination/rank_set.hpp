#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <vector>

#include "core/value/byte_stream.hpp"

namespace contextune {

/// The ranks of a group, in ascending order. Ranks at equal distances are held as one run, so that
/// the groups of a large job take a few bytes to hold, compare and send: all ranks, those of a
/// host, or one of each host are a single run.
///
/// Whoever puts ranks in does so in their order. Another order is kept as it is, and ascends() says
/// so.
class RankSet {
 public:
  struct Run {
    std::uint32_t first = 0;
    std::uint32_t distance = 0;  ///< from one rank to the next; 0 for a single one
    std::uint32_t count = 0;
    std::uint32_t before = 0;  ///< ranks in the runs before it
    [[nodiscard]] std::uint64_t last() const noexcept {
      return first + std::uint64_t{distance} * (count - 1U);
    }
    auto operator<=>(const Run&) const = default;
  };

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::uint32_t;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::uint32_t*;
    using reference = std::uint32_t;

    Iterator() = default;
    Iterator(const Run* run, std::uint32_t index) : run_(run), index_(index) {}
    std::uint32_t operator*() const noexcept { return run_->first + run_->distance * index_; }
    Iterator& operator++() noexcept {
      if (++index_ < run_->count) return *this;
      ++run_;
      index_ = 0;
      return *this;
    }
    Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Run* run_ = nullptr;
    std::uint32_t index_ = 0;
  };
  using value_type = std::uint32_t;
  using const_iterator = Iterator;

  RankSet() = default;
  RankSet(std::initializer_list<std::uint32_t> ranks)
      : RankSet(std::span(ranks.begin(), ranks.size())) {}
  RankSet(const std::vector<std::uint32_t>& ranks)  // NOLINT(google-explicit-constructor)
      : RankSet(std::span(ranks)) {}
  explicit RankSet(std::span<const std::uint32_t> ranks) {
    for (const std::uint32_t rank : ranks) push_back(rank);
  }

  /// All ranks of a job.
  [[nodiscard]] static RankSet all_of(std::uint32_t num_ranks);

  void push_back(std::uint32_t rank);
  /// Adds a whole run behind the others. @return false: ranks that are put in one by one would not
  /// make these runs, or do not ascend; nothing is added then
  [[nodiscard]] bool push_back(Run run);

  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint32_t front() const noexcept { return runs_.front().first; }
  [[nodiscard]] std::uint32_t back() const noexcept {
    return static_cast<std::uint32_t>(runs_.back().last());
  }
  [[nodiscard]] Iterator begin() const noexcept { return {runs_.data(), 0}; }
  [[nodiscard]] Iterator end() const noexcept { return {runs_.data() + runs_.size(), 0}; }
  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }

  /// Whether the ranks ascend, as everything below takes for granted.
  [[nodiscard]] bool ascends() const noexcept;
  [[nodiscard]] bool contains(std::uint32_t rank) const noexcept {
    return place_of(rank) != no_place;
  }
  /// Counted from 0 in ascending order; no_place: the rank is not among them.
  [[nodiscard]] std::size_t place_of(std::uint32_t rank) const noexcept;
  static constexpr std::size_t no_place = ~std::size_t{0};
  /// Those of which `keep(rank)` says so.
  template <class Keep>
  [[nodiscard]] RankSet filtered(Keep keep) const {
    RankSet kept;
    for (const std::uint32_t rank : *this)
      if (keep(rank)) kept.push_back(rank);
    return kept;
  }

  void write_to(ByteWriter& writer) const;
  /// Adds the ranks that were written. False: they do not ascend, or are told in another way than
  /// they are written. Where bytes are missing, the reader has failed.
  [[nodiscard]] bool read_from(ByteReader& reader);

  bool operator==(const RankSet&) const = default;
  /// Some order, for maps.
  auto operator<=>(const RankSet&) const = default;

 private:
  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

}  // namespace contextune

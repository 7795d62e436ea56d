#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/buckets.hpp>
#include <contextune/key.hpp>
#include <contextune/key_words.hpp>

namespace contextune::detail {

/// The key of a call as it is looked up.
struct CallKey {
  KeyWords words;
  std::optional<Key> authors;  ///< the author's key, where the words are only a hash of it

  /// Adds what a key function returned.
  template <class Result>
  void add(const Result& result) {
    if constexpr (are_whole<Result>) {
      add_words(words, result);
    } else {
      authors = key_of_result(result);
      words.add(authors->hash());
    }
  }
};

/// A problem of a function, a Tunable or a choice: a key, its size bucket included. Made at its
/// first call, lives as long as what has it. Non-atomic members are written before publication.
struct KnownProblem {
  static constexpr std::uint32_t untuned = CONTEXTUNE_UNTUNED;

  CallKey at;
  /// The number that the library gave it; untuned: the default runs.
  std::uint32_t number = untuned;

  // The members below are those of a function's problem.

  Key key;                              ///< as the log has it, with the size bucket
  std::vector<std::uint32_t> kept;      ///< configs, the default first; empty: `failure` says why
  std::uint32_t num_failed = 0;         ///< defaults that could not run before the one of now
  std::string failure;                  ///< what every call throws
  void* communicator = nullptr;         ///< whose ranks do it
  std::string why_untuned = {};         ///< with no number: its ranks were not found, a sentence
  std::optional<std::uint64_t> size{};  ///< the largest of its bucket, to find near ones by

  /// The problem whose winner this one runs, while it has none of its own; looked for when the
  /// function's num_settled was `near_as_of`.
  std::atomic<const KnownProblem*> near{nullptr};
  std::atomic<std::uint64_t> near_as_of{0};
  std::atomic<bool> takes_near{true};  ///< false: what was near could not be launched here

  /// Its ranks did not agree when it was to be tuned.
  std::atomic<bool> is_disagreed{false};

  [[nodiscard]] bool keeps(std::uint32_t config) const noexcept {
    return std::find(kept.begin(), kept.end(), config) != kept.end();
  }
};

/// The problems of one function, Tunable or choice by the keys of its calls. find() takes no lock
/// and allocates nothing. Any thread.
class ProblemTable {
 public:
  ProblemTable();
  ~ProblemTable();
  ProblemTable(const ProblemTable&) = delete;
  ProblemTable& operator=(const ProblemTable&) = delete;

  /// Null: it was never added.
  // NOLINTNEXTLINE(bugprone-exception-escape): no value is left without one
  [[nodiscard]] KnownProblem* find(const CallKey& key) const noexcept {
    return find(key.words, key.authors ? &*key.authors : nullptr);
  }
  /// @param authors null: the words say it all
  // NOLINTNEXTLINE(bugprone-exception-escape): as above
  [[nodiscard]] KnownProblem* find(const KeyWords& words, const Key* authors) const noexcept {
    const Slots& slots = *slots_.load(std::memory_order_acquire);
    for (std::uint64_t at = words.hash();; ++at) {
      KnownProblem* const there = slots.at[at & slots.mask].load(std::memory_order_acquire);
      if (there == nullptr) return nullptr;
      if (!(there->at.words == words)) continue;
      if (authors == nullptr ? !there->at.authors : there->at.authors == *authors) return there;
    }
  }

  /// No problem is to be added any more: keys that change all the time would fill the memory.
  [[nodiscard]] bool is_full() const noexcept {
    return in_use_.load(std::memory_order_relaxed) >= most;
  }

  /// Publishes a problem, unless another thread was faster: gives the one that counts.
  KnownProblem& add(std::unique_ptr<KnownProblem> problem);

  /// Takes another problem's place: what is found from now on.
  void replace(const KnownProblem& old, std::unique_ptr<KnownProblem> by);

  /// All problems that differ from this one in their size only. Takes the lock.
  [[nodiscard]] std::vector<const KnownProblem*> of_other_sizes(const KnownProblem& problem) const;

 private:
  static constexpr std::size_t most = 16'384;  ///< fewer than contextune_tunable_key can number

  struct Slots {
    explicit Slots(std::size_t count);
    std::uint64_t mask;
    std::unique_ptr<std::atomic<KnownProblem*>[]> at;
  };
  void grow();
  static void insert(const Slots& slots, KnownProblem& problem) noexcept;

  mutable std::mutex mutex_;
  std::atomic<const Slots*> slots_;
  std::vector<std::unique_ptr<Slots>> all_slots_;  ///< smaller ones too: they may still be read
  std::vector<std::unique_ptr<KnownProblem>> problems_;  ///< replaced ones too
  std::atomic<std::size_t> in_use_{0};
};

}  // namespace contextune::detail

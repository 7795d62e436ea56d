#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <contextune/contextune.h>
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

 private:
  static constexpr std::size_t most = 16'384;  ///< fewer than contextune_tunable_key can number

  struct Slots {
    explicit Slots(std::size_t count);
    std::uint64_t mask;
    std::unique_ptr<std::atomic<KnownProblem*>[]> at;
  };
  void grow();
  static void insert(const Slots& slots, KnownProblem& problem) noexcept;

  std::mutex mutex_;
  std::atomic<const Slots*> slots_;
  std::vector<std::unique_ptr<Slots>> all_slots_;  ///< smaller ones too: they may still be read
  std::vector<std::unique_ptr<KnownProblem>> problems_;
  std::atomic<std::size_t> in_use_{0};
};

}  // namespace contextune::detail

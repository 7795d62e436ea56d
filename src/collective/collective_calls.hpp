#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "preload/contextune_abi.h"

namespace contextune::collective {

/// The known facts of a communicator of the program.
struct KnownCommunicator {
  const void* handle = nullptr;  ///< the program's ncclComm_t; null: not known yet
  const void* parent = nullptr;  ///< of a split, a shrunken or a grown one
  void* library = nullptr;       ///< a handle of its NCCL
  /// Hash of the id's bytes, the same on all ranks. 0: none.
  std::uint64_t unique_id = 0;
  /// NCCL's own hash, before 2.28 unique_id; the same on all ranks. 0: it has none.
  std::uint64_t tuner_id = 0;
  std::int64_t tuner = -1;          ///< number of its tuner context; negative: not known
  int ranks = 0;                    ///< 0: not known
  int nodes = 0;                    ///< 0: not known
  bool shares_with_splits = false;  ///< its splits are aborted with it, and it with them
};

/// The call of NCCL that this thread is in. Everything is as of the call that the program made;
/// `call` is null between calls.
struct CallInFlight {
  const contextune_nccl_call* call = nullptr;
  std::int64_t asked_tuner = -1;  ///< the context about which NCCL asked last; negative: none
  std::int64_t began_tuner = -1;  ///< the context that began during this call; negative: none

  /// Nothing is launched in the end: what is decided does not count.
  [[nodiscard]] bool is_simulated() const noexcept {
    return call != nullptr && call->fn == contextune_fn_ncclGroupSimulateEnd;
  }
  /// NCCL's question is about this very call, and not about a group. For a group NCCL would ask in
  /// an order of its own and about several operations at once.
  [[nodiscard]] bool is_lone_operation() const noexcept {
    return call != nullptr && call->group_depth == 0 &&
           (call->kind == contextune_nccl_collective ||
            call->kind == contextune_nccl_point_to_point);
  }
};

/// A communicator about which NCCL asks this process, once for each of its ranks that is here.
struct TunedCommunicator {
  std::uint64_t id = 0;  ///< KnownCommunicator::tuner_id
  int ranks = 0;
  int nodes = 0;
};

/// A question of NCCL to its tuner plugin, and where the answer goes.
struct TunerQuestion {
  std::uint64_t communicator = 0;  ///< tuner_id
  std::int64_t tuner = -1;
  const void* handle = nullptr;  ///< the program's ncclComm_t; null: not known yet
  int ranks = 0;
  int nodes = 0;
  int function = 0;  ///< NCCL's number: Broadcast 0, Reduce, AllGather, ReduceScatter, AllReduce 4
  /// Element size times the larger of what a rank sends and receives.
  std::uint64_t bytes = 0;
  int num_pipelined = 1;  ///< operations of the group that are done as this one
  /// Row after row, microseconds, as the user's own plugin left it; negative: no choice.
  float* table = nullptr;
  int algorithms = 0;
  int protocols = 0;
  int* channels = nullptr;
  /// This thread's call in flight; its `call` is null on a thread of NCCL's own.
  const CallInFlight* in_flight = nullptr;
};

/// Whoever decides about collectives.
class CollectiveDecider {
 public:
  virtual ~CollectiveDecider() = default;
  /// Any thread, at any time, inside NCCL: takes no lock and waits for nothing.
  /// @return false, with nothing changed, where the choice of NCCL or the user's own plugin stands
  [[nodiscard]] virtual bool decide(const TunerQuestion& question) noexcept = 0;
  /// The last question about a communicator was asked.
  virtual void forget(std::int64_t tuner) noexcept = 0;
};

/// The program's calls of NCCL, as the frontend shows them: which communicators there are, and what
/// this thread is in the midst of. Any thread; nothing throws. Does not decide anything itself.
class CollectiveCalls {
 public:
  static constexpr std::int64_t max_tuners =
      1024;  ///< communicators at a time that are asked about

  CollectiveCalls() noexcept = default;
  CollectiveCalls(const CollectiveCalls&) = delete;
  CollectiveCalls& operator=(const CollectiveCalls&) = delete;

  void before(const contextune_nccl_call& call) noexcept;
  void after(const contextune_nccl_call& call) noexcept;

  /// @return the number under which NCCL asks from now on. It is never given out twice: counts of
  /// an ended communicator must not go on for another. -1: the user's choice stands, or there are
  /// too many communicators
  [[nodiscard]] std::int64_t begin_tuner(const contextune_tuner_comm& comm) noexcept;
  /// Asks the decider. Takes no lock, allocates nothing, waits for nothing.
  /// @param question.tuner as begin_tuner said; who the communicator is, is filled in here
  [[nodiscard]] bool decide(TunerQuestion question) noexcept;
  void end_tuner(std::int64_t tuner) noexcept;
  /// The communicator of that number is this one of the program's. Takes no lock.
  void learn_handle(std::int64_t tuner, const void* communicator) noexcept;

  /// @param decider outlives this; null: nobody decides
  void set_decider(CollectiveDecider* decider) noexcept {
    decider_.store(decider, std::memory_order_release);
  }

  [[nodiscard]] std::optional<KnownCommunicator> find(const void* communicator) const noexcept;
  /// All whose handle is known.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<KnownCommunicator> known() const;
  /// All about which NCCL asks now.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<TunedCommunicator> tuned() const;
  /// Whether there was ever a communicator whose other ranks may be other processes.
  [[nodiscard]] bool has_peers() const noexcept {
    return has_peers_.load(std::memory_order_relaxed);
  }
  /// Whether there were ever more communicators at a time than are asked about.
  [[nodiscard]] bool had_too_many() const noexcept {
    return had_too_many_.load(std::memory_order_relaxed);
  }

 private:
  /// A tuner context as decide() reads it; written before its number is given out.
  struct Tuner {
    std::atomic<bool> is_taken{false};
    std::atomic<std::int64_t> number{-1};  ///< its place in `tuners_`, and `uses` times max_tuners
    std::int64_t uses = 0;
    std::atomic<std::uint64_t> id{0};
    std::atomic<int> ranks{0};
    std::atomic<int> nodes{0};
    std::atomic<const void*> communicator{nullptr};
  };

  void made(const contextune_nccl_call& call) noexcept;
  void add(const contextune_nccl_call& call, int index);
  [[nodiscard]] Tuner* find_tuner(std::int64_t number) noexcept;  ///< null: it has ended
  void learn_tuner(const void* communicator, std::int64_t number) noexcept;

  std::atomic<CollectiveDecider*> decider_{nullptr};
  std::atomic<bool> has_peers_{false};
  std::atomic<bool> had_too_many_{false};
  std::array<Tuner, max_tuners> tuners_;
  mutable std::mutex mutex_;
  std::map<const void*, KnownCommunicator> communicators_;
};

}  // namespace contextune::collective

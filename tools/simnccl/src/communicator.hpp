#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "error.hpp"
#include "segment.hpp"
#include "tuner.hpp"

namespace simnccl {

/// What a communicator is made from.
struct CommunicatorPlan {
  ncclUniqueId id{};
  int ranks = 0, rank = 0;
  std::uint64_t hash = 0;  // the same on all ranks
  int device = 0;
  CUcontext context = nullptr;
  bool blocking = true;
  int channels = 0;
  bool split_share = false;  // with its splits, so that one abort ends all
};

/// One rank of a communicator. Lives until its handle is gone and its last work on a stream is
/// over. Its functions are called by one thread at a time, except the const ones.
class Communicator {
 public:
  /// Waits for the other ranks; `aborted` ends that and all later waits. @throws Error
  Communicator(const CommunicatorPlan& plan, std::shared_ptr<std::atomic<bool>> aborted);

  /// Waits until all ranks have called it with the same tag, for ever if they do not, and gives
  /// what they said. `said` has at most ExchangeSlot::payload_bytes. @throws Error when aborted
  [[nodiscard]] std::vector<std::string> exchange(std::uint64_t tag, std::string_view said);
  /// Makes the first use of an algorithm possible: all ranks have to, and it takes time and memory
  /// of the device. @throws Error
  void connect(int algorithm);
  /// Splits the communicator; nothing for a rank without colour. @throws Error
  [[nodiscard]] bool split(int color, int key, CommunicatorPlan& child);
  /// Ends the tuner. No more work may be enqueued, nor captured work be launched.
  void end();
  /// The same, and gives device memory back, which waits for all work of the context. @throws Error
  void close();

  [[nodiscard]] const CommunicatorPlan& plan() const { return plan_; }
  [[nodiscard]] int ranks() const { return plan_.ranks; }
  [[nodiscard]] int rank() const { return plan_.rank; }
  [[nodiscard]] const Segment& segment() const { return segment_; }
  [[nodiscard]] const Tuner& tuner() const { return *tuner_; }
  [[nodiscard]] bool aborted() const { return aborted_->load(std::memory_order_acquire); }

  /// Which noise its operations have; the same on all ranks.
  [[nodiscard]] std::uint64_t noise_stream() const { return noise_stream_; }
  [[nodiscard]] std::uint64_t next_collective() { return collectives_++; }
  [[nodiscard]] std::uint64_t next_sent(int to) { return sent_[static_cast<std::size_t>(to)]++; }
  [[nodiscard]] std::uint64_t next_received(int from) {
    return received_[static_cast<std::size_t>(from)]++;
  }

 private:
  void meet(std::uint64_t tag, double costs_seconds);

  CommunicatorPlan plan_;
  std::shared_ptr<std::atomic<bool>> aborted_;
  Segment segment_;
  std::unique_ptr<Tuner> tuner_;
  std::uint64_t noise_stream_ = 0;
  std::uint64_t exchanges_ = 0, collectives_ = 0;
  std::vector<std::uint64_t> sent_, received_;
  unsigned connected_ = 0;  // a bit for each algorithm
  int splits_ = 0;
  std::vector<CUdeviceptr> buffers_;
};

/// FNV-1a.
[[nodiscard]] std::uint64_t digest(std::string_view bytes, std::uint64_t seed = 0xCBF29CE484222325);

}  // namespace simnccl

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simnccl {

/// What one rank does in one collective. Two ranks that differ in it never get to the end.
struct Signature {
  std::int32_t function = 0, type = 0, op = 0, root = 0;
  std::int32_t algorithm = 0, protocol = 0, channels = 0, parts = 0;
  std::uint64_t bytes = 0;
  std::uint64_t digest = 0;  // of the counts of all parts
  bool operator==(const Signature&) const = default;
};

// In what follows a number N in a `posted`, `arrived`, ... says: done for sequence number N - 1. It
// is stored last, with release, so that whoever sees it sees the rest.

/// A rank's part in a collective, in one of its slots.
struct CollectiveSlot {
  std::atomic<std::uint64_t> posted, arrived;
  // Of all ranks, in the slot of rank 0: how many have read, and the last number that all have.
  std::atomic<std::uint64_t> readers, released;
  double arrival;  // virtual seconds
  double seconds;  // that it takes from the last arrival on
  Signature signature;
};

/// A message from one rank to another.
struct MessageSlot {
  std::atomic<std::uint64_t> posted, fetched, sender_arrived, receiver_arrived;
  double sender_arrival, receiver_arrival;
  std::uint64_t bytes;
};

/// What a rank tells all others from its host, see Exchange.
struct ExchangeSlot {
  static constexpr std::size_t payload_bytes = 192;
  std::atomic<std::uint64_t> count;
  std::uint64_t tag[2];
  char payload[2][payload_bytes];
};

constexpr std::uint64_t collective_slots = 4;
constexpr std::uint64_t message_slots = 8;
constexpr std::size_t collective_slot_bytes = std::size_t{256} << 20;
constexpr std::size_t message_slot_bytes = std::size_t{64} << 20;

/// The memory that the ranks of one communicator share: a file without a name, which goes away with
/// its last process. It is large and sparse: what was never written takes no memory.
class Segment {
 public:
  /// A new file. @throws Error
  static int create_file(int ranks);
  /// Takes the file over. @throws Error
  Segment(int file, int ranks);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  [[nodiscard]] ExchangeSlot& exchange(int rank) const;
  [[nodiscard]] CollectiveSlot& collective(int rank, std::uint64_t sequence) const;
  [[nodiscard]] MessageSlot& message(int from, int to, std::uint64_t sequence) const;
  [[nodiscard]] std::byte* collective_data(int rank, std::uint64_t sequence) const;
  [[nodiscard]] std::byte* message_data(int from, int to, std::uint64_t sequence) const;
  /// Gives the pages of a stretch of data back.
  static void drop(std::byte* data, std::size_t bytes);

 private:
  std::size_t ranks_;
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

}  // namespace simnccl

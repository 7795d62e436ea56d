#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collective/all_to_all.hpp"
#include "collective/collective.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// The kind of all operations that only move data; any number above 0.
inline constexpr std::uint8_t movement_kind = 1;

struct OfferedOperation {
  const void* communicator = nullptr;
  collective::Function function = collective::Function::Broadcast;
  std::uint8_t kind = 0;  ///< of a LeaseKey; 0: not known

  [[nodiscard]] bool operator==(const OfferedOperation& other) const = default;
};

/// The operations of the group that a thread has open, or the one that it is in. Allocates nothing
/// and needs no destructor.
class OfferedOperations {
 public:
  static constexpr std::size_t most_kept = 64;

  /// Takes note of an operation; other calls are none.
  void add(const contextune_nccl_call& call) noexcept;
  void clear() noexcept;

  /// Those that are not alike: a long group has few of them.
  [[nodiscard]] std::span<const OfferedOperation> kept() const noexcept {
    return {kept_.data(), num_kept_};
  }
  /// Whether kept() has all, and not only the first most_kept.
  [[nodiscard]] bool keeps_all() const noexcept { return keeps_all_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }

  /// The communicator of all; null: there are several, or not all are known.
  [[nodiscard]] const void* only_communicator() const noexcept;
  /// The kind of all operations that NCCL's question can be about; 0: several kinds; absent: not
  /// known.
  /// @param function     NCCL's number
  /// @param communicator null: not known, but where all operations are of one kind it is that
  [[nodiscard]] std::optional<std::uint8_t> kind_of(int function,
                                                    const void* communicator) const noexcept;

  /// Whose messages there are; null: there are none.
  [[nodiscard]] const void* exchanging() const noexcept { return exchanging_; }
  /// The exchange between all `ranks` of that communicator that they are; absent: another thing.
  [[nodiscard]] std::optional<collective::AllToAll> exchange(int ranks) const noexcept;

 private:
  void add_message(const contextune_nccl_call& call) noexcept;

  void keep(const OfferedOperation& operation) noexcept;

  std::uint32_t count_ = 0;
  std::uint32_t num_kept_ = 0;
  bool keeps_all_ = true;
  std::array<OfferedOperation, most_kept> kept_{};
  const void* exchanging_ = nullptr;
  bool exchanges_otherwise_ = false;  ///< several exchanges, or of several communicators
  collective::PeerCalls messages_;
  collective::AllToAll called_;  ///< of ncclAlltoAll; 0 elements: none
};

}  // namespace contextune::intercept

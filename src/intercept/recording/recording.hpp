#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/value/fallback_reason.hpp"
#include "intercept/program/driver_call.hpp"
#include "intercept/recording/recorded_launch.hpp"

namespace contextune::intercept {

/// An operation that a region had the GPU do. Streams are the program's own, so operations run
/// beside each other as in the original. Events are the replay's, so that those of the program keep
/// their times.
struct Operation {
  enum class Kind : std::uint8_t {
    Launch,
    Graph,        ///< the launch of a CUDA graph
    Call,         ///< a copy or a memset
    Record,       ///< of an event in a stream
    Wait,         ///< of a stream for an event that was recorded before, in the same recording
    Synchronise,  ///< of the host: with one stream, or (null) with all that the recording uses
    Collective    ///< a call of NCCL: a collective, or the begin or end of a group
  };
  Kind kind = Kind::Call;
  contextune_fn fn{};
  CUstream stream = nullptr;  ///< never null but for Synchronise and groups
  std::uint32_t event = 0;    ///< of Record and Wait: its number in the recording
  CUgraphExec graph = nullptr;
  std::unique_ptr<const RecordedLaunch> launch;
  std::unique_ptr<const contextune_nccl_call> collective;
  /// The arguments of a Call by value, in order. Host memory among them is in `host`.
  std::array<std::uint64_t, most_recorded_arguments> arguments{};

  /// The host's side of a copy: what it read, or where it writes instead of to the program.
  struct HostSide {
    std::size_t argument = 0;  ///< its place in `arguments`
    std::size_t size_bytes = 0;
    bool writes = false;  ///< the copy writes to the host
    bool pinned = false;
    const void* program = nullptr;  ///< the program's memory
    std::vector<std::byte> bytes;   ///< what it held: when it was read, or after the region
  };
  std::optional<HostSide> host;
};

/// The operations that one thread had the GPU do from the beginning of a region to its end, in
/// order.
struct Recording {
  std::vector<Operation> operations;
  std::uint32_t num_events = 0;
  std::vector<CUstream> streams;  ///< all that were used, each once
  std::size_t host_bytes = 0;     ///< that a replay takes for the host's side of copies
  std::uint32_t open_groups = 0;  ///< of NCCL, at the end: none, or it cannot be replayed

  /// Why it cannot be replayed; absent: it can.
  struct Obstacle {
    FallbackReason reason{};
    std::string text;    ///< "" stands for the sentence of the reason
    bool retry = false;  ///< another visit of the region may go better
  };
  std::optional<Obstacle> obstacle;
};

}  // namespace contextune::intercept

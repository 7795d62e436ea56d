#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "intercept/recording/recording.hpp"

namespace contextune::intercept {

/// Versions that tell whether memory or modules came or went.
struct ProgramVersions {
  std::uint64_t allocations = 0;
  std::uint64_t kernels = 0;
  bool operator==(const ProgramVersions&) const = default;
};

/// A recording that is being written: its operations so far, whose work they are, and what the host
/// may know of them. Each function returns or notes the obstacle that it finds. Used under the
/// recorder's mutex.
class OpenRecording {
 public:
  using Obstacle = Recording::Obstacle;

  OpenRecording() = default;
  /// @param thread whose work it is; 0: of the first to come
  /// @param context current where it began
  /// @param most_host_bytes that a replay may take for the host's side of copies
  OpenRecording(std::uint64_t thread, CUcontext context, const ProgramVersions& versions,
                std::size_t most_host_bytes)
      : thread_(thread),
        context_(context),
        versions_(versions),
        most_host_bytes_(most_host_bytes) {}

  [[nodiscard]] bool is_by(std::uint64_t thread) const noexcept { return thread_ == thread; }
  [[nodiscard]] bool is_obstructed() const noexcept { return recording_.obstacle.has_value(); }
  /// The first one counts.
  void obstruct(Obstacle obstacle) noexcept;

  /// This thread does something with that context current.
  [[nodiscard]] std::optional<Obstacle> claim(std::uint64_t thread, CUcontext context);
  [[nodiscard]] std::optional<Obstacle> add(Operation operation);
  /// The host's side of a copy that is to be added: argument `at` of the operation.
  [[nodiscard]] std::optional<Obstacle> note_host_side(Operation& operation, std::size_t at,
                                                       std::size_t size_bytes, bool writes,
                                                       bool pinned);
  /// A copy has been added. @param host_waits for it
  void note_copy(bool writes_to_host, bool host_waits) noexcept;
  /// The host waits for work. @return whether nothing is to be added for it
  [[nodiscard]] bool note_synchronise() noexcept;

  /// The number of an event that is recorded.
  [[nodiscard]] std::uint32_t number_of(CUevent event);
  /// The same; absent: it was not recorded in here.
  [[nodiscard]] std::optional<std::uint32_t> find_event(CUevent event) const;

  /// Groups of NCCL that have begun and not ended.
  [[nodiscard]] std::uint32_t open_groups() const noexcept { return recording_.open_groups; }
  void note_group(contextune_nccl_fn fn) noexcept;

  /// @param thread that ends it
  [[nodiscard]] Recording end(std::uint64_t thread, const ProgramVersions& versions) noexcept;

 private:
  Recording recording_;
  std::uint64_t thread_ = 0;
  CUcontext context_ = nullptr;
  ProgramVersions versions_;
  std::size_t most_host_bytes_ = 0;
  /// Where copies wrote to the host: begin and size.
  std::vector<std::pair<const std::byte*, std::size_t>> written_;
  std::map<CUevent, std::uint32_t> events_;
  bool to_host_ = false;     ///< a copy to the host is under way
  bool host_knows_ = false;  ///< and the host may have seen what it brought
};

}  // namespace contextune::intercept

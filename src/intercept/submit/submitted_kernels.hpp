#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/image/module_variables.hpp"
#include "gpu/image/spliced_image.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/program/submitted_kernel_cache.hpp"
#include "intercept/submit/spliced_loads.hpp"

namespace contextune::intercept {

/// The facts that have to be known of a kernel before its launches are chained or gathered.
struct SubmittedKernel {
  CUfunction handle = nullptr;
  CUcontext context = nullptr;
  gpu::HandleKind kind = gpu::HandleKind::Function;
  gpu::KernelOrder order;
  bool order_known = false;  ///< its loaded code was read
  bool may_gather = false;   ///< its parameters are known, and nothing speaks against it
  std::string name;          ///< as a person knows it
  std::uint64_t hash = 0;    ///< of its symbol
  /// Bit of it in Submission::ordinary; 0: always chained with others.
  std::atomic<std::uint32_t> number{0};
  std::uint64_t image = 0;     ///< key of what it was loaded from; 0: not known
  bool image_was_read = true;  ///< or cannot be
  /// It was launched, or stands in a graph, where launches may be chained.
  std::atomic<bool> is_seen{false};
  /// Launches that were chained, and edges to it that are programmatic.
  std::atomic<std::uint64_t> chained{0};
  std::uint32_t argument_bytes = 0;
  std::vector<ArgumentLayout> parameters;

  /// Block, dynamic shared memory and cluster-free grid of launches that the driver accepted, under
  /// the lock of whoever gathers.
  struct Shape {
    Dim3 block{};
    std::uint32_t shared_bytes = 0;
  };
  static constexpr std::size_t most_shapes = 16;
  static constexpr std::size_t most_parameters = 128;
  static constexpr std::size_t most_argument_bytes = 4096;
  std::vector<Shape> accepted;
  std::uint64_t accepted_at = 0;  ///< the gatherer's count of changes

  [[nodiscard]] bool is_accepted(const contextune_launch& call) const noexcept;

  void see() noexcept {
    if (!is_seen.load(std::memory_order_relaxed)) is_seen.store(true, std::memory_order_relaxed);
  }

  /// Whether a launch may be prepared while the one before it ends.
  /// @param but kernels that stay ordinary, as bits
  [[nodiscard]] bool may_follow(std::uint32_t but) const noexcept {
    return order.waits && (number.load(std::memory_order_relaxed) & but) == 0;
  }
  /// Whether the launch after it may be chained.
  [[nodiscard]] bool may_be_followed() const noexcept {
    return order_known && !order.triggers && !order.launches;
  }
};

/// The kernels that are launched while launches may be chained or gathered, by handle and context.
/// Any thread.
class SubmittedKernels {
 public:
  SubmittedKernels(const gpu::Driver& driver, KernelTable& kernels, gpu::ModuleVariables& variables,
                   SplicedLoads& loads)
      : knows_parameters_(driver.cuFuncGetParamInfo != nullptr &&
                          driver.cuKernelGetParamInfo != nullptr),
        kernels_(kernels),
        variables_(variables),
        loads_(loads) {}

  /// Null: the driver cannot tell. Valid until `invalidate`; memory of it lasts for ever.
  [[nodiscard]] SubmittedKernel* find(CUfunction handle, CUcontext context,
                                      SubmittedKernelCache& cache) noexcept {
    SubmittedKernelCache::Entry& entry = cache.of(handle);
    if (entry.handle != handle || entry.context != context || entry.epoch != epoch()) {
      const std::uint64_t now = epoch();
      entry = {handle, context, now, find_slowly(handle, context, now)};
    }
    return entry.kernel;
  }

  /// Handles or attributes of kernels change.
  void invalidate() noexcept { epoch_.fetch_add(1, std::memory_order_release); }

  /// Hashes of the names of those that were chained, the most frequent ones first. Throws.
  [[nodiscard]] std::vector<std::uint64_t> chained() const;

  struct Images {
    std::vector<std::uint64_t> read;  ///< keys, also of those that cannot be
    std::vector<std::uint64_t> unread;
  };
  /// The images of kernels that were seen. Throws.
  [[nodiscard]] Images images() const;

  /// The names of those that were launched, as a person knows them: "axpy, softmax". Throws.
  [[nodiscard]] std::string names_of(std::uint32_t ordinary) const;

  /// Numbers kernels in that order, those that come later, too. Throws.
  void number(std::vector<std::uint64_t> hashes);

 private:
  struct Entry {
    std::uint64_t epoch = 0;
    SubmittedKernel* kernel = nullptr;
  };
  [[nodiscard]] std::uint64_t epoch() const noexcept {
    // Both only grow, so that their sum names a state of both.
    return epoch_.load(std::memory_order_acquire) + kernels_.epoch();
  }
  [[nodiscard]] SubmittedKernel* find_slowly(CUfunction handle, CUcontext context,
                                             std::uint64_t now) noexcept;
  void describe(const KnownKernel& known, SubmittedKernel& kernel);
  [[nodiscard]] std::uint32_t number_of(const SubmittedKernel& kernel) const noexcept;
  [[nodiscard]] static bool may_find_stale_map(const SubmittedKernel& kernel) noexcept;

  const bool knows_parameters_;  ///< else a kernel without any looks like one of unknown ones
  KernelTable& kernels_;
  gpu::ModuleVariables& variables_;
  SplicedLoads& loads_;
  std::atomic<std::uint64_t> epoch_{0};
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> numbered_;  ///< hashes
  std::map<std::pair<CUfunction, CUcontext>, Entry> entries_;
  std::deque<SubmittedKernel> all_;
};

}  // namespace contextune::intercept

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/driver/device_facts.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/host/name_filter.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/program/settled_launches.hpp"

namespace contextune::intercept {

/// A kernel on one device, as far as all regions share what is known of it.
struct KnownKernel {
  gpu::KernelIdentity identity;
  std::string parameters;  ///< "float*, int"; empty: unknown
  int device = 0;
  const DeviceFacts* facts = nullptr;
  bool excluded = false;            ///< by the options only and exclude, or NCCL's own
  std::string_view why_excluded{};  ///< a clause that lives for ever; empty: nobody asked for it
};

/// Which kernel a handle means. Handles are used again after an unload, so every unload makes all
/// answers stale: compare `epoch`. Answers stay readable for ever. Any thread.
class KernelTable {
 public:
  KernelTable(const gpu::Driver& driver, NameFilter filter, EventLog& log)
      : driver_(driver), log_(log), filter_(std::move(filter)) {}

  /// Null: the driver cannot tell (logged). Needs a current context.
  [[nodiscard]] const KnownKernel* find(CUfunction handle, CUcontext context);

  [[nodiscard]] std::uint64_t epoch() const noexcept {
    return epoch_.load(std::memory_order_acquire);
  }
  /// A module, library or context goes away.
  void invalidate() noexcept {
    epoch_.fetch_add(1, std::memory_order_release);
    settled_changed();
  }

  [[nodiscard]] const DeviceFacts& facts_of(int device);

  /// All kernels that were asked for so far.
  [[nodiscard]] std::vector<const gpu::KernelIdentity*> launched();

 private:
  struct Entry {
    std::uint64_t epoch = 0;
    const KnownKernel* kernel = nullptr;    ///< null: the driver cannot tell
    std::vector<const KnownKernel*> all{};  ///< that the handle has meant
  };
  const gpu::Driver& driver_;
  EventLog& log_;
  const NameFilter filter_;
  std::atomic<std::uint64_t> epoch_{1};
  std::mutex mutex_;
  std::map<std::pair<CUfunction, CUcontext>, Entry> entries_;
  std::deque<KnownKernel> kernels_;
  std::map<int, DeviceFacts> facts_;
};

}  // namespace contextune::intercept

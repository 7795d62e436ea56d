#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "intercept/marks/region_mark.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/site/launch_cache.hpp"

namespace contextune::intercept {

/// Which kernels begin an entry of a `kernel:REGEX` region. Looked up at every launch, so what is
/// known takes no lock. Any thread.
class KernelMarks {
 public:
  explicit KernelMarks(KernelTable& kernels) : kernels_(kernels) {}

  /// Before any launch. The mark must outlive this.
  void add(const RegionMark& mark) { marks_.push_back(&mark); }
  [[nodiscard]] bool empty() const noexcept { return marks_.empty(); }

  /// The mark that this launch's kernel begins an entry of; null: none.
  [[nodiscard]] const RegionMark* find(CUfunction function, CUcontext context);

 private:
  struct Entry {
    LaunchKey key;  ///< function and context only
    std::atomic<std::uint64_t> epoch{0};
    std::atomic<const RegionMark*> mark{nullptr};
  };
  KernelTable& kernels_;
  std::vector<const RegionMark*> marks_;
  LaunchCache<Entry> cache_;
  std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace contextune::intercept

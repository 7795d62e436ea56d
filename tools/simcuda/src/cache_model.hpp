#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace simcuda {

/// What the L2 cache of one device still holds: stretches of memory, each with the time of its last
/// use and the way in which the blocks of its last user were laid over it. A stretch is warm until
/// as many new bytes as the cache holds came after it; it is *near* for a launch that lays its
/// blocks in the same way, because then the same half of the chip asks for it again.
/// Not thread-safe.
class CacheModel {
 public:
  struct Hits {
    double near_bytes = 0;
    double far_bytes = 0;
    double miss_bytes = 0;
  };
  struct Access {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::uint64_t layout = 0;
    bool keep = true;       // false: the lines are evicted at once
    double pressure = 1.0;  // share of the launch's footprint that fits in the cache
  };

  explicit CacheModel(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}

  /// Looks up and takes in one access of a launch.
  Hits touch(const Access& access);
  void flush() { stretches_.clear(); }
  /// Forgets a stretch of memory that was freed.
  void forget(std::uintptr_t begin, std::size_t bytes);

  [[nodiscard]] std::size_t capacity_bytes() const { return capacity_; }

 private:
  struct Stretch {
    std::uintptr_t end;
    double stamp;  // bytes taken in before and with it
    std::uint64_t layout;
  };
  using Stretches = std::map<std::uintptr_t, Stretch>;

  void cut(std::uintptr_t at);
  void forget_cold();

  std::size_t capacity_;
  double taken_in_ = 0;  // bytes since the beginning
  Stretches stretches_;
};

}  // namespace simcuda

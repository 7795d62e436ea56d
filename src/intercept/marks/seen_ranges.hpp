#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace contextune::intercept {

/// NVTX ranges, for whoever has given a name that there is not: the first of those that are no
/// regions, as the option `region` would name them, and what is added. Any thread; nothing throws
/// but text().
class SeenRanges {
 public:
  /// A range that is no region; may be called at every one.
  void saw(std::string_view domain, std::string_view name) noexcept;
  /// Whatever was seen so far.
  void add(std::string_view domain, std::string_view name) noexcept;

  /// `decode, LIBRARY@step`; empty: there were none.
  [[nodiscard]] std::string text() const;

 private:
  std::atomic<int> looks_left_{1024};  ///< a program may open a million
  mutable std::mutex mutex_;
  std::set<std::string> names_;
};

}  // namespace contextune::intercept

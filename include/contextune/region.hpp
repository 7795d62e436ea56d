#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <contextune/contextune.h>
#include <contextune/region_options.hpp>
#include <contextune/thread_end.hpp>

namespace contextune {

/// An entry of a region as a loop: `while (loop.next()) { body }`. CONTEXTUAL_AUTOTUNE and region()
/// are made of it. Belongs to the thread and the scope that made it. Without a GPU, and when
/// contextune is switched off, next() is true once.
class RegionLoop {
 public:
  /// Enters the region.
  /// @throws Error if an option has a value that it cannot have, or memory to be restored is not
  ///         device memory
  explicit RegionLoop(const char* name, const RegionOptions& options = {});
  explicit RegionLoop(const std::string& name, const RegionOptions& options = {})
      : RegionLoop(name.c_str(), options) {}
  /// Leaves the region; where the body has not run to its end, without winners and restored.
  /// Exceptions of the restore callable are lost here.
  ~RegionLoop();
  RegionLoop(const RegionLoop&) = delete;
  RegionLoop& operator=(const RegionLoop&) = delete;

  /// Ends the pass before, if there was one, and says whether to run the body (again).
  /// Throws nothing but what the restore callable throws; the region is then left.
  [[nodiscard]] bool next();
  /// The run that next() has asked for is not the one whose value counts. It shows whether the body
  /// leaves the same when it is run again.
  [[nodiscard]] bool is_check() const noexcept { return is_check_; }
  /// Leaves the region.
  void leave() noexcept { contextune_region_end(&entry_); }

  /// Whether this entry was to find out what is best, and its ranks did not agree; the thread's
  /// contextune_error() says why. After the last next().
  [[nodiscard]] bool is_untuned() const noexcept { return contextune_region_untuned(&entry_) != 0; }

 private:
  void configure(const RegionOptions& options);
  void configure_or_leave(const RegionOptions& options);
  static int restore(void* self) noexcept;

  contextune_entry entry_;
  bool is_check_ = false;
  std::function<void()> restore_;
  std::exception_ptr failure_;  ///< what restore_ threw
};

namespace detail {
/// Runs `body` once more where the loop asks for that to see what it leaves, and gives what next()
/// answers then. Exceptions of such a run do not reach the caller, whose own run is over.
template <class Body>
bool run_check(RegionLoop& loop, Body& body) {
  if (!loop.is_check()) return true;
  try {
    static_cast<void>(std::invoke(body));
  }
  CONTEXTUNE_PASS_THREAD_END
  catch (...) {
    loop.leave();
    return false;
  }
  return loop.next();
}

/// Runs `body` as often as the loop says and gives the value of the last run, checks apart.
template <class Body>
decltype(auto) run_loop(RegionLoop& loop, Body&& body) {
  using Result = std::invoke_result_t<Body&>;
  bool again = loop.next();  // true: the body runs at least once
  if constexpr (std::is_void_v<Result>) {
    while (again) {
      std::invoke(body);
      again = loop.next() && run_check(loop, body);
    }
  } else {
    for (;;) {
      Result result = std::invoke(body);
      again = loop.next() && run_check(loop, body);
      if (again) continue;
      if constexpr (std::is_reference_v<Result>) {
        return static_cast<Result>(result);
      } else {
        return result;
      }
    }
  }
}
}  // namespace detail

/// Runs `body` in the region `name`. If the options say `repeatable` or give `restore`, it runs
/// until the region is tuned and then once with the winners. Otherwise it runs once, as one pass.
/// Gives the value of the last run, which may be void, move-only or a reference. Values of earlier
/// runs are gone before the body runs again. Exceptions of the body go on to the caller, after the
/// region was left.
/// @throws Error as RegionLoop
template <class Body>
decltype(auto) region(const std::string& name, const RegionOptions& options, Body&& body) {
  RegionLoop loop(name, options);
  return detail::run_loop(loop, body);
}

}  // namespace contextune

#define CONTEXTUNE_JOIN_NAMES(a, b) a##b
#define CONTEXTUNE_JOIN(a, b) CONTEXTUNE_JOIN_NAMES(a, b)
#define CONTEXTUNE_REGION_LOOP(loop, ...) \
  for (::contextune::RegionLoop loop{__VA_ARGS__}; loop.next();)

/// CONTEXTUAL_AUTOTUNE("decode") { launch work }
/// CONTEXTUAL_AUTOTUNE("decode", {.repeatable = true, .n_repeat = 3}) { launch work }
///
/// Runs the block that follows as region() does its body. `continue` ends a pass as reaching the
/// end does. Leaving the block by break, return, goto or an exception ends the search without
/// winners. Such an exit restores what `restore` names to what it was before the first pass, and
/// goes on to where it was meant to go. A block that always leaves so should give neither
/// `repeatable` nor `restore`.
#define CONTEXTUAL_AUTOTUNE(...) \
  CONTEXTUNE_REGION_LOOP(CONTEXTUNE_JOIN(contextune_loop_, __COUNTER__), __VA_ARGS__)

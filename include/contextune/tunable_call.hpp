#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>

#include <contextune/contextune.h>
#include <contextune/thread_end.hpp>

/// The part of a call that Tunable and autotune share.
namespace contextune::detail {

/// A call: it says which config to launch, and from construction to end() this thread's launches
/// are its work.
class TunableCall {
 public:
  TunableCall(contextune_tunable* tunable, std::uint32_t problem) noexcept
      : index_(contextune_tunable_begin(tunable, problem, &call_)) {}
  ~TunableCall() { contextune_tunable_end(&call_, 1); }
  TunableCall(const TunableCall&) = delete;
  TunableCall& operator=(const TunableCall&) = delete;
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }
  /// True: launch once more with the default.
  [[nodiscard]] bool end(bool launched) noexcept {
    return contextune_tunable_end(&call_, launched ? 1 : 0) != 0;
  }

 private:
  contextune_call call_;
  std::uint32_t index_;
};

/// Whether what a callable returned is an error: an enum that is not 0.
template <class Result>
[[nodiscard]] bool is_failure(const Result& result) {
  if constexpr (std::is_enum_v<Result>) {
    return static_cast<std::underlying_type_t<Result>>(result) != 0;
  } else {
    return false;
  }
}

/// Keeps why a call failed, for the log. In a handler: what was thrown.
inline void note_exception() noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    contextune_note_failure(error.what());
  } catch (...) {
    contextune_note_failure("threw something that is not a std::exception");
  }
}
/// The same for an error that was returned.
template <class Result>
void note_returned(const Result& result) {
  if constexpr (std::is_enum_v<Result>) {
    const auto code = static_cast<long long>(static_cast<std::underlying_type_t<Result>>(result));
    contextune_note_failure(("returned error " + std::to_string(code)).c_str());
  }
}

/// Launches the config that the call is to run, and the default where that one cannot be launched.
/// @param launch takes the index of a config and gives a Result
template <class Result, class Launch>
Result launch_in_call(contextune_tunable* tunable, std::uint32_t problem,
                      std::uint32_t default_config, Launch&& launch) {
  TunableCall call(tunable, problem);
  const std::uint32_t config = call.index();
  if (config == default_config) return launch(config);
  try {
    if constexpr (std::is_void_v<Result>) {
      launch(config);
      return;
    } else {
      Result result = launch(config);
      if (!is_failure(result)) return static_cast<Result&&>(result);
      note_returned(result);
      if (!call.end(false)) return static_cast<Result&&>(result);
    }
  }
  CONTEXTUNE_PASS_THREAD_END
  catch (...) {
    note_exception();
    if (!call.end(false)) throw;
  }
  return launch(default_config);
}

}  // namespace contextune::detail

#pragma once

#include <string_view>

namespace contextune::api {

/// Keeps what went wrong for contextune_error() on this thread; -1, for the caller to return.
int fail(std::string_view text) noexcept;

/// The text of this thread's last failed call; "" if none failed.
[[nodiscard]] const char* last_error() noexcept;

}  // namespace contextune::api

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace contextune::store {

/// Any bytes as UTF-8, which JSON needs: a byte that is no part of UTF-8 becomes U+FFFD and its two
/// hexadecimal digits, and so does each byte of U+FFFD itself. Other text stays what it is.
[[nodiscard]] std::string to_json_text(std::string_view bytes);

/// The inverse; absent if `text` is not what to_json_text makes of anything.
[[nodiscard]] std::optional<std::string> from_json_text(std::string_view text);

}  // namespace contextune::store

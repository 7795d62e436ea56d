#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <contextune/error.hpp>

#include "store/entry.hpp"

namespace contextune::store {

/// The number of the format. Whatever changes the format, even a member more, gets another number.
/// 1: sites had no `code` and no `image`; such a file is read as if they were empty.
/// 2: they had no `declaration` and no `terms`; the same.
/// 3: `terms` had no `comm_memory`; 4: no `compared`, which is read as that they were not.
/// 5: sites had no `progress`.
inline constexpr int schema_version = 6;

/// The most bytes of a file. A larger one is not read, and none is written.
inline constexpr std::size_t max_file_bytes = std::size_t{16} << 20U;

/// The document was written by a later version of contextune.
class NewerFormat : public Error {
 public:
  using Error::Error;
};

/// The JSON document of an entry; one line for each trial. The same entry gives the same text.
[[nodiscard]] std::string to_text(const Entry& entry);

/// The inverse. Nothing is trusted: size, depth, presence, type and range are checked, and what is
/// not known is refused.
/// @throws Error that begins with the place, as a JSON pointer or a line; NewerFormat
[[nodiscard]] Entry parse_entry(std::string_view text);

/// Whether it is a time as the store writes it: "2026-11-20T20:33:53Z". Such times compare as
/// texts.
[[nodiscard]] bool is_timestamp(std::string_view text);

/// By name, then key: the order of the sites of an entry.
[[nodiscard]] bool comes_before(const StoredSite& a, const StoredSite& b);

}  // namespace contextune::store

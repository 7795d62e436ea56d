#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "log/logfmt.hpp"

namespace contextune::log {

/// A line of a rank log, read back. A plain value.
struct Record {
  std::string time;  ///< "2026-11-20T20:33:53.120Z"
  std::string run;
  std::int64_t pid = 0;
  int rank = 0;
  std::string event;
  std::vector<ParsedField> fields;  ///< those after `event`, in order

  /// The field's value, or null.
  [[nodiscard]] const std::string* find(std::string_view name) const;
  /// The field's value, or the empty string.
  [[nodiscard]] std::string_view text(std::string_view name) const;
  /// Nothing if the field is absent or not a number.
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  /// Nothing if the field is absent or not a whole number from 0 to `most`.
  [[nodiscard]] std::optional<std::uint64_t> count(std::string_view name,
                                                   std::uint64_t most = 1ULL << 53U) const;
};

/// The line as a record, or what is wrong with it. Any bytes may be given; the newline is not part
/// of the line.
[[nodiscard]] std::variant<Record, std::string> parse_record(std::string_view line);

}  // namespace contextune::log

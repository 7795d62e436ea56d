#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/process_identity.hpp"

namespace contextune::store {

/// Who may write an entry now, as others find it in a file.
struct Lease {
  ProcessIdentity holder;
  std::string temporary;  ///< the file that the holder will rename; without it, it cannot

  [[nodiscard]] std::string to_text() const;
  /// Absent: not written by to_text, or not to its end.
  [[nodiscard]] static std::optional<Lease> parse(std::string_view text);
};

/// A name that no other file has: ".", `stem`, digits from the kernel, ".tmp". @throws Error
[[nodiscard]] std::string temporary_name(const std::string& stem);
[[nodiscard]] bool is_temporary_name(std::string_view name);

}  // namespace contextune::store

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "intercept/host/event_log.hpp"
#include "intercept/host/name_pattern.hpp"

namespace contextune::intercept {

/// The names that the options only and exclude leave to be tuned. Any thread.
class NameFilter {
 public:
  /// Expressions that cannot be read are reported and do not count.
  NameFilter(const std::string& only, const std::string& exclude, EventLog& log);

  /// Why something is not to be tuned, a clause that lives for ever; empty: it may be.
  /// @param names all that it has
  [[nodiscard]] std::string_view why_not(std::span<const std::string> names) const noexcept;

  /// Nothing was asked for.
  [[nodiscard]] bool leaves_out_none() const noexcept { return !only_ && !exclude_; }

 private:
  std::optional<NamePattern> only_;
  std::optional<NamePattern> exclude_;
};

}  // namespace contextune::intercept

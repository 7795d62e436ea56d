#pragma once

#include <span>
#include <string_view>

namespace contextune {

/// Why something is not tuned: the fixed vocabulary of the rank log. Rows: fallback_reason.def.
enum class FallbackReason {
#define CONTEXTUNE_FALLBACK_REASON(Name, word, sentence, cause, remedy) Name,
#include "core/value/fallback_reason.def"
#undef CONTEXTUNE_FALLBACK_REASON
};

/// A row of the vocabulary.
struct FallbackInfo {
  FallbackReason reason;
  std::string_view word;  ///< `reason=` in the rank log
  std::string_view sentence;
  std::string_view cause;
  std::string_view remedy;
};

/// All rows, in order.
[[nodiscard]] std::span<const FallbackInfo> fallback_table();

[[nodiscard]] const FallbackInfo& fallback_info(FallbackReason reason);

/// The row with that word, or null.
[[nodiscard]] const FallbackInfo* find_fallback(std::string_view word);

}  // namespace contextune

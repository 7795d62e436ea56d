#include "core/value/fallback_reason.hpp"

#include <array>

namespace contextune {
namespace {

constexpr std::array table{
#define CONTEXTUNE_FALLBACK_REASON(Name, word, sentence, cause, remedy) \
  FallbackInfo{FallbackReason::Name, word, sentence, cause, remedy},
#include "core/value/fallback_reason.def"
#undef CONTEXTUNE_FALLBACK_REASON
};

}  // namespace

std::span<const FallbackInfo> fallback_table() {
  return table;
}

const FallbackInfo& fallback_info(FallbackReason reason) {
  return table[static_cast<std::size_t>(reason)];
}

const FallbackInfo* find_fallback(std::string_view word) {
  for (const FallbackInfo& info : table)
    if (info.word == word) return &info;
  return nullptr;
}

}  // namespace contextune

#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <string_view>

#include "preload/contextune_abi.h"

namespace contextune::intercept {
namespace entry_forms {

inline constexpr std::string_view names[] = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

constexpr bool is_per_thread(std::string_view name) {
  return name.ends_with("_ptsz") || name.ends_with("_ptds");
}

/// By entry point: the number of the same one without _ptsz or _ptds, where that is seen as well.
inline constexpr auto legacy = [] {
  std::array<contextune_fn, std::size(names)> forms{};
  for (std::size_t i = 0; i < forms.size(); ++i) {
    forms[i] = static_cast<contextune_fn>(i);
    if (!is_per_thread(names[i])) continue;
    const std::string_view plain = names[i].substr(0, names[i].size() - 5);
    for (std::size_t j = 0; j < forms.size(); ++j)
      if (names[j] == plain) forms[i] = static_cast<contextune_fn>(j);
  }
  return forms;
}();

static_assert(
    [] {
      for (std::size_t i = 0; i < legacy.size(); ++i)
        if (is_per_thread(names[i]) == (legacy[i] == static_cast<contextune_fn>(i))) return false;
      return true;
    }(),
    "an entry point for the per-thread stream is seen, and that for the legacy one is not");

}  // namespace entry_forms

/// The form of an entry point for the legacy default stream: what the one for the per-thread stream
/// does, it does with another null stream, and nothing else differs.
[[nodiscard]] constexpr contextune_fn legacy_form(contextune_fn fn) noexcept {
  const auto number = static_cast<std::size_t>(fn);
  return number < entry_forms::legacy.size() ? entry_forms::legacy[number] : fn;
}

/// The stream that a call of this entry point means by the one that it was given.
[[nodiscard]] inline CUstream stream_meant(contextune_fn fn, CUstream given) noexcept {
  if (given != nullptr) return given;
  return legacy_form(fn) == fn ? CU_STREAM_LEGACY : CU_STREAM_PER_THREAD;
}

}  // namespace contextune::intercept

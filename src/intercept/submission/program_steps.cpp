#include "intercept/submission/program_steps.hpp"

#include <bit>
#include <string_view>

#include "intercept/host/entry_form.hpp"

namespace contextune::intercept {
namespace {

enum class Effect : std::uint8_t { None, Copies, Waits };

constexpr Effect effect_of(std::string_view name) {
  if (name.starts_with("cuMemcpy") || name.starts_with("cuMemset")) return Effect::Copies;
  if (name.starts_with("cuCtxSynchronize") || name.starts_with("cuStreamSynchronize") ||
      name.starts_with("cuEventSynchronize"))
    return Effect::Waits;
  return Effect::None;
}

constexpr Effect effects[] = {
#define CONTEXTUNE_ENTRY(name, ...) effect_of(#name),
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

}  // namespace

std::optional<StepKind> step_kind_of(contextune_fn fn) noexcept {
  const auto number = static_cast<std::size_t>(fn);
  if (number >= std::size(effects) || effects[number] == Effect::None) return std::nullopt;
  return effects[number] == Effect::Copies ? StepKind::Copy : StepKind::Wait;
}

bool is_question(contextune_fn fn) noexcept {
  switch (legacy_form(fn)) {
    case contextune_fn_question:
    case contextune_fn_cuEventQuery:
    case contextune_fn_cuMemGetInfo_v2:
    case contextune_fn_cuStreamQuery:
      return true;
    default:
      return false;
  }
}

std::uint64_t token_of(const contextune_launch& call) noexcept {
  auto token = reinterpret_cast<std::uintptr_t>(call.function);
  // Grids of one size class: they may grow or shrink a little from entry to entry.
  for (const auto extent : {static_cast<unsigned>(std::bit_width(call.grid[0])),
                            static_cast<unsigned>(std::bit_width(call.grid[1])),
                            static_cast<unsigned>(std::bit_width(call.grid[2])), call.block[0],
                            call.block[1], call.block[2]}) {
    token = (token ^ extent) * 0x9e3779b97f4a7c15ULL;
    token ^= token >> 32U;
  }
  return step_token(StepKind::Launch, token);
}

WatchedThreads::Thread* WatchedThreads::find(std::uint64_t number, bool is_new_welcome,
                                             std::uint64_t kept) {
  ++steps_;
  Thread* free = nullptr;
  for (Thread& one : threads_) {
    if (one.number == number) {
      one.last_step = steps_;
      return &one;
    }
    const bool is_free = one.number == 0 || (one.number != kept && is_absent(one));
    if (is_free && (free == nullptr || one.last_step < free->last_step)) free = &one;
  }
  if (!is_new_welcome || free == nullptr) return nullptr;
  free->finder = std::make_unique<PeriodFinder>();
  free->number = number;
  free->last_step = steps_;
  return free;
}

bool WatchedThreads::is_absent(std::uint64_t number) const noexcept {
  for (const Thread& one : threads_)
    if (one.number == number) return is_absent(one);
  return true;
}

void WatchedThreads::clear() noexcept {
  for (Thread& one : threads_) one = {};
}

}  // namespace contextune::intercept

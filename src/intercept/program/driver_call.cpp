#include "intercept/program/driver_call.hpp"

#include <cudaTypedefs.h>

#include <array>
#include <utility>

#include "preload/registry/newer_types.h"

namespace contextune::intercept {
namespace {

template <class Pointer>
struct Caller;

template <class... Arguments>
struct Caller<CUresult (*)(Arguments...)> {
  static constexpr std::array<std::uint8_t, sizeof...(Arguments)> sizes{
      static_cast<std::uint8_t>(sizeof(Arguments))...};  // NOLINT(bugprone-sizeof-expression)

  static CUresult make(void* entry_point, void* const* args) {
    return make(entry_point, args, std::index_sequence_for<Arguments...>{});
  }

 private:
  template <std::size_t... Index>
  static CUresult make(void* entry_point, [[maybe_unused]] void* const* args,
                       std::index_sequence<Index...>) {
    return reinterpret_cast<CUresult (*)(Arguments...)>(entry_point)(
        *static_cast<Arguments*>(args[Index])...);
  }
};

template <class Pointer>
constexpr DriverCall call_of{&Caller<Pointer>::make, Caller<Pointer>::sizes};

constexpr DriverCall none;

}  // namespace

const DriverCall& driver_call(contextune_fn fn) noexcept {
  switch (fn) {
#define CONTEXTUNE_ENTRY(name, pointer_type, ...) \
  case contextune_fn_##name:                      \
    return call_of<pointer_type>;
#include "preload/registry/transfer.def"
#undef CONTEXTUNE_ENTRY
    default:
      return none;
  }
}

}  // namespace contextune::intercept

#pragma once

#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"

namespace contextune::intercept {

/// A function of ours as the frontend calls it on a thread of the program's: while it runs nobody
/// cancels that thread, which calculates as ours do.
template <auto function>
struct Guarded;

template <typename Result, typename... Arguments, Result (*function)(Arguments...) noexcept>
struct Guarded<function> {
  static Result call(Arguments... arguments) noexcept {
    const Uncancelled uncancelled;
    const OwnArithmetic arithmetic;
    return function(arguments...);
  }
};

template <auto function>
inline constexpr auto guarded = &Guarded<function>::call;

}  // namespace contextune::intercept

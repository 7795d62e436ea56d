#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace contextune::intercept {

/// As long as it lives, this thread calculates as one that has set nothing. No operation traps,
/// results are rounded to the nearest, and no flag is left for the program to find. Our code takes
/// the infinite cost of what failed and quotients by zero for granted. A program that has set traps
/// would end at them.
class OwnArithmetic {
 public:
  OwnArithmetic(const OwnArithmetic&) = delete;
  OwnArithmetic& operator=(const OwnArithmetic&) = delete;

#if defined(__SSE2__)
  // The other unit of x86 is used by `long double` only, which ours has not; its state takes
  // longer.
  OwnArithmetic() noexcept : before_(_mm_getcsr()) {
    _mm_setcsr(default_word);
  }
  ~OwnArithmetic() {
    _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned default_word = 0x1F80;  // every exception is masked
  unsigned before_;
#else
  OwnArithmetic() noexcept {
    (void)std::fegetenv(&before_);
    (void)std::fesetenv(FE_DFL_ENV);
  }
  ~OwnArithmetic() {
    (void)std::fesetenv(&before_);
  }

 private:
  std::fenv_t before_{};
#endif
};

}  // namespace contextune::intercept

#pragma once

// What the kernels of the warm regions do, on a GPU and on the simulated driver. Each has a config,
// blocks of `wrong_block` threads, that does something else.

#if defined(__CUDACC__)
#define WARM_SHARED __host__ __device__ inline
#else
#define WARM_SHARED inline
#endif

using Word = unsigned;
constexpr unsigned wrong_block = 96;

enum class Family {
  Scale,  ///< y = f(x): the code shows that y is only written
  Add,    ///< y += x: never twice the same
  Cap,    ///< y = max(y, x): twice is the same as once
  Pick,   ///< y = x[z]: z holds places
  Hop     ///< y = z[y]: so does y itself
};
enum class Flavour {
  Right,
  Half,  ///< of the elements
  Nothing,
  Twice,
  Stale  ///< where something is there already, that is taken for the result
};

WARM_SHARED Word step_of(Family family, Word before, Word at, const Word* x, const Word* z) {
  switch (family) {
    case Family::Scale:
      return x[at] * 7 + 3;
    case Family::Add:
      return before + x[at];
    case Family::Cap:
      return before > x[at] ? before : x[at];
    case Family::Pick:
      return x[z[at]];
    case Family::Hop:
      return z[before];
  }
  return before;
}

/// One element. Only the flavours that look at what was there do so.
template <Family family, Flavour flavour>
WARM_SHARED void do_one(Word at, Word count, unsigned block, const Word* x, Word* y,
                        const Word* z) {
  constexpr bool reads = family == Family::Add || family == Family::Cap || family == Family::Hop;
  const bool is_wrong = flavour != Flavour::Right && block == wrong_block;
  if (is_wrong && flavour == Flavour::Nothing) return;
  if (is_wrong && flavour == Flavour::Half && at >= count / 2) return;
  if constexpr (flavour == Flavour::Stale) {
    if (is_wrong && y[at] != 0) return;
  }
  Word value = step_of(family, reads ? y[at] : 0, at, x, z);
  if (is_wrong && flavour == Flavour::Twice) value = step_of(family, value, at, x, z);
  y[at] = value;
}

// (count, x, y, z) of each: X(name, family, flavour)
#define WARM_FLAVOURS(X, name, family) \
  X(name##_right, family, Right)       \
  X(name##_half, family, Half)         \
  X(name##_nothing, family, Nothing)   \
  X(name##_twice, family, Twice)       \
  X(name##_stale, family, Stale)
#define WARM_KERNELS(X)          \
  WARM_FLAVOURS(X, scale, Scale) \
  WARM_FLAVOURS(X, add, Add)     \
  WARM_FLAVOURS(X, cap, Cap)     \
  WARM_FLAVOURS(X, pick, Pick)   \
  WARM_FLAVOURS(X, hop, Hop)

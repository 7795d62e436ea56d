#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace contextune::detail {

/// In place of a callable that the author did not give.
struct Nothing {};
template <class Callable>
inline constexpr bool is_given = !std::is_same_v<Callable, Nothing>;

/// nullptr stands for nothing.
template <class Callable>
using GivenOrNothing =
    std::conditional_t<std::is_same_v<Callable, std::nullptr_t>, Nothing, Callable>;
template <class Callable>
[[nodiscard]] GivenOrNothing<Callable> given_or_nothing(Callable&& callable) {
  if constexpr (is_given<GivenOrNothing<Callable>>) {
    return std::move(callable);
  } else {
    return {};
  }
}

/// The callables that the author of a function gave beside the function. See AutotunedFunction for
/// each.
template <class Key, class Prune, class Size = Nothing, class Inputs = Nothing,
          class Shape = Nothing, class Kernel = Nothing>
struct Callables {
  [[no_unique_address]] Key key;
  [[no_unique_address]] Prune prune;
  [[no_unique_address]] Size size;
  [[no_unique_address]] Inputs inputs;
  [[no_unique_address]] Shape shape;
  [[no_unique_address]] Kernel kernel;

  static constexpr bool has_key = is_given<Key>;
  static constexpr bool has_prune = is_given<Prune>;
  static constexpr bool has_size = is_given<Size>;
  static constexpr bool has_inputs = is_given<Inputs>;
  static constexpr bool has_shape = is_given<Shape>;
  static constexpr bool has_kernel = is_given<Kernel>;

  template <class New>
  [[nodiscard]] Callables<Key, Prune, New, Inputs, Shape, Kernel> with_size(New one) && {
    return {std::move(key),    std::move(prune), std::move(one),
            std::move(inputs), std::move(shape), std::move(kernel)};
  }
  template <class New>
  [[nodiscard]] Callables<Key, Prune, Size, New, Shape, Kernel> with_inputs(New one) && {
    return {std::move(key), std::move(prune), std::move(size),
            std::move(one), std::move(shape), std::move(kernel)};
  }
  template <class New>
  [[nodiscard]] Callables<Key, Prune, Size, Inputs, New, Kernel> with_shape(New one) && {
    return {std::move(key),    std::move(prune), std::move(size),
            std::move(inputs), std::move(one),   std::move(kernel)};
  }
  template <class New>
  [[nodiscard]] Callables<Key, Prune, Size, Inputs, Shape, New> with_kernel(New one) && {
    return {std::move(key),    std::move(prune), std::move(size),
            std::move(inputs), std::move(shape), std::move(one)};
  }
};

}  // namespace contextune::detail

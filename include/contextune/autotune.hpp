#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <contextune/autotuned_function.hpp>
#include <contextune/error.hpp>

namespace contextune {

/// A function that is tuned where it is called; see AutotunedFunction for what that means.
///
///     auto saxpy = contextune::autotune(
///         "saxpy", contextune::ConfigSpace().parameter("block", {256, 128, 512}),
///         [](int n, float, const float*, float*) { return n; },
///         [](const contextune::Config& config, int n, float a, const float* x, float* y) {
///           const int block = int(config.get_int("block"));
///           kernel<<<(n + block - 1) / block, block>>>(n, a, x, y);
///           return cudaGetLastError();
///         },
///         {.restore = {{y, n * sizeof(float)}}});
///     saxpy(n, 2.0f, x, y);
///
/// @param name  what it is called in logs
/// @param space a ConfigSpace, a vector of Configs or of a struct, or a callable of `const Device&`
///              that gives one of these. The struct has a `Config describe(const Struct&)`, and the
///              function is then given the struct. The callable is asked at the first call, once,
///              or once by each of several threads that call first at the same time. It cannot
///              call the function. The first config that is kept is the default.
/// @param key   gives, from the arguments, the key that makes two calls the same problem. It is
///              made of whole numbers, enums, and optionals, pairs, tuples and arrays of these, or
///              within one another. Texts, vectors and Keys work as well, but cost more.
/// @param prune true keeps a config for a problem; from config and arguments
/// @param function from config and arguments
/// @throws Error if the space is empty or names a config twice, or an option is out of range
template <class Space, class Key, class Prune, class Callable>
[[nodiscard]] auto autotune(std::string name, Space space, Key key, Prune prune, Callable function,
                            AutotuneOptions options = {}) {
  try {
    auto configs = detail::function_space(std::move(space));
    using ConfigType = typename decltype(configs.listed)::value_type;
    using Callables = detail::Callables<detail::GivenOrNothing<Key>, detail::GivenOrNothing<Prune>>;
    return AutotunedFunction<ConfigType, Callable, Callables>(
        name, std::move(configs), std::move(function),
        Callables{detail::given_or_nothing(std::move(key)),
                  detail::given_or_nothing(std::move(prune)),
                  {},
                  {},
                  {},
                  {}},
        std::move(options));
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.starts_with("function '")) throw;
    throw Error("function '" + name + "': " + text);
  }
}
/// Without pruning.
template <class Space, class Key, class Callable>
requires(!std::is_same_v<Callable, AutotuneOptions>)
    [[nodiscard]] auto autotune(std::string name, Space space, Key key, Callable function,
                                AutotuneOptions options = {}) {
  return autotune(std::move(name), std::move(space), std::move(key), nullptr, std::move(function),
                  std::move(options));
}
/// Without key: every call, or every bucket of sizes, is the same problem.
template <class Space, class Callable>
[[nodiscard]] auto autotune(std::string name, Space space, Callable function,
                            AutotuneOptions options = {}) {
  return autotune(std::move(name), std::move(space), nullptr, nullptr, std::move(function),
                  std::move(options));
}

}  // namespace contextune

#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/device.hpp>

/// Config spaces of autotune(): a ConfigSpace, a list of Configs or of a struct, or a callable of
/// `const Device&` that gives one of these. The struct may be any with a `Config describe(const
/// Struct&)` in its own namespace.
namespace contextune::detail {

/// The configs of a function, or who knows them.
template <class ConfigType>
struct FunctionSpace {
  std::vector<ConfigType> listed;
  std::function<std::vector<ConfigType>(const Device&)> of_device;  ///< empty: they are listed
};

template <class Type>
concept DescribedConfig = requires(const Type& config) {
  { describe(config) } -> std::convertible_to<Config>;
};

template <class ConfigType>
[[nodiscard]] Config described(const ConfigType& config) {
  if constexpr (std::is_same_v<ConfigType, Config>) {
    return config;
  } else {
    static_assert(DescribedConfig<ConfigType>,
                  "a struct of configs needs contextune::Config describe(const Struct&), in the "
                  "struct's own namespace");
    return describe(config);
  }
}

/// @throws Error as ConfigSpace::configs(); none for a space that was never filled
[[nodiscard]] inline std::vector<Config> listed_configs(const ConfigSpace& space) {
  return space.empty() ? std::vector<Config>() : space.configs();
}
template <class ConfigType>
[[nodiscard]] std::vector<ConfigType> listed_configs(std::vector<ConfigType> configs) {
  return configs;
}

/// @throws Error as listed_configs
template <class Space>
[[nodiscard]] auto function_space(Space space) {
  if constexpr (std::is_invocable_v<Space&, const Device&>) {
    using Listed =
        decltype(listed_configs(std::declval<std::invoke_result_t<Space&, const Device&>>()));
    using ConfigType = typename Listed::value_type;
    return FunctionSpace<ConfigType>{{}, [space = std::move(space)](const Device& device) mutable {
                                       return listed_configs(std::invoke(space, device));
                                     }};
  } else {
    auto listed = listed_configs(std::move(space));
    using ConfigType = typename decltype(listed)::value_type;
    return FunctionSpace<ConfigType>{std::move(listed), {}};
  }
}

}  // namespace contextune::detail

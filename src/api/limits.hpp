#pragma once

#include <contextune/contextune.h>

namespace contextune::api {

/// The C functions of the same purpose. They need the program's driver, but no runtime: what they
/// say is the same where contextune is switched off.
[[nodiscard]] int describe_device(contextune_device* device) noexcept;
[[nodiscard]] int describe_limits(const void* kernel, contextune_kernel_limits* limits) noexcept;

[[nodiscard]] contextune_place current_place() noexcept;

}  // namespace contextune::api

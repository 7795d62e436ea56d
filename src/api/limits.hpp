#pragma once

#include <contextune/contextune.h>

namespace contextune::api {

[[nodiscard]] contextune_place current_place() noexcept;

}  // namespace contextune::api

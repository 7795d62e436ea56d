#pragma once

#include <contextune/contextune.h>

namespace contextune::api {

[[nodiscard]] contextune_place current_place() noexcept;
void note_capture(void* stream) noexcept;

}  // namespace contextune::api

#pragma once

#include <cstddef>

namespace contextune::rank {

/// Whether the process may open `count` descriptors more. Opens none, and changes nothing.
[[nodiscard]] bool has_free_descriptors(std::size_t count) noexcept;

/// Whether the program could still open some if we took one more: 32, or a quarter of what the
/// process may have at all.
[[nodiscard]] bool leaves_descriptors_to_program() noexcept;

}  // namespace contextune::rank

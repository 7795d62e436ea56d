#pragma once

namespace contextune {

/// Remembers which folder `/` is.
void keep_root_folder() noexcept;

/// Whether `/` is another folder by now, as in a program that has called chroot. A path that was
/// given before then names a place in its jail, where nothing of ours is to be made. False while
/// none is remembered.
[[nodiscard]] bool root_folder_has_changed() noexcept;

}  // namespace contextune

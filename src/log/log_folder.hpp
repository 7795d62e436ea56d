#pragma once

#include <string>

namespace contextune::log {

/// Opens the folder at `path` for `open_log_file`, unless others could have what is written there
/// go elsewhere. The folder must belong to this user or to root. Everybody may write it only where
/// nobody may touch what is another's, as in /tmp. A link to it is followed if the link is this
/// user's or root's.
/// @return -1: `errno` says why not, ELOOP for a stranger's link and EPERM for a folder that is not
///   to be trusted
[[nodiscard]] int open_log_folder(const std::string& path) noexcept;

/// Opens a file in it to append to, and creates it; never through a link, and never one of another
/// user. @return -1: `errno` says why not: ELOOP for a link, EPERM for another's file, EMLINK for
///   one that may be another's under another name
[[nodiscard]] int open_log_file(int folder, const std::string& name) noexcept;

/// For people: what such an `errno` means; EXDEV stands for a root folder that was changed.
[[nodiscard]] std::string why_not_written(int error);

}  // namespace contextune::log

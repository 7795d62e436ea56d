#pragma once

#include <string>
#include <string_view>

/// Facts about the host by which a process meets those that were started with it.
namespace contextune::rank {

/// A folder that belongs to this user and lets nobody else in: $XDG_RUNTIME_DIR/contextune, else
/// /tmp/contextune-UID, made if there is none. Empty: neither can be had.
/// @param runtime_folder $XDG_RUNTIME_DIR, or empty
/// @param temporary_folder "/tmp"
[[nodiscard]] std::string private_folder(const std::string& runtime_folder,
                                         const std::string& temporary_folder = "/tmp");

/// Removes sockets on which nobody listens any more, of processes that ended without doing so.
void remove_leftovers(const std::string& folder);

/// Names the process that started the ranks: the nearest one above this whose environment lacks the
/// variable. Those between are scripts and wrappers of one rank each. No other process of this host
/// has the same name, not even one with the same number later.
[[nodiscard]] std::string starter_of_ranks(std::string_view rank_variable);

}  // namespace contextune::rank

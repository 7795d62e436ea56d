#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/value/launcher.hpp"
#include "rank/wire/listener.hpp"

namespace contextune::rank {

/// Where a process stands among those that were started with it, and where they meet.
///
/// | where the ranks are | where they meet | what keeps others out |
/// |---|---|---|
/// | CONTEXTUNE_ADDRESS says | there | CONTEXTUNE_SECRET; on one host the user as well |
/// | on one host | a socket in a folder of the user's, named by the job | the folder, the user |
/// | torchrun, Slurm | rank 0's host, which they name, at a port of the job's | CONTEXTUNE_SECRET,
/// else the ncclUniqueId | | Open MPI, PMI | the host in the ncclUniqueId, at a port of the job's |
/// the same |
///
/// "The job" is what its launcher calls it, or the process that started it where it has no name.
/// The port of another library's store is never used. There is no TCP without a secret.
struct Rendezvous {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
  std::uint32_t local_rank = 0;  ///< on this host; the rank where nobody says
  std::string job;               ///< names the job; not empty if there are several ranks
  std::string address;  ///< of rank 0, as SocketSettings takes it; empty if there is one rank
  std::string secret;   ///< never to be printed
  std::shared_ptr<Listener> listener;  ///< of rank 0, if it listens already
  std::string source;                  ///< "contextune", "torchrun", "open_mpi", "pmi", "slurm",
                                       ///< "communicator", "nccl", "none"
  /// What nobody has said yet, a sentence: ranks meet only after with_unique_id. Empty: nothing.
  std::string missing;
  std::string error;  ///< a sentence; if there is one, nothing else counts, and it is final

  /// The same with what is missing taken from the 128 bytes of an ncclUniqueId: it is the secret,
  /// and rank 0's host is that of the rank that made it. All ranks must give the same one: that of
  /// their first communicator that has all ranks. Without effect if nothing is missing.
  [[nodiscard]] Rendezvous with_unique_id(std::span<const std::byte> id) const;
};

/// Facts that the environment does not tell.
struct Surroundings {
  /// Where only this user can make sockets; empty: there is no such folder.
  std::function<std::string()> folder;
  /// Names the process that started the ranks of this host, given the variable that says which rank
  /// this is.
  std::function<std::string(std::string_view rank_variable)> starter;
};

/// The rendezvous of an NCCL communicator whose ranks are all on this host: they meet under its id.
/// @param id hash of its ncclUniqueId, the same on all its ranks
/// @param folder where only this user can make sockets; empty: there is none
[[nodiscard]] Rendezvous communicator_rendezvous(std::uint32_t rank, std::uint32_t num_ranks,
                                                 std::uint64_t id, const std::string& folder);

/// The same, in this user's folder. Makes it if there is none.
[[nodiscard]] Rendezvous find_communicator_rendezvous(std::uint32_t rank, std::uint32_t num_ranks,
                                                      std::uint64_t id);

/// The rendezvous of an NCCL communicator whose ranks are on several hosts. They meet as
/// with_unique_id has it, but for what CONTEXTUNE_ADDRESS and CONTEXTUNE_SECRET say. A launcher
/// says how many ranks there are before this one on its host.
/// @param id hash of all of its ids, the same on all its ranks
/// @param first_id of these, the bytes
[[nodiscard]] Rendezvous communicator_rendezvous_between_hosts(const VariableLookup& variable,
                                                               std::uint32_t rank,
                                                               std::uint32_t num_ranks,
                                                               std::uint64_t id,
                                                               std::span<const std::byte> first_id);

/// The same, in this process's environment.
[[nodiscard]] Rendezvous find_communicator_rendezvous_between_hosts(
    std::uint32_t rank, std::uint32_t num_ranks, std::uint64_t id,
    std::span<const std::byte> first_id);

/// The rendezvous that the launcher tells; see contextune::launched_by for which of several
/// launchers counts.
[[nodiscard]] Rendezvous rendezvous_of(const VariableLookup& variable,
                                       const Surroundings& surroundings);

/// The rendezvous of this process. Reads /proc, and makes the folder if there is none.
[[nodiscard]] Rendezvous find_rendezvous();

}  // namespace contextune::rank

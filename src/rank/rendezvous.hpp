#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace contextune::rank {

/// Where a process stands among those that were started with it.
struct Rendezvous {
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
  std::uint32_t local_rank = 0;  ///< on this host; the rank where nobody says
  std::string job;               ///< names the job; not empty if there are several ranks
  std::string address;  ///< of rank 0, as SocketSettings takes it; empty if there is one rank
  std::string source;   ///< "contextune", "torchrun", "open_mpi", "pmi", "slurm" or "none"
  std::string error;    ///< a sentence; if there is one, nothing else counts
};

/// Finds out from environment variables. The first of these that is there at all decides, and has
/// to be whole: CONTEXTUNE_RANK, _WORLD_SIZE and _ADDRESS; torchrun; Open MPI; PMIx or PMI; Slurm;
/// one rank. CONTEXTUNE_ADDRESS (unix:NAME, or HOST:PORT with or without tcp:) counts with each of
/// them. Without it, ranks that share one host meet at a Unix socket with a name of the job's; past
/// one host only torchrun and Slurm name a host, and the port is one of the job's. The port of
/// another library's store is never used.
/// @param parent process id of whoever started the ranks of this host: tells jobs without a name
///               apart
[[nodiscard]] Rendezvous rendezvous_of(const std::map<std::string, std::string>& environment,
                                       std::uint32_t parent);

}  // namespace contextune::rank

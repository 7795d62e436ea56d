#pragma once

#include <nccl.h>

#include <string>

/// Which of how many processes this one is, as torchrun, Open MPI or Slurm say it.
struct Place {
  int rank = 0, ranks = 1;
  int on_this_host = 0;
};
[[nodiscard]] Place place_of_this_process();

/// Gives all ranks of this host the id that rank 0 brings, over a Unix socket at `path`, which is
/// gone afterwards. Ends the process when not all have come within a minute.
void share_id(const Place& place, const std::string& path, ncclUniqueId& id);

#include "core/value/launcher.hpp"

#include "core/value/parse_number.hpp"

namespace contextune {
namespace {

constexpr std::array<Launcher, 5> launchers{{
    {"contextune",
     {"CONTEXTUNE_RANK"},
     {"CONTEXTUNE_WORLD_SIZE"},
     {"LOCAL_RANK"},
     {},
     {"CONTEXTUNE_ADDRESS"},
     {}},
    {"torchrun",
     {"RANK"},
     {"WORLD_SIZE"},
     {"LOCAL_RANK"},
     {"LOCAL_WORLD_SIZE"},
     // The master's port is not used, but no other job of the host has it at the same time.
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT"},
     {}},
    {"open_mpi",
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"},
     {}},
    {"pmi",
     {"PMIX_RANK", "PMI_RANK"},
     {"PMIX_SIZE", "PMI_SIZE"},
     {"PMIX_LOCAL_RANK", "MPI_LOCALRANKID"},
     {"PMIX_LOCAL_SIZE", "MPI_LOCALNRANKS"},
     {"PMIX_NAMESPACE", "PMI_JOBID"},
     {}},
    // A batch script is no step: it has the variables of a rank 0 without being one.
    {"slurm",
     {"SLURM_PROCID"},
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     {"SLURM_LOCALID"},
     {},
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"},
     "SLURM_STEP_ID"},
}};

// Null where a variable of contextune's own holds the option's default, and so says nothing.
const char* unless_default(const char* text, std::string_view by_default) {
  return text != nullptr && text == by_default ? nullptr : text;
}

Launched half(const Launcher& launcher, const char* rank) {
  Launched result;
  result.by = &launcher;
  result.rank = rank == nullptr ? 0 : parse_number<std::uint32_t>(rank).value_or(0);
  const std::string_view there = (rank == nullptr ? launcher.num_ranks : launcher.rank)[0];
  const std::string_view missing = (rank == nullptr ? launcher.rank : launcher.num_ranks)[0];
  result.fault = std::string(there) + " is set, but " + std::string(missing) + " is not";
  return result;
}

Launched read(const Launcher& launcher, const char* rank, const char* num_ranks) {
  Launched result;
  result.by = &launcher;
  const std::string names =
      std::string(launcher.rank[0]) + ", " + std::string(launcher.num_ranks[0]);
  const auto own = parse_number<std::uint32_t>(rank);
  const auto all = parse_number<std::uint32_t>(num_ranks);
  result.rank = own.value_or(0);
  if (!own || !all) {
    result.fault = std::string(!own ? rank : num_ranks) + " is no whole number (" + names + ")";
  } else if (*all == 0 || *all > max_num_ranks || *own >= *all) {
    result.fault =
        "rank " + std::string(rank) + " of " + num_ranks + " does not exist (" + names + ")";
  } else {
    result.num_ranks = *all;
  }
  return result;
}

}  // namespace

Launched launched_by(const VariableLookup& variable) {
  Launched first_half;
  for (const Launcher& launcher : launchers) {
    const bool own = &launcher == launchers.data();
    const char* rank = first_set(variable, launcher.rank);
    const char* num_ranks = first_set(variable, launcher.num_ranks);
    if (own) {
      rank = unless_default(rank, "-1");
      num_ranks = unless_default(num_ranks, "0");
      if ((rank == nullptr) != (num_ranks == nullptr)) return half(launcher, rank);
    }
    if (rank == nullptr) continue;
    const std::array needed{launcher.needs};
    if (!launcher.needs.empty() && first_set(variable, needed) == nullptr) continue;
    if (num_ranks != nullptr) return read(launcher, rank, num_ranks);
    if (first_half.by == nullptr) first_half = half(launcher, rank);
  }
  return first_half;
}

}  // namespace contextune

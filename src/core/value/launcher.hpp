#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace contextune {

/// Who starts the ranks of a job, and the variables that tell each of them which it is. The first
/// of several names that is set counts; empty is as good as not set.
struct Launcher {
  std::string_view source;  ///< "contextune", "torchrun", "open_mpi", "pmi" or "slurm"
  std::array<std::string_view, 2> rank;
  std::array<std::string_view, 2> num_ranks;
  std::array<std::string_view, 2> local_rank;
  std::array<std::string_view, 2> local_size;
  std::array<std::string_view, 4> job;  ///< all that are set, together, are the job's own
  std::string_view needs;  ///< without which the others tell of something else; empty: nothing
};

/// A variable's value; null if it is not set.
using VariableLookup = std::function<const char*(std::string_view name)>;

/// The rank that a launcher told this process, and the number of ranks. If `fault` says something,
/// only `rank` still counts, and only to tell processes apart.
struct Launched {
  const Launcher* by = nullptr;  ///< null: nobody started this process as a rank
  std::uint32_t rank = 0;
  std::uint32_t num_ranks = 1;
  std::string fault;  ///< a sentence
};

/// More ranks than that are taken for a mistake.
inline constexpr std::uint32_t max_num_ranks = 65536;

/// The first launcher that told this process both its rank and how many there are: contextune's own
/// variables, torchrun, Open MPI, PMIx or PMI, Slurm. A launcher that told only half of it is a
/// fault if no other told all, and contextune's own always.
[[nodiscard]] Launched launched_by(const VariableLookup& variable);

/// The value of the first of the names that is set; null: none is.
template <class Names>
[[nodiscard]] const char* first_set(const VariableLookup& variable, const Names& names) {
  for (const std::string_view name : names) {
    if (name.empty()) continue;
    const char* value = variable(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace contextune

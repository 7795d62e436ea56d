#include "log/rank_of_environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace contextune::log {

int rank_of_environment() noexcept {
  for (const char* name : {"CONTEXTUNE_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                           "PMI_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const char* end = text + std::strlen(text);
    int rank = 0;
    const auto [stop, error] = std::from_chars(text, end, rank);
    if (error == std::errc{} && stop == end && rank >= 0) return rank;
  }
  return 0;
}

}  // namespace contextune::log

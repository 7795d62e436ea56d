#include "rank/rendezvous.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "rank/handshake.hpp"

namespace contextune::rank {
namespace {

using Environment = std::map<std::string, std::string>;

constexpr std::uint32_t max_ranks = 65536;

/// Which variables a launcher sets. Of several names the first that is set counts.
struct Launcher {
  std::string_view source;
  std::array<std::string_view, 2> rank;
  std::array<std::string_view, 2> num_ranks;
  std::array<std::string_view, 2> local_rank;
  std::array<std::string_view, 2> local_size;
  std::array<std::string_view, 3> job;  // all that are set, together
};

constexpr std::array<Launcher, 5> launchers{{
    {"contextune",
     {"CONTEXTUNE_RANK"},
     {"CONTEXTUNE_WORLD_SIZE"},
     {"LOCAL_RANK"},
     {},
     {"CONTEXTUNE_JOB"}},
    {"torchrun",
     {"RANK"},
     {"WORLD_SIZE"},
     {"LOCAL_RANK"},
     {"LOCAL_WORLD_SIZE"},
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"open_mpi",
     {"OMPI_COMM_WORLD_RANK"},
     {"OMPI_COMM_WORLD_SIZE"},
     {"OMPI_COMM_WORLD_LOCAL_RANK"},
     {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"pmi",
     {"PMIX_RANK", "PMI_RANK"},
     {"PMIX_SIZE", "PMI_SIZE"},
     {"PMIX_LOCAL_RANK", "MPI_LOCALRANKID"},
     {"PMIX_LOCAL_SIZE", "MPI_LOCALNRANKS"},
     {"PMIX_NAMESPACE", "PMI_JOBID"}},
    {"slurm",
     {"SLURM_PROCID"},
     {"SLURM_NTASKS", "SLURM_NPROCS"},
     {"SLURM_LOCALID"},
     {},
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
}};

// Empty is as good as not there.
const std::string* find(const Environment& environment, std::string_view name) {
  if (name.empty()) return nullptr;
  const auto place = environment.find(std::string(name));
  return place == environment.end() || place->second.empty() ? nullptr : &place->second;
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

// The number in the first of the variables that is set. Nothing, and no error: none is.
std::optional<std::uint32_t> number_of(const Environment& environment,
                                       const std::array<std::string_view, 2>& names,
                                       std::string& error) {
  for (const std::string_view name : names) {
    const std::string* text = find(environment, name);
    if (text == nullptr) continue;
    const std::optional<std::uint32_t> number = whole_number(*text);
    if (!number) error = std::string(name) + "=" + *text + " is no whole number";
    return number;
  }
  return std::nullopt;
}

bool is_started_by(const Environment& environment, const Launcher& launcher) {
  for (const std::string_view name : launcher.rank) {
    if (find(environment, name) != nullptr) return true;
  }
  return false;
}

// "node[07-12,20]" or "a,b": the first host.
std::string first_host(std::string_view list) {
  const std::size_t bracket = list.find('[');
  const std::size_t comma = list.find(',');
  if (bracket == std::string_view::npos || comma < bracket)
    return std::string(list.substr(0, comma));
  const std::string_view numbers = list.substr(bracket + 1);
  return std::string(list.substr(0, bracket)) +
         std::string(numbers.substr(0, numbers.find_first_of(",-]")));
}

std::string host_of_rank_0(const Environment& environment, std::string_view source) {
  if (source == "torchrun") {
    const std::string* host = find(environment, "MASTER_ADDR");
    return host == nullptr ? std::string() : *host;
  }
  if (source != "slurm") return {};
  for (const std::string_view name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (const std::string* list = find(environment, name)) return first_host(*list);
  }
  return {};
}

bool is_on_one_host(const Environment& environment, const Launcher& launcher,
                    std::uint32_t num_ranks) {
  if (launcher.source == "slurm") {
    const std::string* nodes = find(environment, "SLURM_STEP_NUM_NODES");
    if (nodes == nullptr) nodes = find(environment, "SLURM_NNODES");
    return nodes != nullptr && *nodes == "1";
  }
  std::string ignored;
  return number_of(environment, launcher.local_size, ignored) == num_ranks;
}

std::string job_of(const Environment& environment, const Launcher& launcher, bool one_host,
                   std::uint32_t parent) {
  std::string job(launcher.source);
  for (const std::string_view name : launcher.job) {
    if (const std::string* part = find(environment, name)) job += "-" + *part;
  }
  // On one host all have the same parent, whose number no other job has.
  if (one_host && launcher.source != "slurm") job += "-" + std::to_string(parent);
  return job;
}

// Below those that the system gives out itself, beside those that stores like.
std::string port_of(const std::string& job) {
  return std::to_string(21000 + number_of_job(job) % 8000);
}

Rendezvous failed(std::string error) {
  Rendezvous result;
  result.error = std::move(error);
  return result;
}

Rendezvous read(const Environment& environment, const Launcher& launcher, std::uint32_t parent) {
  Rendezvous result;
  std::string error;
  const auto rank = number_of(environment, launcher.rank, error);
  if (!error.empty()) return failed(error);
  const auto num_ranks = number_of(environment, launcher.num_ranks, error);
  if (!error.empty()) return failed(error);
  if (!rank || !num_ranks)
    return failed(std::string(launcher.rank[0]) + " is set, but " +
                  std::string(launcher.num_ranks[0]) + " is not");
  if (*num_ranks == 0 || *num_ranks > max_ranks || *rank >= *num_ranks)
    return failed("rank " + std::to_string(*rank) + " of " + std::to_string(*num_ranks) +
                  " does not exist (" + std::string(launcher.rank[0]) + ", " +
                  std::string(launcher.num_ranks[0]) + ")");
  result.rank = *rank;
  result.num_ranks = *num_ranks;
  result.local_rank = number_of(environment, launcher.local_rank, error).value_or(*rank);
  if (!error.empty()) return failed(error);
  result.source = launcher.source;
  if (result.num_ranks == 1) return result;

  const bool one_host = is_on_one_host(environment, launcher, result.num_ranks);
  result.job = job_of(environment, launcher, one_host, parent);
  if (const std::string* given = find(environment, "CONTEXTUNE_ADDRESS")) {
    const bool has_kind = given->starts_with("unix:") || given->starts_with("tcp:");
    result.address = has_kind ? *given : "tcp:" + *given;
    return result;
  }
  if (one_host) {
    // A name of that length always fits.
    result.address = "unix:contextune-" + std::to_string(number_of_job(result.job));
    return result;
  }
  const std::string host = host_of_rank_0(environment, launcher.source);
  if (host.empty())
    return failed("nothing says where rank 0 of " + std::to_string(result.num_ranks) +
                  " can be reached: set CONTEXTUNE_ADDRESS to HOST:PORT, or to unix:NAME if all "
                  "ranks are on one host");
  const bool is_ipv6 = host.find(':') != std::string::npos;
  result.address = "tcp:" + (is_ipv6 ? "[" + host + "]" : host) + ":" + port_of(result.job);
  return result;
}

}  // namespace

Rendezvous rendezvous_of(const Environment& environment, std::uint32_t parent) {
  for (const Launcher& launcher : launchers) {
    if (is_started_by(environment, launcher)) return read(environment, launcher, parent);
  }
  Rendezvous alone;
  alone.source = "none";
  return alone;
}

}  // namespace contextune::rank

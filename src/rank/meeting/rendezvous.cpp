#include "rank/meeting/rendezvous.hpp"

#include <utility>

#include "core/value/hexadecimal.hpp"
#include "core/value/launcher.hpp"
#include "core/value/parse_number.hpp"
#include "environment/variables.hpp"
#include "rank/meeting/surroundings.hpp"
#include "rank/meeting/unique_id.hpp"
#include "rank/wire/handshake.hpp"

namespace contextune::rank {
namespace {

std::string text_of(const VariableLookup& variable, std::string_view name) {
  const char* value = variable(name);
  return value == nullptr ? std::string() : std::string(value);
}

Rendezvous failed(std::string error) {
  Rendezvous result;
  result.error = std::move(error);
  return result;
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

std::string host_of_rank_0(const VariableLookup& variable, std::string_view source) {
  if (source == "torchrun") return text_of(variable, "MASTER_ADDR");
  if (source != "slurm") return {};
  const std::string list = text_of(variable, "SLURM_STEP_NODELIST");
  return first_host(list.empty() ? text_of(variable, "SLURM_JOB_NODELIST") : list);
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool is_on_one_host(const VariableLookup& variable, const Launcher& launcher,
                    std::uint32_t num_ranks) {
  const char* size = first_set(variable, launcher.local_size);
  if (size != nullptr) return parse_number<std::uint32_t>(size) == num_ranks;
  if (launcher.source == "torchrun") return is_loopback(host_of_rank_0(variable, "torchrun"));
  // PMI is also how Slurm tells.
  return (launcher.source == "slurm" || launcher.source == "pmi") &&
         (text_of(variable, "SLURM_STEP_NUM_NODES") == "1" ||
          text_of(variable, "SLURM_NNODES") == "1");
}

std::string job_of(const VariableLookup& variable, const Launcher& launcher, bool one_host,
                   const Surroundings& surroundings) {
  std::string job(launcher.source);
  bool named = false;
  for (const std::string_view name : launcher.job) {
    const std::string part = name.empty() ? std::string() : text_of(variable, name);
    if (part.empty()) continue;
    job += "-" + part;
    named = true;
  }
  if (!named && one_host && surroundings.starter) {
    for (const std::string_view name : launcher.rank) {
      if (first_set(variable, std::array{name}) == nullptr) continue;
      job += "-" + surroundings.starter(name);
      break;
    }
  }
  return job;
}

std::string hash_text(const std::string& job) {
  return hexadecimal(number_of_job(job));
}

// Below the ports that the system gives out itself, beside those that stores like.
std::string tcp_address(const std::string& host, const std::string& job,
                        const std::string& port_of_store = {}) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  const auto port = 21000 + number_of_job(job) % 8000;
  const bool is_store = std::to_string(port) == port_of_store;
  return "tcp:" + (is_ipv6 ? "[" + host + "]" : host) + ":" +
         std::to_string(is_store ? port + 1 : port);
}

// The secret is looked at last: without TCP none is needed.
void demand_secret(Rendezvous& result) {
  const bool tcp = result.address.empty() || !result.address.starts_with("unix:");
  if (!tcp || result.num_ranks == 1) return;
  if (!result.secret.empty() && result.secret.size() < min_secret_bytes) {
    result = failed("CONTEXTUNE_SECRET has less than " + std::to_string(min_secret_bytes) +
                    " characters");
  } else if (result.secret.empty()) {
    result.missing =
        "ranks on several hosts agree only with a shared secret: set CONTEXTUNE_SECRET to the same "
        "random text on all of them";
  }
}

void take_given_address(Rendezvous& result, const std::string& given) {
  const bool has_kind = given.starts_with("unix:") || given.starts_with("tcp:");
  result.address = given.empty() || has_kind ? given : "tcp:" + given;
}

/// @param rank where nobody says
std::uint32_t local_rank_of(const VariableLookup& variable, const Launched& launched,
                            std::uint32_t rank) {
  const char* const local =
      launched.by == nullptr ? nullptr : first_set(variable, launched.by->local_rank);
  return local == nullptr ? rank : parse_number<std::uint32_t>(local).value_or(rank);
}

Rendezvous read(const VariableLookup& variable, const Launched& launched,
                const Surroundings& surroundings) {
  const Launcher& launcher = *launched.by;
  Rendezvous result;
  result.source = launcher.source;
  result.rank = launched.rank;
  result.num_ranks = launched.num_ranks;
  result.local_rank = local_rank_of(variable, launched, result.rank);
  if (result.num_ranks == 1) return result;

  const bool one_host = is_on_one_host(variable, launcher, result.num_ranks);
  result.job = job_of(variable, launcher, one_host, surroundings);
  result.secret = text_of(variable, "CONTEXTUNE_SECRET");
  const std::string given = text_of(variable, "CONTEXTUNE_ADDRESS");
  const std::string host = host_of_rank_0(variable, launcher.source);
  if (!given.empty()) {
    take_given_address(result, given);
  } else if (launcher.source == "contextune") {
    return failed(
        "CONTEXTUNE_RANK and CONTEXTUNE_WORLD_SIZE are set, but CONTEXTUNE_ADDRESS is not: set it "
        "to HOST:PORT, or to unix:NAME if all ranks are on one host");
  } else if (one_host) {
    const std::string folder = surroundings.folder ? surroundings.folder() : std::string();
    if (folder.empty())
      return failed(
          "there is no folder in which only this user can make sockets: set "
          "CONTEXTUNE_ADDRESS to unix:NAME");
    result.address = "unix:" + folder + "/" + hash_text(result.job);
  } else if (!host.empty()) {
    result.address = tcp_address(host, result.job, text_of(variable, "MASTER_PORT"));
  }
  demand_secret(result);
  if (result.address.empty() && result.error.empty())
    result.missing =
        "nothing says where rank 0 of " + std::to_string(result.num_ranks) +
        " can be reached: set CONTEXTUNE_ADDRESS to HOST:PORT and CONTEXTUNE_SECRET, or "
        "CONTEXTUNE_ADDRESS to unix:NAME if all ranks are on one host";
  return result;
}

}  // namespace

Rendezvous Rendezvous::with_unique_id(std::span<const std::byte> id) const {
  if (missing.empty() || !error.empty()) return *this;
  std::string fault;
  const UniqueIdParts parts = parts_of_unique_id(id, fault);
  if (!fault.empty()) return failed(missing + " (" + fault + ")");
  Rendezvous result = *this;
  result.job += "-" + hash_text(parts.secret);
  if (result.address.empty()) {
    if (parts.host.empty()) return failed(missing);
    result.address = tcp_address(parts.host, result.job);
  }
  if (result.secret.empty()) result.secret = parts.secret;
  result.missing.clear();
  return result;
}

Rendezvous communicator_rendezvous(std::uint32_t rank, std::uint32_t num_ranks, std::uint64_t id,
                                   const std::string& folder) {
  if (num_ranks == 0 || num_ranks > max_num_ranks || rank >= num_ranks)
    return failed("rank " + std::to_string(rank) + " of " + std::to_string(num_ranks) +
                  " does not exist");
  Rendezvous result;
  result.source = "nccl";
  result.rank = rank;
  result.num_ranks = num_ranks;
  result.local_rank = rank;
  result.job = "nccl-" + std::to_string(id);
  if (num_ranks == 1) return result;
  if (folder.empty()) return failed("there is no folder in which only this user can make sockets");
  result.address = "unix:" + folder + "/" + hash_text(result.job);
  // Everybody in the folder sees the name of the socket, which must not give this away.
  result.secret = hash_text("secret of " + result.job) + hash_text(result.job + " is known");
  return result;
}

Rendezvous find_communicator_rendezvous(std::uint32_t rank, std::uint32_t num_ranks,
                                        std::uint64_t id) {
  const char* const runtime_folder = variable("XDG_RUNTIME_DIR");
  const std::string folder = private_folder(runtime_folder == nullptr ? "" : runtime_folder);
  if (rank == 0 && !folder.empty()) remove_leftovers(folder);
  return communicator_rendezvous(rank, num_ranks, id, folder);
}

Rendezvous communicator_rendezvous_between_hosts(const VariableLookup& variable, std::uint32_t rank,
                                                 std::uint32_t num_ranks, std::uint64_t id,
                                                 std::span<const std::byte> first_id) {
  Rendezvous result;
  result.source = "nccl";
  result.rank = rank;
  result.num_ranks = num_ranks;
  result.local_rank = local_rank_of(variable, launched_by(variable), rank);
  result.job = "nccl-" + std::to_string(id);
  take_given_address(result, text_of(variable, "CONTEXTUNE_ADDRESS"));
  result.secret = text_of(variable, "CONTEXTUNE_SECRET");
  demand_secret(result);
  if (!result.error.empty() || (result.missing.empty() && !result.address.empty())) return result;
  result.missing =
      "their ncclUniqueId does not say where rank 0 can be reached: set CONTEXTUNE_ADDRESS to "
      "HOST:PORT of rank 0 and CONTEXTUNE_SECRET to the same random text on all of them";
  return result.with_unique_id(first_id);
}

Rendezvous rendezvous_of(const VariableLookup& variable, const Surroundings& surroundings) {
  const Launched launched = launched_by(variable);
  if (!launched.fault.empty()) return failed(launched.fault);
  if (launched.by != nullptr) return read(variable, launched, surroundings);
  Rendezvous alone;
  alone.source = "none";
  return alone;
}

Rendezvous find_communicator_rendezvous_between_hosts(std::uint32_t rank, std::uint32_t num_ranks,
                                                      std::uint64_t id,
                                                      std::span<const std::byte> first_id) {
  return communicator_rendezvous_between_hosts(variable, rank, num_ranks, id, first_id);
}

Rendezvous find_rendezvous() {
  const VariableLookup of_process = variable;
  std::string folder;
  const auto find_folder = [&] {
    folder = private_folder(text_of(of_process, "XDG_RUNTIME_DIR"));
    return folder;
  };
  Rendezvous found = rendezvous_of(of_process, {find_folder, starter_of_ranks});
  if (found.rank == 0 && !folder.empty()) remove_leftovers(folder);
  return found;
}

}  // namespace contextune::rank

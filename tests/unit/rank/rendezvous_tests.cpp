#include "rank/meeting/rendezvous.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "log/rank_of_environment.hpp"
#include "mentions.hpp"

using contextune::rank::Rendezvous;
using Environment = std::map<std::string, std::string>;

namespace {

const Environment torchrun{{"RANK", "3"},
                           {"WORLD_SIZE", "8"},
                           {"LOCAL_RANK", "1"},
                           {"LOCAL_WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "node7"},
                           {"MASTER_PORT", "29500"},
                           {"TORCHELASTIC_RUN_ID", "abc"}};
const Environment slurm{{"SLURM_PROCID", "5"},        {"SLURM_NTASKS", "16"},
                        {"SLURM_LOCALID", "1"},       {"SLURM_JOB_ID", "42"},
                        {"SLURM_STEP_ID", "0"},       {"SLURM_STEP_NODELIST", "gpu[07-10,12]"},
                        {"SLURM_STEP_NUM_NODES", "5"}};
const Environment open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "2"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                           {"PMIX_RANK", "7"},
                           {"PMIX_NAMESPACE", "job1"}};

contextune::VariableLookup lookup(const Environment& environment) {
  return [&](std::string_view name) -> const char* {
    const auto place = environment.find(std::string(name));
    return place == environment.end() ? nullptr : place->second.c_str();
  };
}

// Launchers and folders are the same for all ranks of these tests.
Rendezvous rendezvous_of(const Environment& environment, const std::string& starter = "100-1") {
  return contextune::rank::rendezvous_of(
      lookup(environment), {[] { return std::string("/private"); },
                            [&](std::string_view name) { return starter + std::string(name); }});
}

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

// As NCCL makes it: a random number, the address of the rank that made it, and nothing.
std::vector<std::byte> unique_id(const std::string& host,
                                 std::uint64_t random = 0x1234567890abcdef) {
  std::vector<std::byte> id(128);
  std::memcpy(id.data(), &random, sizeof(random));
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(41000);
    std::memcpy(id.data() + sizeof(random), &v4, sizeof(v4));
  } else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(41000);
    std::memcpy(id.data() + sizeof(random), &v6, sizeof(v6));
  }
  return id;
}

const Environment secret{{"CONTEXTUNE_SECRET", "0123456789abcdef"}};

}  // namespace

TEST_CASE("A process that nobody started as a rank is alone", "[rendezvous]") {
  const Rendezvous found = rendezvous_of({{"HOME", "/root"}, {"MASTER_PORT", "29500"}});
  CHECK(found.error.empty());
  CHECK(found.source == "none");
  CHECK(found.num_ranks == 1);
  CHECK(found.address.empty());
  CHECK(rendezvous_of({{"CONTEXTUNE_RANK", "-1"}, {"CONTEXTUNE_WORLD_SIZE", "0"}}).source ==
        "none");
}

TEST_CASE("What is said for contextune goes before every launcher", "[rendezvous]") {
  const Environment own{{"CONTEXTUNE_RANK", "0"},
                        {"CONTEXTUNE_WORLD_SIZE", "2"},
                        {"CONTEXTUNE_ADDRESS", "node1:7000"}};
  const Rendezvous found = rendezvous_of(with(with(torchrun, own), secret));
  CHECK(found.error.empty());
  CHECK(found.missing.empty());
  CHECK(found.source == "contextune");
  CHECK(found.rank == 0);
  CHECK(found.num_ranks == 2);
  CHECK(found.address == "tcp:node1:7000");
  CHECK(found.secret == "0123456789abcdef");
}

TEST_CASE("Half of what contextune needs is an error, whatever launchers say", "[rendezvous]") {
  const auto [given, missing] = GENERATE(table<Environment, std::string>(
      {{{{"CONTEXTUNE_RANK", "0"}}, "CONTEXTUNE_WORLD_SIZE is not"},
       {{{"CONTEXTUNE_WORLD_SIZE", "2"}}, "CONTEXTUNE_RANK is not"},
       {{{"CONTEXTUNE_RANK", "0"}, {"CONTEXTUNE_WORLD_SIZE", "2"}}, "CONTEXTUNE_ADDRESS is"}}));
  CHECK(mentions(rendezvous_of(with(torchrun, given)).error, missing));
}

TEST_CASE("Launchers are tried in their order", "[rendezvous]") {
  Environment all = with(with(slurm, open_mpi), torchrun);
  CHECK(rendezvous_of(all).source == "torchrun");
  all.erase("RANK");
  CHECK(rendezvous_of(all).source == "open_mpi");
  all.erase("OMPI_COMM_WORLD_RANK");
  all["PMIX_RANK"] = "1";
  all["PMI_SIZE"] = "2";
  all["CONTEXTUNE_ADDRESS"] = "unix:here";
  CHECK(rendezvous_of(all).source == "pmi");
  CHECK(rendezvous_of(all).address == "unix:here");
  all.erase("PMIX_RANK");
  CHECK(rendezvous_of(all).source == "slurm");
}

TEST_CASE("One that says half of it is left for one that says all", "[rendezvous]") {
  // Slurm with PMIx gives its own count only.
  CHECK(rendezvous_of(with(slurm, {{"PMIX_RANK", "5"}})).source == "slurm");
  CHECK(rendezvous_of(with(open_mpi, {{"RANK", "7"}})).source == "open_mpi");
}

TEST_CASE("A batch script of Slurm is no rank, though it has the variables of one",
          "[rendezvous]") {
  Environment batch = slurm;
  batch.erase("SLURM_STEP_ID");
  batch["SLURM_PROCID"] = "0";
  CHECK(rendezvous_of(batch).source == "none");
}

TEST_CASE("Under torchrun, ranks meet at the master's host, never at the port of its store",
          "[rendezvous]") {
  const Rendezvous found = rendezvous_of(with(torchrun, secret));
  REQUIRE(found.error.empty());
  CHECK(found.rank == 3);
  CHECK(found.num_ranks == 8);
  CHECK(found.local_rank == 1);
  CHECK(found.address.starts_with("tcp:node7:2"));
  CHECK(found.address == rendezvous_of(with(torchrun, {{"RANK", "4"}}), "another").address);
  for (int port = 21000; port < 29000; port += 7) {
    const std::string store = std::to_string(port);
    REQUIRE_FALSE(rendezvous_of(with(torchrun, {{"MASTER_PORT", store}})).address.ends_with(store));
  }
}

TEST_CASE("A host that is an IPv6 address is put in brackets", "[rendezvous]") {
  CHECK(rendezvous_of(with(torchrun, {{"MASTER_ADDR", "fe80::1"}}))
            .address.starts_with("tcp:[fe80::1]:2"));
}

TEST_CASE("On one host ranks meet in a folder of the user's, under a name of the job's",
          "[rendezvous]") {
  const Environment one_host =
      GENERATE(with(torchrun, {{"LOCAL_WORLD_SIZE", "8"}}),
               with(torchrun, {{"LOCAL_WORLD_SIZE", ""}, {"MASTER_ADDR", "localhost"}}), open_mpi,
               with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}),
               with(slurm, {{"SLURM_STEP_NUM_NODES", "1"},
                            {"PMI_RANK", "5"},
                            {"PMI_SIZE", "16"},
                            {"PMI_JOBID", "42.0"}}),
               Environment{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  const Rendezvous found = rendezvous_of(one_host);
  REQUIRE(found.error.empty());
  CHECK(found.missing.empty());
  CHECK(found.address.starts_with("unix:/private/"));
  CHECK(found.address.size() == std::string("unix:/private/").size() + 16);
  // Where the job has a name, scripts around the ranks do not matter.
  const bool has_name = one_host.size() > 3;
  CHECK((found.address == rendezvous_of(one_host, "200-7").address) == has_name);
  for (const auto& [name, value] : Environment{{"TORCHELASTIC_RUN_ID", "other"},
                                               {"TORCHELASTIC_RESTART_COUNT", "1"},
                                               {"MASTER_PORT", "29501"},
                                               {"PMIX_NAMESPACE", "other"},
                                               {"SLURM_JOB_ID", "43"},
                                               {"SLURM_STEP_ID", "1"},
                                               {"PMI_JOBID", "42.1"}}) {
    CAPTURE(name);
    if (one_host.contains(name) && !(name.starts_with("SLURM") && one_host.contains("PMI_JOBID")))
      CHECK(found.address != rendezvous_of(with(one_host, {{name, value}})).address);
  }
}

TEST_CASE("Where the user has no folder to himself, he is told what to set", "[rendezvous]") {
  const auto variable = [](std::string_view name) -> const char* {
    const auto place = open_mpi.find(std::string(name));
    return place == open_mpi.end() ? nullptr : place->second.c_str();
  };
  const Rendezvous found =
      contextune::rank::rendezvous_of(variable, {[] { return std::string(); }, {}});
  CHECK(mentions(found.error, "CONTEXTUNE_ADDRESS to unix:NAME"));
}

TEST_CASE("Past one host nobody meets without a secret", "[rendezvous]") {
  const Environment hosts =
      GENERATE(with(torchrun, {}), slurm, with(torchrun, {{"CONTEXTUNE_ADDRESS", "a:1"}}));
  const Rendezvous found = rendezvous_of(hosts);
  CHECK(found.error.empty());
  CHECK(mentions(found.missing, "CONTEXTUNE_SECRET"));
  CHECK(rendezvous_of(with(hosts, secret)).missing.empty());
  CHECK(mentions(rendezvous_of(with(hosts, {{"CONTEXTUNE_SECRET", "hunter2hunter2"}})).error,
                 "less than 16"));
}

TEST_CASE("No sentence holds the secret", "[rendezvous]") {
  for (const std::string word : {"hunter2hunter2", "hunter2hunter2hunter2"}) {
    const Rendezvous found = rendezvous_of(with(torchrun, {{"CONTEXTUNE_SECRET", word}}));
    CHECK_FALSE(mentions(found.error + found.missing + found.address + found.job, "hunter"));
  }
}

TEST_CASE("What launchers do not say comes from the job's ncclUniqueId", "[rendezvous]") {
  const Environment two_hosts = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  const Rendezvous waiting = rendezvous_of(two_hosts);
  CHECK(waiting.error.empty());
  CHECK(mentions(waiting.missing, "CONTEXTUNE_ADDRESS"));
  const Rendezvous found = waiting.with_unique_id(unique_id("10.1.2.3"));
  CHECK(found.error.empty());
  CHECK(found.missing.empty());
  CHECK(found.address.starts_with("tcp:10.1.2.3:2"));
  CHECK(found.secret.size() == 128);
  CHECK(found.address == rendezvous_of(with(two_hosts, {{"OMPI_COMM_WORLD_RANK", "0"}}))
                             .with_unique_id(unique_id("10.1.2.3"))
                             .address);
  CHECK(
      waiting.with_unique_id(unique_id("2001:db8::7")).address.starts_with("tcp:[2001:db8::7]:2"));
  SECTION("another number is another job") {
    const Rendezvous other = waiting.with_unique_id(unique_id("10.1.2.3", 99));
    CHECK(other.job != found.job);
    CHECK(other.secret != found.secret);
  }
  SECTION("a secret of the user's stays, and so does a host that the launcher named") {
    CHECK(rendezvous_of(with(two_hosts, secret)).with_unique_id(unique_id("10.1.2.3")).secret ==
          secret.at("CONTEXTUNE_SECRET"));
    CHECK(rendezvous_of(torchrun).with_unique_id(unique_id("10.1.2.3")).address ==
          rendezvous_of(torchrun).address);
  }
  SECTION("where nothing is missing it changes nothing") {
    CHECK(rendezvous_of(open_mpi).with_unique_id(unique_id("10.1.2.3")).address ==
          rendezvous_of(open_mpi).address);
    CHECK(rendezvous_of(open_mpi).with_unique_id(unique_id("10.1.2.3")).secret.empty());
  }
}

TEST_CASE("Ranks of a communicator on several hosts meet by its ncclUniqueId", "[rendezvous]") {
  const auto found = [](const Environment& environment, const std::vector<std::byte>& id) {
    return contextune::rank::communicator_rendezvous_between_hosts(lookup(environment), 3, 4, 77,
                                                                   id);
  };
  const Rendezvous plain = found({}, unique_id("10.1.2.3"));
  CHECK(plain.error + plain.missing == "");
  CHECK(plain.address.starts_with("tcp:10.1.2.3:2"));
  CHECK(plain.secret.size() == 128);
  CHECK(plain.local_rank == 3);
  CHECK(found(with(torchrun, {{"LOCAL_RANK", "1"}}), unique_id("10.1.2.3")).local_rank == 1);
  CHECK(found(secret, unique_id("10.1.2.3")).secret == secret.at("CONTEXTUNE_SECRET"));
  CHECK(found({{"CONTEXTUNE_SECRET", "short"}}, unique_id("10.1.2.3")).error != "");
  const Environment address{{"CONTEXTUNE_ADDRESS", "10.9.9.9:7"}};
  CHECK(found(address, unique_id("10.1.2.3")).address == "tcp:10.9.9.9:7");
  CHECK(mentions(found(address, unique_id("10.1.2.3", 0)).error, "no random number"));
  // With both there is nothing that the id would have to say.
  CHECK(found(with(address, secret), unique_id("10.1.2.3", 0)).error == "");
  CHECK(mentions(found({}, unique_id("")).error, "CONTEXTUNE_ADDRESS"));
}

TEST_CASE("An ncclUniqueId that holds no address or no random number ends the rendezvous",
          "[rendezvous]") {
  const Rendezvous waiting = rendezvous_of(with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
  CHECK(mentions(waiting.with_unique_id(unique_id("")).error, "CONTEXTUNE_ADDRESS"));
  CHECK(mentions(waiting.with_unique_id(unique_id("0.0.0.0")).error, "CONTEXTUNE_ADDRESS"));
  CHECK(mentions(waiting.with_unique_id(unique_id("fe80::1")).error, "CONTEXTUNE_ADDRESS"));
  CHECK(mentions(waiting.with_unique_id(unique_id("10.1.2.3", 0)).error, "no random number"));
  CHECK(mentions(waiting.with_unique_id(unique_id("10.1.2.3", 0x0280028002800280)).error,
                 "NCCL_COMM_ID"));
  CHECK(mentions(waiting.with_unique_id(std::vector<std::byte>(64, std::byte{1})).error, "64"));
}

TEST_CASE("Under Slurm ranks meet at the first host of the step", "[rendezvous]") {
  CHECK(rendezvous_of(slurm).address.starts_with("tcp:gpu07:2"));
  CHECK(rendezvous_of(with(slurm, {{"SLURM_STEP_NODELIST", "a3,b[1-2]"}}))
            .address.starts_with("tcp:a3:2"));
}

TEST_CASE("A launcher that says half of it, or nonsense, is an error", "[rendezvous]") {
  CHECK(mentions(rendezvous_of({{"RANK", "1"}}).error, "WORLD_SIZE is not"));
  CHECK(mentions(rendezvous_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}).error, "x is no whole"));
  CHECK(mentions(rendezvous_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}).error, "-1 is no whole"));
  CHECK(mentions(rendezvous_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}).error, "rank 2 of 2"));
  CHECK(mentions(rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}).error, "rank 0 of 0"));
  CHECK(mentions(rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}).error,
                 "99999999999 is no whole"));
}

TEST_CASE("One rank of one needs no address", "[rendezvous]") {
  const Rendezvous found = rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  CHECK(found.error.empty());
  CHECK(found.source == "torchrun");
  CHECK(found.address.empty());
}

TEST_CASE("The rank log is that of the rank by which ranks meet", "[rendezvous]") {
  const Environment pmi{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"CONTEXTUNE_ADDRESS", "unix:x"}};
  const Environment own{
      {"CONTEXTUNE_RANK", "1"}, {"CONTEXTUNE_WORLD_SIZE", "2"}, {"CONTEXTUNE_ADDRESS", "unix:x"}};
  for (const Environment& environment : {torchrun, slurm, open_mpi, pmi, with(slurm, open_mpi),
                                         with(with(slurm, pmi), torchrun), with(torchrun, own)}) {
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    const int logged = contextune::log::rank_of_environment();
    for (const auto& [name, value] : environment) unsetenv(name.c_str());
    const Rendezvous found = rendezvous_of(environment);
    CAPTURE(found.source);
    REQUIRE(found.error.empty());
    CHECK(found.rank == static_cast<std::uint32_t>(logged));
  }
}

TEST_CASE("The ranks of a communicator meet under its id, which the address does not tell",
          "[rendezvous]") {
  using contextune::rank::communicator_rendezvous;
  const Rendezvous one = communicator_rendezvous(0, 4, 1234, "/private");
  const Rendezvous other = communicator_rendezvous(3, 4, 1234, "/private");
  CHECK(one.error.empty());
  CHECK(one.source == "nccl");
  CHECK(other.rank == 3);
  CHECK(other.num_ranks == 4);
  CHECK(one.address == other.address);
  CHECK(one.secret == other.secret);
  CHECK(one.job == other.job);
  CHECK(one.secret.size() >= 16);
  CHECK_FALSE(mentions(one.secret, one.address.substr(one.address.rfind('/') + 1)));
  CHECK(communicator_rendezvous(0, 4, 1235, "/private").address != one.address);
  CHECK(mentions(communicator_rendezvous(4, 4, 1, "/private").error, "rank 4 of 4"));
  CHECK(mentions(communicator_rendezvous(0, 4, 1, "").error, "no folder"));
}

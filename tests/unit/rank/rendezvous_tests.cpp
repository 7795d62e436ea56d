#include "rank/rendezvous.hpp"

#include <stdlib.h>

#include "catch.hpp"
#include "log/rank_of_environment.hpp"
#include "mentions.hpp"

using contextune::rank::Rendezvous;
using contextune::rank::rendezvous_of;
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

Environment with(Environment environment, const Environment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

}  // namespace

TEST_CASE("A process that nobody started as a rank is alone", "[rendezvous]") {
  const Rendezvous found = rendezvous_of({{"HOME", "/root"}, {"MASTER_PORT", "29500"}}, 1);
  CHECK(found.error.empty());
  CHECK(found.source == "none");
  CHECK(found.num_ranks == 1);
  CHECK(found.address.empty());
}

TEST_CASE("What is said for contextune goes before every launcher", "[rendezvous]") {
  const Rendezvous found = rendezvous_of(with(torchrun, {{"CONTEXTUNE_RANK", "0"},
                                                         {"CONTEXTUNE_WORLD_SIZE", "2"},
                                                         {"CONTEXTUNE_ADDRESS", "node1:7000"}}),
                                         1);
  CHECK(found.error.empty());
  CHECK(found.source == "contextune");
  CHECK(found.rank == 0);
  CHECK(found.num_ranks == 2);
  CHECK(found.address == "tcp:node1:7000");
}

TEST_CASE("Launchers are tried in their order", "[rendezvous]") {
  Environment all = with(with(slurm, open_mpi), torchrun);
  CHECK(rendezvous_of(all, 1).source == "torchrun");
  all.erase("RANK");
  CHECK(rendezvous_of(all, 1).source == "open_mpi");
  all.erase("OMPI_COMM_WORLD_RANK");
  all["PMIX_RANK"] = "1";
  all["PMI_SIZE"] = "2";
  all["CONTEXTUNE_ADDRESS"] = "unix:here";
  CHECK(rendezvous_of(all, 1).source == "pmi");
  CHECK(rendezvous_of(all, 1).address == "unix:here");
  all.erase("PMIX_RANK");
  CHECK(rendezvous_of(all, 1).source == "slurm");
}

TEST_CASE("Under torchrun, ranks meet at the master's host, at no port of its store",
          "[rendezvous]") {
  const Rendezvous found = rendezvous_of(torchrun, 1);
  REQUIRE(found.error.empty());
  CHECK(found.rank == 3);
  CHECK(found.num_ranks == 8);
  CHECK(found.local_rank == 1);
  CHECK(found.address.starts_with("tcp:node7:2"));
  CHECK_FALSE(mentions(found.address, "29500"));
  CHECK(found.address ==
        rendezvous_of(with(torchrun, {{"RANK", "4"}, {"MASTER_PORT", "1"}}), 9).address);
}

TEST_CASE("A host that is an IPv6 address is put in brackets", "[rendezvous]") {
  CHECK(rendezvous_of(with(torchrun, {{"MASTER_ADDR", "fe80::1"}}), 1)
            .address.starts_with("tcp:[fe80::1]:2"));
}

TEST_CASE("On one host ranks meet at a Unix socket of the job's", "[rendezvous]") {
  const Environment one_host = with(torchrun, {{"LOCAL_WORLD_SIZE", "8"}});
  const Rendezvous found = rendezvous_of(one_host, 100);
  CHECK(found.address.starts_with("unix:contextune-"));
  CHECK(found.address == rendezvous_of(with(one_host, {{"RANK", "0"}}), 100).address);
  SECTION("another launcher has another one, even if its job has the same name") {
    CHECK(found.address != rendezvous_of(one_host, 101).address);
  }
  SECTION("a job that is started again has another one") {
    CHECK(found.address !=
          rendezvous_of(with(one_host, {{"TORCHELASTIC_RESTART_COUNT", "1"}}), 100).address);
  }
}

TEST_CASE("Under Open MPI on one host nothing has to be said", "[rendezvous]") {
  const Rendezvous found = rendezvous_of(open_mpi, 1);
  CHECK(found.error.empty());
  CHECK(found.rank == 1);
  CHECK(found.address.starts_with("unix:"));
}

TEST_CASE("Past one host Open MPI names no host, which is an error that says what to do",
          "[rendezvous]") {
  const Environment two_hosts = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
  CHECK(mentions(rendezvous_of(two_hosts, 1).error, "CONTEXTUNE_ADDRESS"));
  CHECK(rendezvous_of(with(two_hosts, {{"CONTEXTUNE_ADDRESS", "a:1"}}), 1).address == "tcp:a:1");
}

TEST_CASE("Under Slurm ranks meet at the first host of the step", "[rendezvous]") {
  CHECK(rendezvous_of(slurm, 1).address.starts_with("tcp:gpu07:2"));
  CHECK(rendezvous_of(with(slurm, {{"SLURM_STEP_NODELIST", "a3,b[1-2]"}}), 1)
            .address.starts_with("tcp:a3:2"));
  CHECK(
      rendezvous_of(with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}), 1).address.starts_with("unix:"));
}

TEST_CASE("A launcher that says half of it is an error", "[rendezvous]") {
  CHECK(mentions(rendezvous_of({{"RANK", "1"}}, 1).error, "WORLD_SIZE"));
  CHECK(mentions(rendezvous_of({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, 1).error, "RANK=x"));
  CHECK(mentions(rendezvous_of({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, 1).error, "RANK=-1"));
  CHECK(mentions(rendezvous_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, 1).error, "rank 2 of 2"));
  CHECK(mentions(rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, 1).error, "rank 0 of 0"));
  CHECK(mentions(rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "99999999999"}}, 1).error,
                 "WORLD_SIZE=99999999999"));
}

TEST_CASE("One rank of one needs no address", "[rendezvous]") {
  const Rendezvous found = rendezvous_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 1);
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
    const Rendezvous found = rendezvous_of(environment, 1);
    CAPTURE(found.source);
    REQUIRE(found.error.empty());
    CHECK(found.rank == static_cast<std::uint32_t>(logged));
  }
}

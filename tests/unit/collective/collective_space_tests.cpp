// What is tried on a collective without being declared.
#include "catch.hpp"
#include "collective/collective_space.hpp"

using contextune::Config;
using contextune::Exactness;
using namespace contextune::collective;

namespace {

CollectiveSpace all_tuned() {
  CollectiveSpace space;
  for (FunctionSpace& one : space.functions) one.is_tuned = true;
  return space;
}

Collective all_gather_of(std::uint64_t bytes) {
  Collective one;
  one.function = Function::AllGather;
  one.bytes = bytes;
  one.communicator = {4, 1};
  return one;
}

constexpr CellSet everything(~0U);
constexpr Cell nccls_own{Algorithm::Ring, Protocol::Simple};

}  // namespace

TEST_CASE("Ranks with other legal cells have the same configs, and others that they cannot use") {
  CellSet rings;
  for (const Cell& cell : all_cells())
    if (cell.algorithm == Algorithm::Ring) rings.add(cell);
  const SiteConfigs one = configs_of(all_gather_of(4 << 20U), all_tuned(), everything, nccls_own);
  const SiteConfigs other = configs_of(all_gather_of(4 << 20U), all_tuned(), rings, std::nullopt);
  CHECK(one.configs == other.configs);
  CHECK(one.unusable != other.unusable);
  CHECK(one.why_none.empty());
  REQUIRE(one.configs.size() > 4);
  CHECK(one.configs.front() == Config());
  for (const std::uint32_t config : other.unusable)
    CHECK(decision_of(other.configs[config]).cell.algorithm != Algorithm::Ring);
}

TEST_CASE("A config that is the default by its name is not tried") {
  const SiteConfigs site = configs_of(all_gather_of(4 << 20U), all_tuned(), everything, nccls_own);
  const auto at =
      std::find(site.configs.begin(), site.configs.end(), config_of({true, nccls_own, 0}));
  REQUIRE(at != site.configs.end());
  const auto number = static_cast<std::uint32_t>(at - site.configs.begin());
  CHECK(std::find(site.unusable.begin(), site.unusable.end(), number) != site.unusable.end());
}

TEST_CASE("The first config is the default at every size") {
  for (std::uint64_t bytes = 1; bytes <= std::uint64_t{1} << 34U; bytes *= 2) {
    INFO(bytes << " bytes");
    CHECK(configs_of(all_gather_of(bytes), all_tuned(), everything, nccls_own).configs.front() ==
          Config());
  }
}

TEST_CASE("Large messages are not sent through few channels, nor with a flag for each word") {
  const SiteConfigs large =
      configs_of(all_gather_of(256 << 20U), all_tuned(), everything, nccls_own);
  for (const Config& config : large.configs) {
    const Decision decision = decision_of(config);
    if (decision.is_default()) continue;
    CHECK(decision.cell.protocol != Protocol::LL);
    CHECK((decision.channels == 0 || decision.channels >= 16));
  }
  CollectiveSpace declared = all_tuned();
  const Config slow{{"protocol", std::string("LL")}, {"channels", std::int64_t{1}}};
  declared.functions[static_cast<std::size_t>(Function::AllGather)].declared = {slow};
  const SiteConfigs as_declared =
      configs_of(all_gather_of(256 << 20U), declared, everything, nccls_own);
  CHECK(std::any_of(as_declared.configs.begin(), as_declared.configs.end(),
                    [](const Config& config) { return decision_of(config).channels == 1; }));
}

TEST_CASE("What nobody asked for, and what would round in another way, has its default only") {
  CHECK(configs_of(all_gather_of(4096), CollectiveSpace(), everything, nccls_own).configs.size() ==
        1);
  Collective sum = all_gather_of(4096);
  sum.function = Function::AllReduce;
  sum.datatype = Datatype::F32;
  sum.op = Operator::Sum;
  const SiteConfigs exact = configs_of(sum, all_tuned(), everything, nccls_own);
  CHECK(exact.configs.size() == 1);
  CHECK(exact.needs_rounding);
  CollectiveSpace rounding = all_tuned();
  rounding.rounding = {Exactness::SameAlgorithm, true};
  const SiteConfigs allowed = configs_of(sum, rounding, everything, nccls_own);
  CHECK(allowed.configs.size() > 4);
  CHECK(allowed.why_none.empty());
}

TEST_CASE("What has no connections yet is told from what runs anyway") {
  const SiteConfigs site = configs_of(all_gather_of(4 << 20U), all_tuned(), everything, nccls_own);
  CellSet connected;
  connected.add({Algorithm::Ring, Protocol::LL});  // whatever the protocol
  const auto to_connect = configs_to_connect(site, connected);
  CHECK_FALSE(to_connect.empty());
  for (const std::uint32_t config : to_connect)
    CHECK(decision_of(site.configs[config]).cell.algorithm != Algorithm::Ring);
  for (const std::uint32_t config : site.unusable)
    CHECK(std::find(to_connect.begin(), to_connect.end(), config) == to_connect.end());
  CHECK(configs_to_connect(site, CellSet(~0U)).empty());
}

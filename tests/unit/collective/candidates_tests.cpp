// Configs of a collective site.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/candidates.hpp"

using namespace contextune::collective;
using contextune::Config;

namespace {

/// A cost table with the given costs in some cells, everything else being illegal.
CostTable table_of(const std::vector<std::pair<Cell, float>>& costs) {
  std::vector<float> table(num_cells, CostTable::illegal);
  for (const auto& [cell, cost] : costs) table[cell.index()] = cost;
  return {table.data(), num_algorithms, num_protocols};
}

CandidateSources sources_of(const CostTable& costs) {
  CandidateSources sources;
  sources.function = Function::AllReduce;
  sources.bytes = 64U << 20U;
  sources.costs = costs;
  sources.legal = costs.legal();
  sources.default_cell = costs.cheapest();
  sources.permission.cells = CellSet(~0U);
  sources.limits.channels = 4;
  sources.limits.nvls_channels = 2;
  return sources;
}

std::vector<std::string> texts_of(const std::vector<Config>& configs) {
  std::vector<std::string> texts;
  for (const Config& config : configs) texts.push_back(config.to_string());
  return texts;
}

bool has_algorithm(const std::vector<Config>& configs, const char* name) {
  return std::any_of(configs.begin() + 1, configs.end(),
                     [&](const Config& config) { return config.get_string("algorithm") == name; });
}

}  // namespace

TEST_CASE("Candidates are the legal cells with a ladder of channels, the default first",
          "[candidates]") {
  const auto configs = candidates_of(sources_of(table_of({{ring_simple, 10}, {nvls_simple, 20}})));
  const std::vector<std::string> expected = {
      "default",
      "algorithm=Ring protocol=Simple channels=4",
      "algorithm=NVLS protocol=Simple channels=0",
      "algorithm=Ring protocol=Simple channels=2",
      "algorithm=NVLS protocol=Simple channels=2",
      "algorithm=Ring protocol=Simple channels=1",
      "algorithm=NVLS protocol=Simple channels=1",
  };
  auto sorted = texts_of(configs);
  auto sorted_expected = expected;
  std::sort(sorted.begin(), sorted.end());
  std::sort(sorted_expected.begin(), sorted_expected.end());
  CHECK(sorted == sorted_expected);
  CHECK(configs.front().empty());
}

TEST_CASE("The most promising candidates come first", "[candidates]") {
  const auto texts =
      texts_of(candidates_of(sources_of(table_of({{ring_simple, 10}, {tree_simple, 15}}))));
  const std::vector<std::string> expected = {
      "default",
      "algorithm=Ring protocol=Simple channels=4",
      "algorithm=Tree protocol=Simple channels=0",
      "algorithm=Tree protocol=Simple channels=4",
      "algorithm=Ring protocol=Simple channels=2",
      "algorithm=Tree protocol=Simple channels=2",
      "algorithm=Ring protocol=Simple channels=1",
      "algorithm=Tree protocol=Simple channels=1",
  };
  CHECK(texts == expected);
}

TEST_CASE("A cell that is not legal is no candidate", "[candidates]") {
  CandidateSources sources = sources_of(table_of({{ring_simple, 10}, {nvls_simple, 5}}));
  sources.legal = table_of({{ring_simple, 1}}).legal();
  CHECK_FALSE(has_algorithm(candidates_of(sources), "NVLS"));
  CHECK(has_algorithm(candidates_of(sources), "Ring"));
}

TEST_CASE("The default has no second name", "[candidates]") {
  for (const Config& config :
       candidates_of(sources_of(table_of({{ring_simple, 10}, {tree_simple, 15}})))) {
    CHECK(config.to_string() != "algorithm=Ring protocol=Simple channels=0");
  }
}

TEST_CASE("A small message leaves few candidates", "[candidates]") {
  CandidateSources sources = sources_of(table_of({{ring_simple, 10}, {ring_ll, 8}}));
  sources.limits.channels = 32;
  sources.bytes = 8192;  // one channel's worth for Simple, four channels' for LL
  const std::vector<std::string> expected = {
      "default",
      "algorithm=Ring protocol=LL channels=4",
      "algorithm=Ring protocol=Simple channels=0",
      "algorithm=Ring protocol=LL channels=2",
      "algorithm=Ring protocol=LL channels=1",
  };
  CHECK(texts_of(candidates_of(sources)) == expected);
}

TEST_CASE("Candidates have no channels where NCCL would believe any number", "[candidates]") {
  CandidateSources sources =
      sources_of(table_of({{ring_simple, 10},
                           {nvls_simple, 11},
                           {{Algorithm::CollnetChain, Protocol::Simple}, 12},
                           {{Algorithm::CollnetDirect, Protocol::Simple}, 13}}));
  const auto channels_of = [&](const char* algorithm) {
    std::set<std::int64_t> channels;
    for (const Config& config : candidates_of(sources)) {
      if (!config.empty() && config.get_string("algorithm") == algorithm) {
        channels.insert(config.get_int("channels"));
      }
    }
    return channels;
  };
  using Channels = std::set<std::int64_t>;
  CHECK(channels_of("CollnetChain") == Channels{0});
  CHECK(channels_of("CollnetDirect") == Channels{0});
  CHECK(channels_of("NVLS") == Channels{0, 1, 2});
  sources.nodes = 2;
  CHECK(channels_of("NVLS") == Channels{0});
  CHECK(channels_of("Ring") == Channels{1, 2, 4});
}

TEST_CASE("What may change the result is no candidate", "[candidates]") {
  CandidateSources sources =
      sources_of(table_of({{ring_simple, 10}, {tree_simple, 15}, {nvls_simple, 20}}));
  SECTION("nothing may run") {
    sources.permission.cells = CellSet();
    CHECK(candidates_of(sources).size() == 1);
  }
  SECTION("one cell may run") {
    sources.permission.cells = CellSet();
    sources.permission.cells.add(tree_simple);
    CHECK(has_algorithm(candidates_of(sources), "Tree"));
    CHECK_FALSE(has_algorithm(candidates_of(sources), "Ring"));
    CHECK_FALSE(has_algorithm(candidates_of(sources), "NVLS"));
  }
  SECTION("a cell that is not legal may run") {
    sources.permission.cells = CellSet();
    sources.permission.cells.add(ring_ll);
    CHECK(candidates_of(sources).size() == 1);
  }
}

TEST_CASE("Declared configs narrow the candidates by what they name", "[candidates]") {
  CandidateSources sources =
      sources_of(table_of({{ring_simple, 10}, {ring_ll, 12}, {tree_simple, 15}}));
  sources.limits.channels = 32;
  std::vector<Config> declared;
  SECTION("an algorithm: each of its protocols with the ladder") {
    declared = {Config{{"algorithm", "Tree"}}};
    sources.declared = declared;
    const auto configs = candidates_of(sources);
    CHECK(configs.size() == 1 + 10);
    CHECK_FALSE(has_algorithm(configs, "Ring"));
  }
  SECTION("a protocol with channels: those and no others") {
    declared = {Config{{"protocol", "Simple"}, {"channels", std::int64_t{0}}},
                Config{{"protocol", "Simple"}, {"channels", std::int64_t{24}}}};
    sources.declared = declared;
    const std::vector<std::string> expected = {
        "default",
        "algorithm=Ring protocol=Simple channels=24",
        "algorithm=Tree protocol=Simple channels=0",
        "algorithm=Tree protocol=Simple channels=24",
    };
    CHECK(texts_of(candidates_of(sources)) == expected);
  }
  SECTION("more channels than are of use: as many as are") {
    declared = {
        Config{{"algorithm", "Ring"}, {"protocol", "Simple"}, {"channels", std::int64_t{40}}},
        Config{{"algorithm", "Ring"}, {"protocol", "Simple"}, {"channels", std::int64_t{64}}}};
    sources.declared = declared;
    const std::vector<std::string> expected = {"default",
                                               "algorithm=Ring protocol=Simple channels=32"};
    CHECK(texts_of(candidates_of(sources)) == expected);
  }
  SECTION("what is not legal stays so") {
    declared = {Config{{"algorithm", "PAT"}}};
    sources.declared = declared;
    CHECK(candidates_of(sources).size() == 1);
  }
}

TEST_CASE("Every candidate is one decision, and no two are the same", "[candidates]") {
  std::vector<float> table(num_cells, 1.0F);
  for (const std::uint64_t bytes : {1ULL, 4096ULL, 1ULL << 16U, 1ULL << 30U}) {
    for (const int nodes : {1, 2}) {
      CandidateSources sources = sources_of(CostTable(table.data(), num_algorithms, num_protocols));
      sources.bytes = bytes;
      sources.nodes = nodes;
      std::set<std::string> seen;
      for (const Config& config : candidates_of(sources)) {
        CHECK(config_of(decision_of(config)) == config);
        CHECK(seen.insert(config.to_string()).second);
      }
    }
  }
}

// Winners in the format of NCCL's example tuner plugin.
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/tuner_csv.hpp"

using namespace contextune::collective;

namespace {

std::vector<std::string> lines_of(const std::vector<TunerRow>& rows) {
  std::istringstream text(to_tuner_csv(rows));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TunerRow row_of(Function function, Cell cell, int channels) {
  TunerRow row;
  row.function = function;
  row.sizes = {65537, 131072};
  row.cell = cell;
  row.channels = channels;
  row.nodes = 1;
  row.ranks = 8;
  return row;
}

}  // namespace

TEST_CASE("A row has the plugin's columns in their order", "[tuner_csv]") {
  TunerRow row = row_of(Function::AllReduce, ring_simple, 16);
  row.operations = 2;
  row.registered_buffers = false;
  const auto lines = lines_of({row});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
        "numPipeOps,regBuff");
  CHECK(lines[1] == "allreduce,65537,131072,ring,simple,16,1,8,2,0");
}

TEST_CASE("What a row does not say holds for any call", "[tuner_csv]") {
  TunerRow row;
  row.function = Function::Reduce;
  row.cell = {Algorithm::Tree, Protocol::LL};
  CHECK(lines_of({row})[1] == "reduce,0,18446744073709551615,tree,ll,0,-1,-1,-1,-1");
  row.registered_buffers = true;
  CHECK(lines_of({row})[1] == "reduce,0,18446744073709551615,tree,ll,0,-1,-1,-1,1");
}

TEST_CASE("Rows use the words that the plugin knows", "[tuner_csv]") {
  const auto start = [](Function function, Cell cell) {
    const std::string line = lines_of({row_of(function, cell, 0)})[1];
    return line.substr(0, line.find(',')) +
           line.substr(std::string(",65537,131072").size() + line.find(','));
  };
  using P = Protocol;
  CHECK(start(Function::Broadcast, {Algorithm::CollnetDirect, P::Simple}) ==
        "broadcast,collnet_direct,simple,0,1,8,-1,-1");
  CHECK(start(Function::AllGather, {Algorithm::CollnetChain, P::LL128}) ==
        "allgather,collnet_chain,ll128,0,1,8,-1,-1");
  CHECK(start(Function::ReduceScatter, {Algorithm::Nvls, P::Simple}) ==
        "reducescatter,nvls,simple,0,1,8,-1,-1");
  CHECK(start(Function::AllReduce, {Algorithm::NvlsTree, P::Simple}) ==
        "allreduce,nvls_tree,simple,0,1,8,-1,-1");
  CHECK(start(Function::AllGather, {Algorithm::Pat, P::Simple}) ==
        "allgather,pat,simple,0,1,8,-1,-1");
}

TEST_CASE("Channels are not written where they must not be set", "[tuner_csv]") {
  TunerRow row = row_of(Function::AllReduce, {Algorithm::Nvls, Protocol::Simple}, 16);
  CHECK(lines_of({row})[1] == "allreduce,65537,131072,nvls,simple,16,1,8,-1,-1");
  row.nodes = 2;
  CHECK(lines_of({row})[1] == "allreduce,65537,131072,nvls,simple,0,2,8,-1,-1");
  row.nodes.reset();  // any number of nodes
  CHECK(lines_of({row})[1] == "allreduce,65537,131072,nvls,simple,0,-1,8,-1,-1");
}

TEST_CASE("A row that the plugin would never reach is a comment", "[tuner_csv]") {
  const TunerRow first = row_of(Function::AllReduce, ring_simple, 16);
  TunerRow second = first;
  second.cell.protocol = Protocol::LL128;
  TunerRow other = second;
  other.sizes = {131073, 262144};
  const auto lines = lines_of({first, second, other});
  REQUIRE(lines.size() == 4);
  CHECK(lines[2] == "# allreduce,65537,131072,ring,ll128,16,1,8,-1,-1");
  CHECK(lines[3] == "allreduce,131073,262144,ring,ll128,16,1,8,-1,-1");
}

TEST_CASE("What the plugin is never asked about is left out", "[tuner_csv]") {
  CHECK(lines_of({row_of(Function::AllToAll, ring_simple, 8)}).size() == 1);
}

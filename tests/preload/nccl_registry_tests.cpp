// preload/registry/nccl.def against the nccl.h of this machine.
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "catch.hpp"

namespace {

struct Row {
  bool is_wrapped;
  int since;
  std::string kind;
  std::string why_not;
};

const std::multimap<std::string, Row> rows = {
#define CONTEXTUNE_NCCL(name, since, kind, why_not, ...) {#name, {true, since, #kind, why_not}},
#define CONTEXTUNE_NCCL_LISTED(name, since, kind, why_not, ...) \
  {#name, {false, since, #kind, why_not}},
#include "preload/registry/nccl.def"
};

std::string header_text() {
  std::ifstream file(CONTEXTUNE_NCCL_HEADER);
  std::stringstream text;
  text << file.rdbuf();
  return std::regex_replace(text.str(), std::regex(R"(/\*[^*]*\*+([^/*][^*]*\*+)*/|//[^\n]*)"),
                            " ");
}

/// What nccl.h declares under a name without p.
std::set<std::string> declared() {
  std::set<std::string> names;
  const std::string text = header_text();
  const std::regex declaration(R"(\bnccl[A-Z]\w*(?=\s*\([^;{}]*\)\s*;))");
  for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
    names.insert(it->str());
  }
  return names;
}

}  // namespace

TEST_CASE("The registry lists every function that this machine's nccl.h declares", "[nccl]") {
  const std::set<std::string> names = declared();
  INFO(CONTEXTUNE_NCCL_HEADER);
  CHECK(names.size() > 30);
  for (const std::string& name : names) {
    INFO(name);
    CHECK(rows.count(name) == 1);
  }
}

TEST_CASE("What nccl.h lacks of the registry is newer than it, or declared for kernels", "[nccl]") {
  const std::string text = header_text();
  std::smatch major, minor, patch;
  REQUIRE(std::regex_search(text, major, std::regex(R"(NCCL_MAJOR (\d+))")));
  REQUIRE(std::regex_search(text, minor, std::regex(R"(NCCL_MINOR (\d+))")));
  REQUIRE(std::regex_search(text, patch, std::regex(R"(NCCL_PATCH (\d+))")));
  const int version = std::stoi(major[1]) * 10000 + std::stoi(minor[1]) * 100 + std::stoi(patch[1]);
  const std::set<std::string> names = declared();
  for (const auto& [name, row] : rows) {
    INFO(name);
    CHECK((names.contains(name) || row.since > version || !row.is_wrapped));
  }
}

TEST_CASE("Each row has a kind, and a reason where it is not tuned", "[nccl]") {
  const std::set<std::string> kinds = {"collective", "point_to_point", "group", "communicator",
                                       "other"};
  const std::set<std::string> tuned = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter",
                                       "ncclBroadcast", "ncclBcast",     "ncclReduce"};
  for (const auto& [name, row] : rows) {
    INFO(name);
    CHECK(rows.count(name) == 1);
    CHECK(kinds.contains(row.kind));
    CHECK(row.why_not.empty() == tuned.contains(name));
    CHECK(row.why_not.size() < 60);
    CHECK((row.why_not.empty() || row.why_not.back() != '.'));
  }
}

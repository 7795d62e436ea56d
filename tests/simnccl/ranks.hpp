#pragma once

#include <string>
#include <utility>
#include <vector>

/// How a process that was one rank ended.
struct RankEnd {
  int status = -1;  // of exit; -1: it was killed, as it did not end by itself
  std::string output;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Runs a scenario of rank_program.cpp in `count` processes, with a unique id of this process's.
/// Kills those that are still there after 20 s.
[[nodiscard]] std::vector<RankEnd> run_ranks(const std::string& scenario, int count,
                                             const Variables& variables = {});

/// The first words of all lines of an output, each with a blank behind it.
[[nodiscard]] std::string first_words(const std::string& output);
/// Lines of an output that begin with a word.
[[nodiscard]] std::vector<std::string> lines_with(const std::string& output,
                                                  const std::string& beginning);

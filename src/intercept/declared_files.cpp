#include "intercept/declared_files.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>

#include "core/stable_hash.hpp"

namespace contextune::intercept {
namespace {

/// Empty: it cannot be read, so no config that names it runs.
std::string word_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  StableHash hash;
  std::array<char, 65536> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0)
    hash.add(std::string_view(block.data(), static_cast<std::size_t>(file.gcount())));
  if (!file.eof()) return {};
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash.value()));
  return text.data();
}

}  // namespace

std::string declaration_of(std::string rule, std::span<const LaunchChange> changes) {
  std::set<std::string> paths;
  for (const LaunchChange& change : changes)
    for (const std::string* path : {&change.module, &change.source})
      if (!path->empty()) paths.insert(*path);
  for (const std::string& path : paths) {
    const std::string word = word_of_file(path);
    if (!word.empty()) rule += (rule.empty() ? "" : " ") + word;
  }
  return rule;
}

}  // namespace contextune::intercept

#include "store/identity.hpp"

#include <algorithm>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"

namespace contextune::store {
namespace {

constexpr std::size_t hash_digits = 16;
constexpr std::size_t most_folder_characters = 64;
constexpr std::string_view extension = ".json";

void add(StableHash& hash, const Facts& facts) {
  hash.add(static_cast<std::uint64_t>(facts.size()));
  for (const auto& [name, value] : facts) {
    hash.add(std::string_view(name));
    hash.add(std::string_view(value));
  }
}

bool is_safe(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

// A name may hold anything, and be longer than a file system allows.
std::string folder_name(const std::string& name) {
  std::string folder = name.substr(0, most_folder_characters);
  for (char& c : folder)
    if (!is_safe(c)) c = '_';
  // No hidden folder, no "..", and none that a command takes for an option.
  if (folder.empty() || folder.front() == '.' || folder.front() == '-') folder.insert(0, "_");
  return folder;
}

}  // namespace

Facts normalised(const Facts& facts) {
  Facts sorted = facts;
  std::ranges::stable_sort(sorted, {},
                           [](const auto& fact) { return std::string_view(fact.first); });
  const auto same_name = [](const auto& a, const auto& b) { return a.first == b.first; };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same_name), sorted.end());
  return sorted;
}

std::string software_id(const Facts& software) {
  StableHash hash;
  add(hash, normalised(software));
  return hexadecimal(hash.value());
}

EntryPlace place_of(StoredKind kind, const std::string& name, const Facts& hardware) {
  StableHash hash;
  hash.add(to_string(kind));
  hash.add(std::string_view(name));
  add(hash, normalised(hardware));
  return {folder_name(name), hexadecimal(hash.value()) + std::string(extension)};
}

bool is_entry_file(std::string_view name) {
  if (name.size() != hash_digits + extension.size() || !name.ends_with(extension)) return false;
  return std::ranges::all_of(name.substr(0, hash_digits), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

}  // namespace contextune::store

#include "intercept/site/declared_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"
#include "gpu/driver/regular_file.hpp"

namespace contextune::intercept {
namespace {

namespace fs = std::filesystem;

// Read where the program launches for the first time.
constexpr off_t most_bytes_read = gpu::most_source_bytes;
// The most files of a source and all that it includes: those beyond are a library's, which nobody
// edits.
constexpr std::size_t most_files_of_a_source = 256;

constexpr std::string_view blanks = " \t";

/// Its bytes, or of a large one how large it is and when it was written; `text` gets the bytes.
/// False: it is no file that can be read, or one that is read only once, as a pipe is.
bool add_file(const std::string& path, StableHash& hash, std::string& text) {
  const int file = gpu::open_regular_file(path);
  if (file < 0) return false;
  struct stat status {};
  bool is_read = fstat(file, &status) == 0;
  if (is_read && status.st_size > most_bytes_read) {
    hash.add(static_cast<std::uint64_t>(status.st_size));
    hash.add(static_cast<std::uint64_t>(status.st_mtim.tv_sec));
    hash.add(static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  } else if (is_read) {
    std::array<char, 65536> block{};
    ssize_t size = 0;
    // Not beyond it either where the file grows meanwhile.
    while (text.size() <= most_bytes_read &&
           (size = ::read(file, block.data(), block.size())) > 0) {
      const std::string_view piece(block.data(), static_cast<std::size_t>(size));
      hash.add(piece);
      text += piece;
    }
    is_read = size == 0;
  }
  close(file);
  return is_read;
}

/// Takes the word off the text behind blanks. False: the text begins with something else.
bool take(std::string_view& text, std::string_view word) {
  const std::string_view rest = text.substr(std::min(text.find_first_not_of(blanks), text.size()));
  if (!rest.starts_with(word)) return false;
  text = rest.substr(word.size());
  return true;
}

/// The files that the directives of a text include, whatever conditions they stand under: `"a.h"`,
/// `<a.h>`.
std::vector<std::string> directives_of(std::string_view text) {
  std::vector<std::string> included;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!take(line, "#") || !take(line, "include")) continue;
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    if (line.empty() || (line.front() != '"' && line.front() != '<')) continue;
    const std::size_t end = line.find(line.front() == '"' ? '"' : '>', 1);
    if (end != line.npos) included.emplace_back(line.substr(0, end + 1));
  }
  return included;
}

std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

/// Folders in which NVRTC looks for headers, but for those of CUDA.
std::vector<std::string> folders_of(const LaunchChange& change) {
  std::vector<std::string> folders{folder_of(change.source)};
  const auto& options = change.build_options;
  for (std::size_t i = 0; i < options.size(); ++i) {
    std::string_view folder = options[i];
    for (const std::string_view flag : {"--include-path", "-I"}) {
      if (!folder.starts_with(flag)) continue;
      folder.remove_prefix(flag.size());
      if (folder.empty() && i + 1 < options.size()) folder = options[++i];
      if (folder.starts_with('=')) folder.remove_prefix(1);
      folders.emplace_back(folder);
      break;
    }
  }
  return folders;
}

}  // namespace

const DeclaredFiles::File& DeclaredFiles::read(const std::string& path) {
  const auto known = known_.find(path);
  if (known != known_.end()) return known->second;
  File file;
  StableHash hash;
  std::string text;
  if (add_file(path, hash, text)) {
    file.word = hexadecimal(hash.value());
    file.included = directives_of(text);
  }
  return known_.emplace(path, std::move(file)).first->second;
}

void DeclaredFiles::add_included(const std::string& source, const std::vector<std::string>& folders,
                                 std::set<std::string>& paths) {
  std::vector<std::string> files{source};
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const std::string& directive : read(files[i]).included) {
      if (files.size() >= most_files_of_a_source) break;
      const std::string name = directive.substr(1, directive.size() - 2);
      std::vector<std::string> places = folders;
      if (directive.front() == '"') places.insert(places.begin(), folder_of(files[i]));
      for (const std::string& place : places) {
        const std::string path = (fs::path(place) / name).lexically_normal().string();
        if (read(path).word.empty()) continue;
        if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
        break;
      }
    }
  }
  paths.insert(files.begin(), files.end());
}

std::string DeclaredFiles::declaration_of(std::string rule, std::span<const LaunchChange> changes) {
  std::set<std::string> paths;
  std::set<std::pair<std::string, std::vector<std::string>>> seen;
  for (const LaunchChange& change : changes) {
    if (!change.module.empty()) paths.insert(change.module);
    if (change.source.empty()) continue;
    // The same of many configs, which differ in what they define.
    const auto [look, is_new] = seen.emplace(change.source, folders_of(change));
    if (is_new) add_included(look->first, look->second, paths);
  }
  for (const std::string& path : paths) {
    const std::string& word = read(path).word;
    if (!word.empty()) rule += (rule.empty() ? "" : " ") + word;
  }
  return rule;
}

}  // namespace contextune::intercept

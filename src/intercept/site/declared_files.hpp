#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/value/kernel_rule.hpp"

namespace contextune::intercept {

/// The contents of the files that configs name: modules, sources, and what sources include. Each is
/// read once, as it is built once. Not thread-safe.
class DeclaredFiles {
 public:
  /// The meaning of a site's configs, as StoredSite has it: what the rule says of itself, and a
  /// word for each file, of its bytes.
  [[nodiscard]] std::string declaration_of(std::string rule, std::span<const LaunchChange> changes);

 private:
  /// The facts that were read from a file.
  struct File {
    std::string word;                   ///< a hash; empty: it cannot be read
    std::vector<std::string> included;  ///< as the directives say it, `"a.h"` or `<a.h>`
  };

  [[nodiscard]] const File& read(const std::string& path);
  /// The source and what it includes, also by others, as far as it is found in these folders.
  void add_included(const std::string& source, const std::vector<std::string>& folders,
                    std::set<std::string>& paths);

  std::map<std::string, File> known_;
};

}  // namespace contextune::intercept

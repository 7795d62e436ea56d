#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/descriptor.hpp"

namespace contextune::store {

/// Whose files are read.
enum class Trust {
  Own,     ///< those of this user and of root that not everybody may write
  Anyone,  ///< all: somebody asked for just this folder
};

/// @throws Error that names `path` if its owner or mode are not to be trusted
void check_trust(const std::string& path, const struct stat& status, Trust trust);

/// @throws Error "<path>: <what>: <message of code><remedy>"
[[noreturn]] void refuse_with_errno(const std::string& path, std::string_view what, int code,
                                    std::string_view remedy = "");

/// An open folder. Its contents are reached through it, wherever its path leads by then.
class Folder {
 public:
  /// Absent: there is none. A link is followed if it is this user's or root's.
  /// @throws Error that says why the folder cannot be used
  [[nodiscard]] static std::optional<Folder> open(const std::string& path, Trust trust);
  /// Creates it, and what is missing above it, for this user alone. @throws Error as open
  [[nodiscard]] static Folder create(const std::string& path);

  /// A folder in it, which is no link. @throws Error as open
  [[nodiscard]] std::optional<Folder> open_inner(const std::string& name, Trust trust) const;
  [[nodiscard]] Folder create_inner(const std::string& name) const;

  [[nodiscard]] int number() const { return descriptor_.number(); }
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + '/' + name; }

  /// Opens a file in it, never through a link. Absent: `errno` says why.
  [[nodiscard]] Descriptor open_file(const std::string& name, int flags, mode_t mode = 0) const;

  /// Its names but "." and "..", sorted. @throws Error
  [[nodiscard]] std::vector<std::string> names() const;

  /// Renames a file without taking the place of one that is there. @return 0, or what `errno` was
  [[nodiscard]] int rename_to_new(const std::string& from, const std::string& to) const;

  /// Until then a file that was created or renamed in it may be gone after a crash. @throws Error
  void sync() const;

 private:
  Folder(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Descriptor descriptor_;
  std::string path_;
};

}  // namespace contextune::store

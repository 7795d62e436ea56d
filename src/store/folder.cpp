#include "store/folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include <contextune/error.hpp>

#include "environment/root_folder.hpp"

namespace contextune::store {
namespace {

constexpr mode_t private_folder = 0700;  // as the XDG specification has it

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(path + ": " + what);
}

bool is_ours(uid_t user) {
  return user == ::geteuid() || user == 0;
}

void check_root(const std::string& path) {
  if (root_folder_has_changed()) {
    refuse(path, "is not looked for, since the program has another root folder by now (chroot)");
  }
}

void check_link(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode) && !is_ours(status.st_uid)) {
    refuse(path, "is a link that belongs to user " + std::to_string(status.st_uid) +
                     ", and is not followed; name the folder itself with --cache-dir");
  }
}

void check_folder(const std::string& path, int fd, Trust trust) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) refuse_with_errno(path, "cannot be examined", errno);
  check_trust(path, status, trust);
}

// Whether it was not there.
bool make_folder(int above, const std::string& name, const std::string& path) {
  if (::mkdirat(above, name.c_str(), private_folder) == 0) return true;
  if (errno == EEXIST) return false;
  refuse_with_errno(path, "cannot create the folder", errno,
                    "; --cache-dir (CONTEXTUNE_CACHE_DIR) names another place");
}

std::string parent_of(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  const std::size_t slash = end == path.npos ? path.npos : path.rfind('/', end);
  if (slash == path.npos) return ".";
  const std::size_t last = path.find_last_not_of('/', slash);
  return last == path.npos ? "/" : path.substr(0, last + 1);
}

// From the top down; what each one is in is synced, so that none is gone after a crash.
void make_folders(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return;
  const std::string above = parent_of(path);
  if (above != path) make_folders(above);
  if (!make_folder(AT_FDCWD, path, path)) return;
  const Descriptor parent(AT_FDCWD, above, O_RDONLY | O_DIRECTORY);
  if (parent) (void)::fsync(parent.number());
}

}  // namespace

void refuse_with_errno(const std::string& path, std::string_view what, int code,
                       std::string_view remedy) {
  refuse(path,
         std::string(what) + ": " + std::generic_category().message(code) + std::string(remedy));
}

void check_trust(const std::string& path, const struct stat& status, Trust trust) {
  if (trust == Trust::Anyone) return;
  if (!is_ours(status.st_uid)) {
    refuse(path, "belongs to user " + std::to_string(status.st_uid) +
                     ", and this process runs as user " + std::to_string(::geteuid()) +
                     "; name a folder of your own with --cache-dir, or take over its winners with: "
                     "contextune store merge");
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    refuse(path, "may be written by everybody; take that away with: chmod o-w '" + path + "'");
  }
}

std::optional<Folder> Folder::open(const std::string& path, Trust trust) {
  check_root(path);
  Descriptor descriptor(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!descriptor) {
    if (errno == ENOENT) return std::nullopt;
    refuse_with_errno(path, "cannot open the folder", errno);
  }
  if (trust == Trust::Own) check_link(path);
  check_folder(path, descriptor.number(), trust);
  return Folder(std::move(descriptor), path);
}

Folder Folder::create(const std::string& path) {
  check_root(path);
  make_folders(path);
  auto folder = open(path, Trust::Own);
  if (!folder) refuse(path, "was removed as soon as it was created");
  return *std::move(folder);
}

std::optional<Folder> Folder::open_inner(const std::string& name, Trust trust) const {
  Descriptor descriptor = open_file(name, O_RDONLY | O_DIRECTORY);
  if (!descriptor) {
    if (errno == ENOENT) return std::nullopt;
    refuse_with_errno(
        path(name), "cannot open the folder", errno,
        errno == ELOOP || errno == ENOTDIR ? "; links in the store are not followed" : "");
  }
  check_folder(path(name), descriptor.number(), trust);
  return Folder(std::move(descriptor), path(name));
}

Folder Folder::create_inner(const std::string& name) const {
  if (make_folder(number(), name, path(name))) sync();
  auto folder = open_inner(name, Trust::Own);
  if (!folder) refuse(path(name), "was removed as soon as it was created");
  return *std::move(folder);
}

Descriptor Folder::open_file(const std::string& name, int flags, mode_t mode) const {
  return {number(), name, flags | O_NOFOLLOW | O_NONBLOCK, mode};
}

std::vector<std::string> Folder::names() const {
  // A descriptor of its own: reading moves the position in the folder.
  const int fd = ::openat(number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), &::closedir);
  if (!stream) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    refuse_with_errno(path_, "cannot read the folder", error);
  }
  std::vector<std::string> names;
  while (const dirent* item = ::readdir(stream.get())) {
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

int Folder::rename_to_new(const std::string& from, const std::string& to) const {
  if (::renameat2(number(), from.c_str(), number(), to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Network file systems have no such call, and have links. Their answer to a link may be lost on
  // its way, and the next attempt finds the link of the first: the file has two names then.
  struct stat status {};
  const int error = ::linkat(number(), from.c_str(), number(), to.c_str(), 0) == 0 ? 0 : errno;
  const bool linked =
      ::fstatat(number(), from.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_nlink == 2;
  if (error != 0 && !linked) return error;
  return ::unlinkat(number(), from.c_str(), 0) == 0 ? 0 : errno;
}

void Folder::sync() const {
  if (::fsync(number()) == 0) return;
  // Where folders cannot be synced there is nothing more to do.
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return;
  refuse_with_errno(path_, "cannot sync the folder", errno);
}

}  // namespace contextune::store

// Folders and files that are not the user's, or that cannot be written.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstring>

#include "catch.hpp"
#include "environment/root_folder.hpp"
#include "store/trial_journal.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

constexpr uid_t stranger = 12345;

bool is_root() {
  if (::geteuid() == 0) return true;
  WARN("needs root, to give files away and to mount");
  return false;
}

// That nothing is read and nothing changed, and that it is said with these words.
void check_refused(const std::string& folder, const std::string& words) {
  const bool exists = std::filesystem::exists(file_of(folder));
  const std::string before = exists ? text_of(file_of(folder)) : "";
  TestStore test(folder, 0.2);
  CHECK(test.store.load(identity()).sites.empty());
  CHECK_FALSE(test.store.save(identity(), {site("other")}, std::nullopt));
  REQUIRE_FALSE(test.said.empty());
  CHECK(test.said.back().first == FallbackReason::StoreUnwritable);
  INFO(test.said.back().second);
  CHECK(contains(test.said.back().second, words));
  if (exists) CHECK(text_of(file_of(folder)) == before);
}

std::string stored(const ScratchFolder& scratch) {
  TestStore test(scratch.path("store"));
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  return scratch.path("store");
}

// A small file system of its own, gone with it.
class SmallDisk {
 public:
  SmallDisk(std::string path, const char* options) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, options) == 0;
    if (!mounted_) WARN("cannot mount a tmpfs here: " << std::strerror(errno));
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] bool make_read_only() const {
    return ::mount(nullptr, path_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("A folder of another user is not used") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  REQUIRE(::chown(folder.c_str(), stranger, stranger) == 0);
  check_refused(folder, folder + ": belongs to user 12345");
  REQUIRE(::chown(folder.c_str(), 0, 0) == 0);
  const std::string inner = scratch.path("store/decode");
  REQUIRE(::chown(inner.c_str(), stranger, stranger) == 0);
  check_refused(folder, inner + ": belongs to user 12345");
}

TEST_CASE("A file of another user is not used, nor replaced") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  REQUIRE(::chown(file_of(folder).c_str(), stranger, stranger) == 0);
  check_refused(folder, file_of(folder) + ": belongs to user 12345");
}

TEST_CASE("What root owns is trusted by a user") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  for (const std::string& path : {scratch.path(""), folder, scratch.path("store/decode")})
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
  CHECK(in_process([&] {
          if (::setresuid(stranger, stranger, stranger) != 0) return 1;
          TestStore test(folder);
          if (test.store.load(identity()).sites.size() != 1) return 2;
          if (test.store.save(identity(), {site()}, std::nullopt)) return 3;
          return contains(test.said.at(0).second, "Permission denied") ? 0 : 4;
        }) == 0);
}

TEST_CASE("Nothing is made in the jail of a program that has called chroot") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const std::string jail = scratch.path("jail");
  std::filesystem::create_directory(jail);
  CHECK(in_process([&] {
          TestStore test(scratch.path("store"));
          TrialJournal journal(scratch.path("store"), [](const std::string&) {});
          contextune::keep_root_folder();
          if (::chroot(jail.c_str()) != 0) return 1;
          if (test.store.save(identity(), {site()}, std::nullopt)) return 2;
          journal.prepare();
          return contains(test.said.at(0).second, "another root folder by now (chroot)") ? 0 : 3;
        }) == 0);
  CHECK(std::filesystem::is_empty(jail));
}

TEST_CASE("A folder or file that everybody may write is not used") {
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  for (const std::string& path : {folder, scratch.path("store/decode"), file_of(folder)}) {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    REQUIRE(::chmod(path.c_str(), status.st_mode | S_IWOTH) == 0);
    check_refused(folder, path + ": may be written by everybody");
    REQUIRE(::chmod(path.c_str(), status.st_mode & 0777U) == 0);
  }
}

TEST_CASE("A folder that is a link of the user's own is followed, and one of another user is not") {
  const ScratchFolder scratch;
  std::filesystem::create_directories(scratch.path("real"));
  const std::string link = scratch.path("link");
  REQUIRE(::symlink(scratch.path("real").c_str(), link.c_str()) == 0);
  TestStore test(link);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(std::filesystem::exists(file_of(scratch.path("real"))));
  CHECK(test.store.load(identity()).sites.size() == 1);
  if (!is_root()) return;
  REQUIRE(::lchown(link.c_str(), stranger, stranger) == 0);
  check_refused(link, link + ": is a link that belongs to user 12345");
}

TEST_CASE("A file that is a link is neither read nor written through nor replaced") {
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  const std::string elsewhere = scratch.path("elsewhere.json");
  std::filesystem::rename(file_of(folder), elsewhere);
  REQUIRE(::symlink(elsewhere.c_str(), file_of(folder).c_str()) == 0);
  const std::string before = text_of(elsewhere);
  check_refused(folder, "is a link, which is not followed");
  CHECK(std::filesystem::is_symlink(file_of(folder)));
  CHECK(text_of(elsewhere) == before);
}

TEST_CASE("A lock or a folder of a name that is a link is not followed") {
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  const std::string lock = scratch.path("store/decode/.") +
                           std::filesystem::path(file_of(folder)).filename().string() + ".lock";
  std::filesystem::remove(lock);
  REQUIRE(::symlink(scratch.path("victim").c_str(), lock.c_str()) == 0);
  TestStore test(folder);
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  CHECK_FALSE(std::filesystem::exists(scratch.path("victim")));
  std::filesystem::rename(scratch.path("store/decode"), scratch.path("moved"));
  REQUIRE(::symlink(scratch.path("moved").c_str(), scratch.path("store/decode").c_str()) == 0);
  check_refused(folder, "decode: cannot open the folder");
}

TEST_CASE("A pipe or a folder in a file's place holds nobody up") {
  const ScratchFolder scratch;
  const std::string folder = stored(scratch);
  std::filesystem::remove(file_of(folder));
  REQUIRE(::mkfifo(file_of(folder).c_str(), 0600) == 0);
  TestStore test(folder);
  CHECK(test.store.load(identity()).sites.empty());
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(contains(test.said.at(0).second, "is not a regular file"));
  std::filesystem::remove(file_of(folder));
  std::filesystem::create_directory(file_of(folder));
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(std::filesystem::is_directory(file_of(folder)));
}

TEST_CASE("A store on a read-only file system is read, and a save says why it cannot be") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const SmallDisk disk(scratch.path("disk"), "size=1m");
  if (!disk.mounted()) return;
  const std::string folder = scratch.path("disk/store");
  TestStore test(folder);
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  write_file(file_of(folder, identity("damaged")), "garbage");
  REQUIRE(disk.make_read_only());
  CHECK(test.store.load(identity()).sites.size() == 1);
  CHECK(test.said.empty());
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(contains(test.said[0].second, "Read-only file system"));
  // It cannot be set aside, and nothing is stored over it.
  CHECK(test.store.load(identity("damaged")).sites.empty());
  CHECK(contains(test.said.at(1).second, "left alone, as it cannot be set aside"));
  CHECK(text_of(file_of(folder, identity("damaged"))) == "garbage");
}

TEST_CASE("On a full disk a save says so, and what was stored stays") {
  if (!is_root()) return;
  const ScratchFolder scratch;
  const SmallDisk disk(scratch.path("disk"), "size=64k");
  if (!disk.mounted()) return;
  const std::string folder = scratch.path("disk/store");
  TestStore test(folder);
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  std::ofstream(scratch.path("disk/filler")) << std::string(1 << 20, 'x');
  CHECK_FALSE(test.store.save(identity(), {site("other")}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(contains(test.said[0].second, "No space left on device"));
  std::filesystem::remove(scratch.path("disk/filler"));
  CHECK(test.store.load(identity()).sites.size() == 1);
  CHECK(test.store.save(identity(), {site("other")}, std::nullopt));
  CHECK(files_below(folder).size() == 2);  // nothing of the failed attempt is left
}

TEST_CASE("A limit on file sizes ends the save, not the program") {
  const ScratchFolder scratch;
  CHECK(in_process([&] {
          std::signal(SIGXFSZ, SIG_DFL);
          const rlimit limit{1024, RLIM_INFINITY};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          TestStore test(scratch.path("store"));
          if (test.store.save(identity(), {site()}, std::nullopt)) return 2;
          return contains(test.said.at(0).second, "File too large") ? 0 : 3;
        }) == 0);
}

TEST_CASE("A folder that cannot be made says why, and one that goes away is made again") {
  const ScratchFolder scratch;
  write_file(scratch.path("file"), "");
  TestStore below_a_file(scratch.path("file/store"));
  CHECK_FALSE(below_a_file.store.save(identity(), {site()}, std::nullopt));
  CHECK(contains(below_a_file.said.at(0).second, "Not a directory"));
  const std::string folder = stored(scratch);
  TestStore test(folder);
  std::filesystem::remove_all(folder);
  CHECK(test.store.load(identity()).sites.empty());
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(test.said.empty());
}

TEST_CASE("Where no descriptor is left a save says so") {
  const ScratchFolder scratch;
  CHECK(in_process([&] {
          const rlimit limit{5, 5};
          if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
          TestStore test(scratch.path("store"));
          if (test.store.save(identity(), {site()}, std::nullopt)) return 2;
          return contains(test.said.at(0).second, "Too many open files") ? 0 : 3;
        }) == 0);
}

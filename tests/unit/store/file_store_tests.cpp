#include <fcntl.h>
#include <sys/stat.h>

#include "catch.hpp"
#include "core/submission/submission_stored.hpp"
#include "store/cache_folder.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

std::vector<std::string> visible_files(const std::string& folder) {
  std::vector<std::string> files = files_below(folder);
  std::erase_if(files, [](const std::string& name) { return contains(name, "/."); });
  return files;
}

}  // namespace

TEST_CASE("What was saved is loaded by another process's store, and nothing exists before") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("a/b/store");
  {
    TestStore first(folder);
    CHECK(first.store.load(identity()).sites.empty());
    CHECK_FALSE(std::filesystem::exists(scratch.path("a")));
    CHECK(first.store.save(identity(), {site(), site("gemm")}, confirm()));
    CHECK(first.said.empty());
  }
  TestStore second(folder);
  const std::vector<StoredSite> sites = second.store.load(identity()).sites;
  REQUIRE(sites.size() == 2);
  CHECK(sites[1].name == "saxpy");
  CHECK(sites[1].key == site().key);
  CHECK(sites[1].winner == block(256));
  CHECK(sites[1].tuned_at == "2026-11-18T11:06:40Z");
  CHECK(sites[1].same_software);
  CHECK(sites[1].trials.size() == 4);
  CHECK(second.said.empty());
}

TEST_CASE("A search for submissions is loaded as it was saved, until its winner crashes") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  SubmissionState state;
  state.choices = {true, {16}};
  state.screened = {{{true, 16}, {0.7, 1.0 / 3}}};
  state.verdict = {true, {true, 16}, 0.3, 0.25, 0.35, 8, "it is \"faster\""};
  StoredSite saved = stored_submission(state, "launches", site().key, "build 1");
  REQUIRE(test.store.save(identity("auto"), {saved}, std::nullopt));
  std::vector<StoredSite> loaded = test.store.load(identity("auto")).sites;
  REQUIRE(loaded.size() == 1);
  CHECK(submission_of(loaded[0]) == state);
  StoredSite note = saved;
  note.reason = WinnerReason::NoSamples;
  note.winner = config_of({});
  note.trials = {{saved.winner, TrialStatus::Crashed, 0, not_measured, not_measured, not_measured}};
  REQUIRE(test.store.save(identity("auto"), {note}, std::nullopt));
  loaded = test.store.load(identity("auto")).sites;
  REQUIRE(loaded.size() == 1);
  CHECK(loaded[0].progress == saved.progress);
  CHECK_FALSE(submission_of(loaded[0]));
  CHECK(test.said.empty());
}

TEST_CASE("How a region fared is loaded with its sites, but under other software") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  REQUIRE(test.store.save(identity(), {site()}, confirm()));
  const auto stored = test.store.load(identity()).confirm;
  REQUIRE(stored);
  CHECK(stored->gain == confirm().gain);
  CHECK(stored->bound == confirm().bound);
  CHECK(stored->pairs == confirm().pairs);
  StoreIdentity other = identity();
  other.environment.software = {{"driver", "another"}};
  CHECK_FALSE(test.store.load(other).confirm);
  CHECK_FALSE(test.store.load(identity("prefill")).confirm);
}

TEST_CASE(
    "A winner that its own trial refutes is given out as none, which is said with its place") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  REQUIRE(test.store.save(identity(), {site(), site("gemm", 2048)}, std::nullopt));
  const std::vector<StoredSite> sites = test.store.load(identity()).sites;
  REQUIRE(sites.size() == 2);
  CHECK(sites[0].reason == WinnerReason::NoSamples);
  CHECK(sites[1].reason == WinnerReason::Fastest);
  REQUIRE(test.said.size() == 1);
  CHECK(test.said[0].first == FallbackReason::RefutedWinner);
  CHECK(test.said[0].second.starts_with(
      file_of(scratch.path("store")) +
      ": /sites/0/winner: is 'block=2048 per_sm=4' of 'gemm n=1099511627776 type=f32', whose own "
      "trial says failed"));
}

TEST_CASE("A save leaves one file and its lock, and folders for the user alone") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  const std::string name =
      place_of(StoredKind::Region, "decode", identity().environment.hardware).file;
  CHECK(files_below(scratch.path("store")) ==
        std::vector<std::string>{"decode/." + name + ".lock", "decode/" + name});
  struct stat status {};
  REQUIRE(::stat(scratch.path("store/decode").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0700U);
}

TEST_CASE("Hardware, kind and name are the identity; other software is told of, not hidden") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  REQUIRE(test.store.save(identity(), {site()}, std::nullopt));
  StoreIdentity other = identity();
  other.environment.software[0].second = "12.4";
  REQUIRE(test.store.load(other).sites.size() == 1);
  CHECK_FALSE(test.store.load(other).sites[0].same_software);
  REQUIRE(test.store.save(other, {site("gemm")}, std::nullopt));
  const auto sites = test.store.load(other).sites;
  REQUIRE(sites.size() == 2);
  CHECK(sites[0].same_software);
  CHECK_FALSE(sites[1].same_software);
  other = identity();
  other.environment.hardware[1].second = "114";
  CHECK(test.store.load(other).sites.empty());
  other = identity();
  other.kind = StoredKind::Function;
  CHECK(test.store.load(other).sites.empty());
  CHECK(test.store.load(identity("prefill")).sites.empty());
}

TEST_CASE("A relative folder counts from where the process was when the store was made") {
  const ScratchFolder scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(scratch.path(""));
  TestStore test("store");
  std::filesystem::current_path(before);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(std::filesystem::exists(file_of(scratch.path("store"))));
}

TEST_CASE("Without a folder nothing is found, and a save says that there is none") {
  TestStore test("");
  CHECK(test.store.load(identity()).sites.empty());
  CHECK(test.said.empty());
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(test.said[0].first == FallbackReason::StoreUnwritable);
  CHECK(contains(test.said[0].second, "--cache-dir"));
}

TEST_CASE("Nothing to save is no write") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  CHECK(test.store.save(identity(), {}, std::nullopt));
  CHECK_FALSE(std::filesystem::exists(scratch.path("store")));
}

TEST_CASE("A damaged file is set aside under a name of its own, said once, and tuned anew") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  const std::string file = file_of(folder);
  for (int i = 1; i <= 3; ++i) {
    const std::string garbage = "garbage " + std::to_string(i);
    write_file(file, garbage);
    TestStore test(folder);
    CHECK(test.store.load(identity()).sites.empty());
    CHECK(test.store.load(identity()).sites.empty());
    REQUIRE(test.said.size() == 1);
    CHECK(test.said[0].first == FallbackReason::StoreUnreadable);
    CHECK(test.said[0].second.starts_with(file + ": line 1, column 1: "));
    const std::string aside = file + ".unreadable-" + std::to_string(i);
    CHECK(contains(test.said[0].second, "the file is kept as " + aside));
    CHECK(text_of(aside) == garbage);
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK(test.store.save(identity(), {site()}, std::nullopt));
    CHECK(test.store.load(identity()).sites.size() == 1);
  }
}

TEST_CASE("A save sets a damaged file aside as well") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  write_file(file_of(folder), "{\"schema\": 1}");
  TestStore test(folder);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(text_of(file_of(folder) + ".unreadable-1") == "{\"schema\": 1}");
  CHECK(test.store.load(identity()).sites.size() == 1);
}

TEST_CASE("A file that belongs to another identity is no winner of this one") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  TestStore test(folder);
  REQUIRE(test.store.save(identity("prefill"), {site()}, std::nullopt));
  std::filesystem::create_directories(scratch.path("store/decode"));
  std::filesystem::copy_file(file_of(folder, identity("prefill")), file_of(folder));
  CHECK(test.store.load(identity()).sites.empty());
  REQUIRE(test.said.size() == 1);
  CHECK(contains(test.said[0].second, "belong into prefill/"));
}

#ifndef __SANITIZE_ADDRESS__  // 16 MiB take half a minute then; the next one takes the same way
TEST_CASE("An entry that has become too large loses what is oldest, and goes on being stored") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  const auto large = [](const std::string& name) {
    StoredSite made = site(name);
    for (int i = 0; i < 40; ++i) {
      const Config config = {{"text", std::string(100'000, static_cast<char>('a' + i % 26))},
                             {"number", std::int64_t{i}}};
      made.trials.push_back({config, TrialStatus::Measured, 5, 5e-6, 5e-6, 5e-6});
    }
    return made;
  };
  std::vector<StoredSite> sites;
  for (const char* name : {"site0", "site1", "site2", "site3"}) sites.push_back(large(name));
  REQUIRE(test.store.save(identity(), sites, std::nullopt));
  CHECK(test.said.empty());
  ++test.now;
  REQUIRE(test.store.save(identity(), {large("site4")}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(test.said[0].first == FallbackReason::StoreFull);
  CHECK(contains(test.said[0].second, "2 sites tuned longest ago"));
  const std::vector<StoredSite> stored = test.store.load(identity()).sites;
  REQUIRE(stored.size() == 5);
  // Default, winner and failures stay.
  const StoredSite& thin = stored.front();
  REQUIRE(thin.name == "site0");
  REQUIRE(thin.trials.size() == 4);
  CHECK(thin.winner == block(256));
  CHECK(thin.trials[0].config == block(128));
  CHECK(thin.trials[2].status == TrialStatus::LaunchFailed);
  CHECK(stored.back().name == "site4");
  CHECK(stored.back().trials.size() == 44);
}
#endif

TEST_CASE("Where that is not enough, the oldest sites go") {
  Entry entry;
  for (int i = 0; i < 9; ++i) {
    add_tuning(entry, {{"driver", "13.0"}}, {site("site" + std::to_string(8 - i))}, std::nullopt,
               "2026-11-2" + std::to_string(i) + "T20:33:53Z");
  }
  const std::size_t whole = to_text(entry).size();
  CHECK(shrink(entry, whole).empty());
  const std::string said = shrink(entry, whole / 2);
  CHECK(contains(said, "sites altogether"));
  CHECK(to_text(entry).size() <= whole / 2);
  CHECK(entry.sites.size() >= 3);
  CHECK(entry.sites.front().site.name == "site0");  // the newest
  CHECK(entry.sites.back().site.name != "site8");
  (void)parse_entry(to_text(entry));
}

TEST_CASE("A file of a later contextune is left as it is") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  write_file(file_of(folder), "{\"schema\": 99}");
  TestStore test(folder);
  CHECK(test.store.load(identity()).sites.empty());
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.said.size() == 2);
  CHECK(test.said[0].first == FallbackReason::StoreUnreadable);
  CHECK(test.said[1].first == FallbackReason::StoreUnwritable);
  CHECK(contains(test.said[1].second, "/schema: is 99"));
  CHECK(contains(test.said[1].second, "left alone"));
  CHECK(text_of(file_of(folder)) == "{\"schema\": 99}");
  CHECK(visible_files(folder).size() == 1);
}

TEST_CASE("Figures that cannot be read back are not written") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"));
  StoredSite wrong = site();
  wrong.seconds = -1;
  CHECK_FALSE(test.store.save(identity(), {wrong}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(contains(test.said[0].second, "/sites/0/seconds: is a time"));
  CHECK(visible_files(scratch.path("store")).empty());
}

TEST_CASE("What is said may throw, and errno stays as it was") {
  const ScratchFolder scratch;
  write_file(scratch.path("store"), "a file");
  FileStore store(scratch.path("store"),
                  [](FallbackReason, const std::string&) { throw std::runtime_error("no"); });
  errno = EXDEV;
  CHECK_FALSE(store.save(identity(), {site()}, std::nullopt));
  CHECK(store.load(identity()).sites.empty());
  CHECK(errno == EXDEV);
}

TEST_CASE("Files left by writers that were killed go once they are old, and no others") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  TestStore test(folder);
  write_file(scratch.path("store/decode/.0123456789abcdef.aa.tmp"), "old");
  write_file(scratch.path("store/decode/.0123456789abcdef.bb.tmp"), "new");
  write_file(scratch.path("store/decode/notes.txt"), "the user's");
  const timespec long_ago[2] = {{1000000000, 0}, {1000000000, 0}};
  for (const char* name : {"store/decode/.0123456789abcdef.aa.tmp", "store/decode/notes.txt"})
    REQUIRE(::utimensat(AT_FDCWD, scratch.path(name).c_str(), long_ago, 0) == 0);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK_FALSE(std::filesystem::exists(scratch.path("store/decode/.0123456789abcdef.aa.tmp")));
  CHECK(std::filesystem::exists(scratch.path("store/decode/.0123456789abcdef.bb.tmp")));
  CHECK(text_of(scratch.path("store/decode/notes.txt")) == "the user's");
}

TEST_CASE("Descriptors that the program closed are not taken") {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
  CHECK(in_process([&] {
          ::close(STDIN_FILENO);
          ::close(STDOUT_FILENO);
          TestStore test(folder);
          if (!test.store.save(identity(), {site()}, std::nullopt)) return 1;
          if (::fcntl(STDIN_FILENO, F_GETFD) != -1 || ::fcntl(STDOUT_FILENO, F_GETFD) != -1)
            return 2;
          return test.store.load(identity()).sites.size() == 1 ? 0 : 3;
        }) == 0);
}

// Many writers of one file, that end at any moment or stop.
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "catch.hpp"
#include "store/entry_lock.hpp"
#include "store/lease.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

pid_t start_writer(const std::vector<std::string>& arguments) {
  const char* const program = std::getenv("CONTEXTUNE_TEST_STORE_WRITER");
  REQUIRE(program != nullptr);
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execv(program, argv.data());
    ::_exit(127);
  }
  return child;
}

int exit_status(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::set<std::string> stored_names(const std::string& folder) {
  TestStore test(folder);
  std::set<std::string> names;
  for (const StoredSite& stored : test.store.load(identity()).sites) names.insert(stored.name);
  CHECK(test.said.empty());
  return names;
}

// Names in the ledger that the store does not have.
std::vector<std::string> lost(const std::string& folder, const std::string& ledger) {
  const std::set<std::string> known = stored_names(folder);
  std::vector<std::string> missing;
  for (const std::string& name : lines_of(ledger))
    if (!known.contains(name)) missing.push_back(name);
  return missing;
}

// However slow the machine is, they are killed while they write.
void wait_for_lines(const std::string& file, std::size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (lines_of(file).size() < count && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string hidden(const std::string& folder, const char* what) {
  const std::filesystem::path file = file_of(folder);
  return (file.parent_path() / ("." + file.filename().string() + what)).string();
}

// A writer that has stopped while it holds the lock.
pid_t stopped_writer(const std::string& folder) {
  const pid_t child = start_writer({"stop", folder});
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  REQUIRE(WIFSTOPPED(status));
  return child;
}

void make_old(const std::string& file, int seconds) {
  timespec times[2] = {};
  ::clock_gettime(CLOCK_REALTIME, &times[0]);
  times[0].tv_sec -= seconds;
  times[1] = times[0];
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

void write_lease(const std::string& folder, const ProcessIdentity& holder,
                 const std::string& temporary) {
  write_file(hidden(folder, ".lease"), Lease{holder, temporary}.to_text());
}

struct StoreFolder {
  const ScratchFolder scratch;
  const std::string folder = scratch.path("store");
};

}  // namespace

TEST_CASE_METHOD(StoreFolder, "All that sixteen writers of one file saved is there") {
  std::vector<pid_t> writers;
  for (int i = 0; i < 16; ++i)
    writers.push_back(
        start_writer({"save", folder, scratch.path("ledger"), std::to_string(i), "2"}));
  for (const pid_t writer : writers) CHECK(exit_status(writer) == 0);
  CHECK(lines_of(scratch.path("ledger")).size() == 32);
  CHECK(lost(folder, scratch.path("ledger")).empty());
  CHECK(stored_names(folder).size() == 32);
}

TEST_CASE_METHOD(
    StoreFolder,
    "Nothing that a writer was told is saved is lost when writers are killed at any moment") {
  const std::string ledger = scratch.path("ledger");
  std::mt19937 random(Catch::rngSeed() + 1U);
  int killed = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<pid_t> writers;
    for (int i = 0; i < 16; ++i) {
      const std::string id = std::to_string(round) + "-" + std::to_string(i);
      writers.push_back(start_writer({"save", folder, ledger, id, "1000000"}));
    }
    wait_for_lines(ledger, lines_of(ledger).size() + 4);
    std::shuffle(writers.begin(), writers.end(), random);
    for (const pid_t writer : writers) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
      ::kill(writer, SIGKILL);
      killed += exit_status(writer) == -SIGKILL ? 1 : 0;
    }
    CHECK(lost(folder, ledger).empty());
  }
  CHECK(killed == 64);
  CHECK(lines_of(ledger).size() >= 16);
  // What the last one left keeps nobody out, and what it did not finish is nowhere to be seen.
  TestStore test(folder);
  CHECK(test.store.save(identity(), {site("after")}, std::nullopt));
  CHECK(test.said.empty());
  CHECK_FALSE(std::filesystem::exists(file_of(folder) + ".unreadable-1"));
}

TEST_CASE("Threads of one process exclude each other") {
  const ScratchFolder scratch;
  TestStore test(scratch.path("store"), 30);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 4; ++k)
        test.store.save(identity(), {site(std::to_string(i) + "-" + std::to_string(k))},
                        std::nullopt);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(stored_names(scratch.path("store")).size() == 32);
}

TEST_CASE_METHOD(StoreFolder,
                 "A writer that is stopped with the lock holds others up for a bounded time") {
  const pid_t holder = stopped_writer(folder);
  TestStore test(folder, 0.3);
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  REQUIRE(test.said.size() == 1);
  CHECK(contains(test.said[0].second, "process " + std::to_string(holder) + " on "));
  CHECK(contains(test.said[0].second, "let it go on or end it"));
  ::kill(holder, SIGCONT);
  CHECK(exit_status(holder) == 0);
}

TEST_CASE_METHOD(StoreFolder, "A writer that was killed with the lock holds nobody up") {
  const pid_t holder = stopped_writer(folder);
  ::kill(holder, SIGKILL);
  CHECK(exit_status(holder) == -SIGKILL);
  CHECK(std::filesystem::exists(hidden(folder, ".lease")));
  TestStore test(folder, 2);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(test.said.empty());
  CHECK(files_below(folder).size() == 2);  // the file and its lock
}

TEST_CASE_METHOD(StoreFolder,
                 "A writer whose lease was taken over while it was stopped overwrites nobody") {
  const pid_t holder = stopped_writer(folder);
  // As where locks are not carried from host to host: another host does not see that of the kernel.
  std::filesystem::remove(hidden(folder, ".lock"));
  TestStore early(folder, 0.2);
  CHECK_FALSE(early.store.save(identity(), {site()}, std::nullopt));
  CHECK(contains(early.said.at(0).second, "has been writing it for "));
  make_old(hidden(folder, ".lease"), 31);
  TestStore test(folder, 0.2);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  ::kill(holder, SIGCONT);
  CHECK(exit_status(holder) == 3);
  CHECK(stored_names(folder) == std::set<std::string>{"saxpy"});
}

TEST_CASE_METHOD(
    StoreFolder,
    "The lease of a process that is gone is taken at once, one of another host when it is old") {
  ProcessIdentity gone = ProcessIdentity::of_this_process();
  gone.start_ticks += 1;  // an earlier process with this one's pid
  const std::string temporary = ".0123456789abcdef.1.tmp";
  write_lease(folder, gone, temporary);
  write_file(scratch.path("store/decode/" + temporary), "half of a file");
  TestStore test(folder, 0.3);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
  CHECK_FALSE(std::filesystem::exists(scratch.path("store/decode/" + temporary)));

  ProcessIdentity elsewhere = gone;
  elsewhere.boot = "another";
  elsewhere.host = "node7";
  write_lease(folder, elsewhere, temporary);
  CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
  CHECK(contains(test.said.at(0).second, "process " + std::to_string(elsewhere.pid) + " on node7"));
  make_old(hidden(folder, ".lease"), 31);
  CHECK(test.store.save(identity(), {site()}, std::nullopt));
}

TEST_CASE_METHOD(StoreFolder,
                 "A lease that was cut off or says nothing known is taken when it is old") {
  const std::string text = Lease{ProcessIdentity::of_this_process(), ".a.tmp"}.to_text();
  REQUIRE(Lease::parse(text));
  for (std::size_t size = 0; size < text.size(); ++size)
    CHECK_FALSE(Lease::parse(text.substr(0, size)));
  for (const std::string& content : {std::string(), text.substr(0, 20), std::string(100000, 'x')}) {
    write_file(hidden(folder, ".lease"), content);
    TestStore test(folder, 0.1);
    CHECK_FALSE(test.store.save(identity(), {site()}, std::nullopt));
    make_old(hidden(folder, ".lease"), 31);
    CHECK(test.store.save(identity(), {site()}, std::nullopt));
  }
}

TEST_CASE("A lease can name no file of another folder") {
  for (const char* name : {"../victim.tmp", "./a.tmp", "a.json", "victim", ".hidden"}) {
    const Lease lease{ProcessIdentity::of_this_process(), name};
    CHECK_FALSE(Lease::parse(lease.to_text()));
  }
}

TEST_CASE("A process is present until it has ended") {
  ProcessIdentity here = ProcessIdentity::of_this_process();
  CHECK(presence_of(here) == Presence::Alive);
  CHECK(presence_of({here.host, here.boot, "another", here.pid, here.start_ticks}) ==
        Presence::Unknown);
  CHECK(presence_of({here.host, "", here.pid_namespace, here.pid, here.start_ticks}) ==
        Presence::Unknown);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  here.pid = child;
  exit_status(child);
  CHECK(presence_of(here) == Presence::Gone);
}

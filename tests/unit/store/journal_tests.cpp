// What processes were trying when they ended.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "catch.hpp"
#include "store/journal_file.hpp"
#include "store/trial_journal.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

using Suspicion = TrialJournal::Suspicion;

constexpr TriedConfig first{1, 10};
constexpr TriedConfig second{2, 20};

/// A store's folder, and processes that try configs in it.
class Runs {
 public:
  Runs() {
    char name[] = "/tmp/contextune-journal-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder = name;
  }
  ~Runs() { std::filesystem::remove_all(folder); }

  /// A process that tries something and then ends in that way. Gives its number.
  pid_t run(const std::vector<TriedConfig>& configs,
            const std::function<void(TrialJournal&)>& end) {
    const pid_t child = ::fork();
    if (child == 0) {
      TrialJournal journal(folder, [](const std::string&) {});
      (void)journal.suspicion(first);
      std::vector<TrialJournal::Trial> trials;
      for (const TriedConfig& config : configs)
        trials.push_back({config, "config " + std::to_string(config.config)});
      journal.set(this, trials);
      end(journal);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return child;
  }
  pid_t die(const std::vector<TriedConfig>& configs) {
    return run(configs, [](TrialJournal&) { ::raise(SIGKILL); });
  }

  Suspicion suspicion(const TriedConfig& config) {
    TrialJournal journal(folder, [&](const std::string& sentence) { said.push_back(sentence); });
    return journal.suspicion(config);
  }
  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    const std::string path = folder + "/journal";
    if (!std::filesystem::exists(path)) return 0;
    for (const auto& file : std::filesystem::directory_iterator(path))
      if (file.path().extension() == ".trying") ++count;
    return count;
  }

  std::string folder;
  std::vector<std::string> said;
};

}  // namespace

TEST_CASE("A process that closes its journal leaves nothing behind", "[journal]") {
  Runs runs;
  runs.run({first}, [](TrialJournal& journal) { journal.close(); });
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.files() == 0);
}

TEST_CASE("What was in flight when a process ended are suspects, and what was tried before is not",
          "[journal]") {
  Runs runs;
  runs.run({first}, [&](TrialJournal& journal) {
    journal.set(&runs, {{second, "second"}, {{3, 30}, "third"}});
    ::raise(SIGKILL);
  });
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
  CHECK(runs.suspicion({3, 30}) == Suspicion::Suspect);
  CHECK(runs.files() == 0);
  CHECK(runs.said.empty());
}

TEST_CASE("A suspect that was alone in flight at a third end is blamed", "[journal]") {
  Runs runs;
  runs.die({first, second});
  for (int i = 0; i < 2; ++i) {
    runs.die({first});
    CHECK(runs.suspicion(first) == Suspicion::Suspect);
  }
  runs.die({first});
  CHECK(runs.suspicion(first) == Suspicion::Blamed);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
}

TEST_CASE("What is added to what is in flight is as if it had been set with it", "[journal]") {
  Runs runs;
  SECTION("to something") {
    runs.run({first}, [&](TrialJournal& journal) {
      journal.add(&journal, {second, "second"});
      journal.add(&runs, {{3, 30}, "third"});
      ::raise(SIGKILL);
    });
    CHECK(runs.suspicion(first) == Suspicion::Suspect);
    CHECK(runs.suspicion({3, 30}) == Suspicion::Suspect);
  }
  SECTION("to nothing, and some of it has been survived") {
    runs.run({}, [&](TrialJournal& journal) {
      journal.add(&runs, {first, "first"});
      journal.add(&journal, {second, "second"});
      journal.set(&runs, {});
      ::raise(SIGKILL);
    });
    CHECK(runs.suspicion(first) == Suspicion::None);
  }
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
  CHECK(runs.files() == 0);
  CHECK(runs.said.empty());
}

TEST_CASE("Ranks of one job that end together are one end", "[journal]") {
  Runs runs;
  runs.run({first}, [&](TrialJournal&) {
    const pid_t other = ::fork();
    if (other == 0) {
      TrialJournal theirs(runs.folder, [](const std::string&) {});
      theirs.set(&theirs, {{first, "first"}});
      ::raise(SIGKILL);
    }
    ::waitpid(other, nullptr, 0);
    ::raise(SIGKILL);
  });
  CHECK(runs.files() == 2);
  CHECK(runs.suspicion(first) == Suspicion::Suspect);
}

TEST_CASE("A limit on the size of files ends nobody", "[journal]") {
  Runs runs;
  runs.run({}, [](TrialJournal& journal) {
    const rlimit limit{10, 10};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    journal.set(&journal, {{first, "first"}});
    // Where SIGXFSZ had ended it, nothing could have taken the file away.
    journal.close();
  });
  CHECK(runs.files() == 0);
}

TEST_CASE("Whoever crashed alone is blamed at once", "[journal]") {
  Runs runs;
  SECTION("its parent has seen the crash") {
    judge_end(runs.folder, runs.run({first}, [](TrialJournal&) { ::raise(SIGKILL); }),
              ProcessEnd::Crash);
  }
  SECTION("its context broke, and the program ended by itself") {
    judge_end(runs.folder,
              runs.run({first},
                       [](TrialJournal& journal) {
                         journal.broke();
                         journal.close();
                       }),
              ProcessEnd::Nobodys);
  }
  CHECK(runs.suspicion(first) == Suspicion::Blamed);
  CHECK(blamed_configs(runs.folder) == std::vector<std::string>{"config 10"});
  CHECK(forget_blamed(runs.folder) == 1);
  CHECK(runs.suspicion(first) == Suspicion::None);
}

TEST_CASE("Several that crashed together are suspects, none is blamed", "[journal]") {
  Runs runs;
  judge_end(runs.folder, runs.run({first, second}, [](TrialJournal&) { ::raise(SIGKILL); }),
            ProcessEnd::Crash);
  CHECK(runs.suspicion(first) == Suspicion::Suspect);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
}

TEST_CASE("A config that hung alone is blamed however its process ends, and named", "[journal]") {
  Runs runs;
  judge_end(runs.folder,
            runs.run({first},
                     [&](TrialJournal& journal) {
                       const std::string next = journal.hung();
                       if (next.find("leave out the config that was alone in flight: config 10") ==
                           std::string::npos)
                         ::_exit(1);
                       ::raise(SIGKILL);
                     }),
            ProcessEnd::Nobodys);
  CHECK(runs.suspicion(first) == Suspicion::Blamed);
}

TEST_CASE("Of several configs in flight at a hang each is a suspect, until it hangs alone",
          "[journal]") {
  Runs runs;
  const auto hang = [](TrialJournal& journal) {
    (void)journal.hung();
    ::raise(SIGKILL);
  };
  judge_end(runs.folder, runs.run({first, second}, hang), ProcessEnd::Nobodys);
  CHECK(runs.suspicion(first) == Suspicion::Suspect);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
  // Each alone: run() has tried the first one for itself.
  runs.run({first}, [&](TrialJournal& journal) {
    journal.set(&runs, {{second, "second"}});
    hang(journal);
  });
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.suspicion(second) == Suspicion::Blamed);
}

TEST_CASE("What ended after all is neither blamed nor a suspect for having been slow",
          "[journal]") {
  Runs runs;
  const bool alone = GENERATE(true, false);
  runs.run({}, [&](TrialJournal& journal) {
    std::vector<TrialJournal::Trial> trials{{first, "first"}};
    if (!alone) trials.push_back({second, "second"});
    journal.set(&runs, trials);
    (void)journal.hung();
    journal.set(&runs, {});
    ::raise(SIGKILL);
  });
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.suspicion(second) == Suspicion::None);
}

TEST_CASE("An end that somebody wanted blames nobody, however often", "[journal]") {
  Runs runs;
  for (int i = 0; i < 3; ++i) judge_end(runs.folder, runs.die({first}), ProcessEnd::Nobodys);
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.files() == 0);
}

TEST_CASE("A suspect that was tried and survived is one no longer", "[journal]") {
  Runs runs;
  runs.die({first, second});
  runs.run({first}, [&](TrialJournal& journal) {
    journal.set(&runs, {});
    journal.close();
  });
  CHECK(runs.suspicion(first) == Suspicion::None);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);
}

TEST_CASE("What a process is trying that is still there is nobody's business", "[journal]") {
  Runs runs;
  TrialJournal mine(runs.folder, [](const std::string&) {});
  mine.set(&runs, {{first, "first"}});
  runs.run({second}, [&](TrialJournal& theirs) {
    ::_exit(theirs.suspicion(first) == Suspicion::None ? 0 : 1);
  });
  CHECK(runs.files() >= 1);
  CHECK(runs.suspicion(first) == Suspicion::None);
  mine.close();
}

TEST_CASE("A journal that cannot be kept is said once, and nothing else changes", "[journal]") {
  std::vector<std::string> said;
  TrialJournal journal("/proc/nowhere", [&](const std::string& text) { said.push_back(text); });
  CHECK(journal.suspicion(first) == Suspicion::None);
  journal.set(&said, {{first, "first"}});
  journal.set(&said, {});
  journal.set(&said, {{second, "second"}});
  journal.close();
  REQUIRE(said.size() == 1);
  CHECK(said.front().find("/proc/nowhere") != std::string::npos);
}

TEST_CASE("A journal writes into no file of a program that closes all that it does not know",
          "[journal]") {
  Runs runs;
  const std::string theirs = runs.folder + "/theirs";
  runs.run({first}, [&](TrialJournal& journal) {
    for (int fd = 3; fd < 64; ++fd) (void)::close(fd);
    for (int fd = 3; fd < 64; ++fd) (void)::open(theirs.c_str(), O_RDWR | O_CREAT, 0600);
    journal.set(&runs, {{second, "second"}});
    ::raise(SIGKILL);
  });
  CHECK(std::filesystem::file_size(theirs) == 0);
  CHECK(runs.suspicion(second) == Suspicion::Suspect);  // and goes on
}

TEST_CASE("A journal keeps no descriptor open that a program could close and have again",
          "[journal]") {
  Runs runs;
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_now();
  TrialJournal journal(runs.folder, [&](const std::string& text) { runs.said.push_back(text); });
  journal.set(&runs, {{first, "first"}});
  journal.add(&runs, {second, "second"});
  CHECK(open_now() == before);
  journal.set(&runs, {});
  journal.close();
  CHECK(open_now() == before);
  CHECK(runs.said.empty());
}

TEST_CASE("A journal that somebody cuts short or removes is said once and ends nobody",
          "[journal]") {
  Runs runs;
  TrialJournal journal(runs.folder, [&](const std::string& text) { runs.said.push_back(text); });
  journal.set(&runs, {{first, "first"}});
  for (const auto& file : std::filesystem::directory_iterator(runs.folder + "/journal"))
    std::filesystem::resize_file(file.path(), 0);
  journal.set(&runs, {{second, "second"}});
  journal.set(&runs, {});
  CHECK(runs.said.size() == 1);
  journal.close();
}

TEST_CASE("A journal grows with what is in flight, and shows nothing of what was", "[journal]") {
  Runs runs;
  runs.run({first}, [&](TrialJournal& journal) {
    std::vector<TrialJournal::Trial> many;
    for (std::uint64_t i = 0; i < 1000; ++i) many.push_back({{100, i}, std::string(100, 'x')});
    journal.set(&runs, many);
    many.resize(999);
    journal.set(&runs, many);
    ::raise(SIGKILL);
  });
  CHECK(runs.suspicion({100, 998}) == Suspicion::Suspect);
  CHECK(runs.suspicion({100, 999}) == Suspicion::None);
}

TEST_CASE("Files of a journal that are cut short or garbled blame nobody", "[journal]") {
  TryingFile file;
  file.process.host = "node7";
  file.process.boot = "b00t";
  file.process.pid = 4242;
  file.in_flight = {{first, "saxpy block=256"}, {second, "a b\nc"}};
  const std::string text = file.to_text();
  const auto read = TryingFile::parse(text);
  REQUIRE(read);
  CHECK(read->in_flight.at(first) == "saxpy block=256");
  CHECK(read->in_flight.at(second) == "a b c");
  CHECK(read->process.pid == 4242);
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    CHECK_FALSE(TryingFile::parse(text.substr(0, size)));
  KnownFile known;
  std::set<TriedConfig> counted;
  known.add(*read, counted);
  const std::string known_text = known.to_text();
  REQUIRE(KnownFile::parse(known_text));
  CHECK(KnownFile::parse(known_text)->entries.size() == 2);
  for (std::size_t size = 0; size + 1 < known_text.size(); ++size)
    CHECK_FALSE(KnownFile::parse(known_text.substr(0, size)));
}

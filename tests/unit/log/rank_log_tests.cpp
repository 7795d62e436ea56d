#include "log/rank_log.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <regex>
#include <thread>

#include "catch.hpp"
#include "log/log_file.hpp"
#include "log/record.hpp"
#include "log/run_id.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

using contextune::LogLevel;
using contextune::log::parse_record;
using contextune::log::RankLog;
using contextune::log::Record;

namespace {

RankLog::Settings settings(const std::string& folder) {
  RankLog::Settings result;
  result.folder = folder;
  result.run = "7f3a21";
  return result;
}

// How often this process has called write(2).
std::uint64_t write_calls() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    std::uint64_t value = 0;
    io >> value;
    if (name == "syscw:") return value;
  }
  return 0;
}

std::vector<std::string> lines_in(const RankLog& log) {
  log.flush();
  return lines_of(log.path());
}

template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("A line is what the format says", "[rank_log]") {
  ScratchFolder scratch;
  RankLog::Settings wanted = settings(scratch.path("logs"));
  wanted.rank = 3;
  RankLog log(wanted);
  log.write(LogLevel::Info, "trial",
            {{"region", "decode"},
             {"pass", 4U},
             {"key", "n=1048576"},
             {"time_us", 2.53},
             {"simulated", true},
             {"delta", -7}});
  CHECK(log.path() == scratch.path("logs/rank-3.log"));
  const auto lines = lines_in(log);
  REQUIRE(lines.size() == 1);
  const std::regex form(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z run=7f3a21 pid=\d+ rank=3 level=info event=trial )"
      R"(region=decode pass=4 key="n=1048576" time_us=2.53 simulated=yes delta=-7)");
  CHECK(std::regex_match(lines[0], form));
  CHECK(lines[0].find("pid=" + std::to_string(getpid()) + " ") != std::string::npos);
}

TEST_CASE("The time of a line is universal time", "[rank_log]") {
  ScratchFolder scratch;
  setenv("TZ", "Asia/Kolkata", 1);
  tzset();
  RankLog log(settings(scratch.path("logs")));
  // Not time(): it goes on with the kernel's ticks, and may lag behind the log's clock by a second.
  using Clock = std::chrono::system_clock;
  const time_t before = Clock::to_time_t(Clock::now());
  log.write(LogLevel::Info, "start", {});
  const time_t after = Clock::to_time_t(Clock::now());
  unsetenv("TZ");
  tzset();
  tm parts{};
  const std::string line = lines_in(log).at(0);
  REQUIRE(strptime(line.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) != nullptr);
  const time_t written = timegm(&parts);
  CHECK(written >= before);
  CHECK(written <= after);
}

TEST_CASE("There is no file and no folder before there is something to say", "[rank_log]") {
  ScratchFolder scratch;
  const mode_t mask = umask(022);
  RankLog log(settings(scratch.path("a/b")));
  log.write(LogLevel::Debug, "trial", {});
  CHECK_FALSE(std::filesystem::exists(scratch.path("a")));
  log.write(LogLevel::Warn, "fallback", {});
  log.flush();
  umask(mask);
  REQUIRE(lines_of(scratch.path("a/b/rank-0.log")).size() == 1);
  struct stat status {};
  REQUIRE(stat(scratch.path("a/b").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0755U);
}

TEST_CASE("The level decides what is written", "[rank_log]") {
  ScratchFolder scratch;
  RankLog::Settings wanted = settings(scratch.path("logs"));
  wanted.level = LogLevel::Warn;
  RankLog log(wanted);
  log.write(LogLevel::Info, "trial", {});
  log.write(LogLevel::Warn, "fallback", {});
  CHECK(lines_in(log).size() == 1);
  CHECK(log.wants(LogLevel::Warn));
  CHECK_FALSE(log.wants(LogLevel::Info));
}

TEST_CASE("A line is one write", "[rank_log]") {
  ScratchFolder scratch;
  RankLog log(settings(scratch.path("logs")));
  log.write(LogLevel::Info, "start", {});
  log.flush();
  const std::string long_text(3000, 'x');
  const std::uint64_t before = write_calls();
  for (int i = 0; i < 50; ++i) log.write(LogLevel::Info, "trial", {{"text", long_text}});
  log.flush();
  CHECK(write_calls() - before == 50);
  CHECK(log.lines_written() == 51);
}

TEST_CASE("Nobody waits until a line is written", "[rank_log]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // built so, whoever says something writes it (host/own_descriptors.cpp)
#endif
  ScratchFolder scratch;
  RankLog log(settings(scratch.path("logs")));
  log.write(LogLevel::Info, "start", {});  // which waits for the thread that writes
  const auto waits = [] {
    rusage usage{};
    REQUIRE(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
  };
  constexpr int lines = 500;
  const long before = waits();
  for (int i = 0; i < lines; ++i) log.write(LogLevel::Info, "trial", {{"pass", i}});
  CHECK(waits() - before < lines / 5);  // some, for a lock
}

TEST_CASE("Lines of several threads and processes never run into one another", "[rank_log]") {
  ScratchFolder scratch;
  const auto write_many = [&](int writer) {
    RankLog::Settings wanted = settings(scratch.path("logs"));
    RankLog log(wanted);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&log, writer, t] {
        const std::string text(static_cast<std::size_t>(100 + 700 * t), static_cast<char>('a' + t));
        for (int i = 0; i < 300; ++i) {
          log.write(LogLevel::Info, "trial", {{"writer", writer}, {"text", text}});
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return log.lines_lost() == 0 ? 0 : 1;
  };
  const pid_t child = fork();
  if (child == 0) _exit(write_many(1));
  CHECK(write_many(0) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  auto lines = lines_of(scratch.path("logs/rank-0.log"));
  std::erase(lines, "");  // who opens the file while a line is written may begin with a blank one
  CHECK(lines.size() == 1800);
  for (const std::string& line : lines) {
    const auto parsed = parse_record(line);
    REQUIRE(std::holds_alternative<Record>(parsed));
    const std::string_view text = std::get<Record>(parsed).text("text");
    REQUIRE(text.find_first_not_of(text.at(0)) == std::string_view::npos);
  }
}

TEST_CASE("A log that is opened while lines are written parts them by blank lines at most",
          "[rank_log]") {
  ScratchFolder scratch;
  const auto write_lines = [&](int opened, int lines, std::size_t size) {
    for (int i = 0; i < opened; ++i) {
      RankLog log(settings(scratch.path("logs")));
      for (int k = 0; k < lines; ++k) {
        log.write(LogLevel::Info, "trial", {{"text", std::string(size, 'x')}});
        if (k % 1000 == 999) log.flush();  // more than 4 MiB that wait are lost
      }
    }
  };
  std::thread opens([&] { write_lines(1000, 1, 1); });
  write_lines(1, 5000, 2000);
  opens.join();
  auto lines = lines_of(scratch.path("logs/rank-0.log"));
  std::erase(lines, "");
  CHECK(lines.size() == 6000);
  const auto is_record = [](const std::string& line) {
    return std::holds_alternative<Record>(parse_record(line));
  };
  CHECK(std::all_of(lines.begin(), lines.end(), is_record));
}

TEST_CASE("A full disk costs lines and nothing else", "[rank_log]") {
  contextune::log::LogFile log("/dev/full");
  errno = 33;
  for (int i = 0; i < 5; ++i) log.append("a line\n");
  CHECK(errno == 33);
  CHECK(log.lines_written() == 0);
  CHECK(log.lines_lost() == 5);
  CHECK(log.last_error() == ENOSPC);
}

TEST_CASE("A folder that cannot be made costs lines and nothing else", "[rank_log]") {
  ScratchFolder scratch;
  std::ofstream(scratch.path("in_the_way")) << "a file";
  RankLog log(settings(scratch.path("in_the_way/logs")));
  log.write(LogLevel::Info, "start", {});
  log.write(LogLevel::Info, "trial", {});
  CHECK(log.lines_lost() == 2);
  CHECK(log.last_error() == ENOTDIR);
}

TEST_CASE("A folder that vanishes is made again", "[rank_log]") {
  ScratchFolder scratch;
  RankLog log(settings(scratch.path("logs")));
  log.write(LogLevel::Info, "start", {});
  log.flush();
  std::filesystem::remove_all(scratch.path("logs"));
  log.write(LogLevel::Info, "trial", {{"pass", 1}});
  const auto lines = lines_in(log);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("event=trial") != std::string::npos);
  CHECK(log.lines_lost() == 0);
}

TEST_CASE("A relative folder stays where the program started", "[rank_log]") {
  ScratchFolder scratch;
  const auto before = std::filesystem::current_path();
  std::filesystem::create_directory(scratch.path("elsewhere"));
  std::filesystem::current_path(scratch.path(""));
  RankLog log(settings("logs"));
  std::filesystem::current_path(scratch.path("elsewhere"));
  log.write(LogLevel::Info, "start", {});
  log.flush();
  std::filesystem::current_path(before);
  CHECK(lines_of(scratch.path("logs/rank-0.log")).size() == 1);
}

TEST_CASE("A limit on file sizes does not kill the program", "[rank_log]") {
  ScratchFolder scratch;
  const int status = status_of_child([&] {
    const rlimit limit{400, 400};
    setrlimit(RLIMIT_FSIZE, &limit);
    RankLog log(settings(scratch.path("logs")));
    for (int i = 0; i < 20; ++i) log.write(LogLevel::Info, "trial", {{"text", "some words"}});
    return log.lines_lost() > 0 && log.last_error() == EFBIG ? 0 : 1;
  });
  CHECK(WIFEXITED(status));
  CHECK(status == 0);
  CHECK(std::filesystem::file_size(scratch.path("logs/rank-0.log")) <= 400);
}

TEST_CASE("A pipe without a reader neither holds nor kills the program", "[rank_log]") {
  ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path("logs"));
  REQUIRE(mkfifo(scratch.path("logs/rank-0.log").c_str(), 0600) == 0);
  const int status = status_of_child([&] {
    alarm(20);
    RankLog log(settings(scratch.path("logs")));
    const std::string text(4000, 'x');
    for (int i = 0; i < 100; ++i) log.write(LogLevel::Info, "trial", {{"text", text}});
    return log.lines_written() > 0 && log.last_error() == EAGAIN ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("A descriptor that the program closed and reused is not written to", "[rank_log]") {
  ScratchFolder scratch;
  RankLog log(settings(scratch.path("logs")));
  const int below = open("/dev/null", O_RDONLY);
  log.write(LogLevel::Info, "start", {});
  log.flush();
  const int next = open("/dev/null", O_RDONLY);
  CHECK(next == below + 1);  // the log took no low number
  close(below);
  close(next);
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  const std::string precious = scratch.path("precious");
  const int file = open(precious.c_str(), O_RDWR | O_CREAT, 0600);
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != file) dup2(file, fd);
  }
  log.write(LogLevel::Info, "trial", {});
  log.flush();
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  CHECK(text_of(precious).empty());
  CHECK(lines_in(log).size() == 2);
}

TEST_CASE("Where a log shares the program's descriptors, one that was reused is left alone",
          "[rank_log]") {
  ScratchFolder scratch;
  contextune::log::LogFile log(scratch.path("logs/rank-0.log"));
  REQUIRE(log.append("first\n"));
  const std::string precious = scratch.path("precious");
  const int file = open(precious.c_str(), O_RDWR | O_CREAT, 0600);
  constexpr int end = 1000;  // beyond the log's, and below the least limit
  for (int fd = file + 1; fd < end; ++fd) dup2(file, fd);
  CHECK(log.append("second\n"));
  struct stat theirs {};
  REQUIRE(fstat(file, &theirs) == 0);
  int kept = 0;
  for (int fd = file; fd < end; ++fd) {
    struct stat now {};
    kept += fstat(fd, &now) == 0 && now.st_ino == theirs.st_ino ? 1 : 0;
    close(fd);
  }
  CHECK(kept == end - file);
  CHECK(text_of(precious).empty());
  CHECK(lines_of(log.path()) == std::vector<std::string>{"first", "second"});
}

TEST_CASE("A log keeps no descriptor that a program could close and have again", "[rank_log]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return;  // built so, threads share the program's table (host/own_descriptors.cpp)
#endif
  ScratchFolder scratch;
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_now();
  {
    RankLog log(settings(scratch.path("logs")));
    log.write(LogLevel::Info, "first", {});
    log.flush();
    CHECK(open_now() == before);
    for (int fd = 3; fd < 1024; ++fd) (void)close(fd);
    log.write(LogLevel::Info, "second", {});
    CHECK(log.lines_written() == 2);
    CHECK(log.lines_lost() == 0);
  }
  CHECK(open_now() <= before);
}

TEST_CASE("Half a line that a killed process left does not spoil the next one", "[rank_log]") {
  ScratchFolder scratch;
  std::filesystem::create_directory(scratch.path("logs"));
  std::ofstream(scratch.path("logs/rank-0.log")) << "2026-11-20T20:33:53.120Z run=7f3a pid=4";
  RankLog log(settings(scratch.path("logs")));
  log.write(LogLevel::Info, "start", {});
  const auto lines = lines_in(log);
  REQUIRE(lines.size() == 2);
  CHECK(std::holds_alternative<Record>(parse_record(lines[1])));
}

TEST_CASE("A forked child writes nothing, even if it was forked in mid-line", "[rank_log]") {
  ScratchFolder scratch;
  RankLog log(settings(scratch.path("logs")));
  log.write(LogLevel::Info, "start", {});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) log.write(LogLevel::Info, "trial", {{"by", "parent"}});
  });
  for (int i = 0; i < 30; ++i) {
    const int status = status_of_child([&] {
      alarm(20);
      log.write(LogLevel::Info, "trial", {{"by", "child"}});
      return 0;
    });
    CHECK(status == 0);
  }
  stop = true;
  writer.join();
  log.flush();
  CHECK(text_of(log.path()).find("by=child") == std::string::npos);
}

TEST_CASE("A cancelled thread is not unwound out of a line", "[rank_log]") {
  ScratchFolder scratch;
  const int status = status_of_child([&] {
    RankLog log(settings(scratch.path("logs")));
    pthread_t thread{};
    const auto body = [](void* argument) -> void* {
      pthread_cancel(pthread_self());  // the next cancellation point would end the thread
      static_cast<RankLog*>(argument)->write(LogLevel::Info, "trial", {});
      static_cast<RankLog*>(argument)->write(LogLevel::Info, "trial", {});
      // Not ended here: AddressSanitizer takes a cancelled thread's stack for misused.
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
      return argument;
    };
    pthread_create(&thread, nullptr, body, &log);
    void* result = nullptr;
    pthread_join(thread, &result);
    return log.lines_written() == 2 && result == &log ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("A run id that could break a line is replaced", "[run_id]") {
  using contextune::log::run_id_or_random;
  CHECK(run_id_or_random("7f3a") == "7f3a");
  CHECK(run_id_or_random("job_12-a") == "job_12-a");
  for (const char* bad : {"", "abc", "a b c d", "aa=bb", "line\nline"}) {
    const std::string id = run_id_or_random(bad);
    CHECK(id.size() == 6);
    CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  CHECK(run_id_or_random("") != run_id_or_random(""));
}

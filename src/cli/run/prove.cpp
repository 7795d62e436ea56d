#include "cli/run/prove.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <contextune/error.hpp>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <regex>

#include "cli/run/prove_text.hpp"
#include "cli/run/run_watch.hpp"
#include "cli/words/text.hpp"
#include "log/run_id.hpp"

namespace contextune::cli {
namespace {

constexpr int most_settling_runs = 5;
constexpr int look_for_end_ms = 50;

enum class Shown { Yes, No };

/// The standard input of every run: a file from where it stands, else nothing.
class Input {
 public:
  Input() {
    struct stat status {};
    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode))
      begin_ = lseek(STDIN_FILENO, 0, SEEK_CUR);
  }
  /// In the child.
  void open() const {
    if (begin_ >= 0 && lseek(STDIN_FILENO, begin_, SEEK_SET) == begin_) return;
    const int null = ::open("/dev/null", O_RDONLY);
    if (null > STDIN_FILENO) dup2(null, STDIN_FILENO);
  }

 private:
  off_t begin_ = -1;
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size());
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

void write_out(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

/// Starts the program again and again, one at a time.
class Runner {
 public:
  explicit Runner(const std::vector<std::string>& command) : command_(command) {}

  /// @throws Error if it cannot be started
  ProvedRun run(const Environment& environment, bool tuned, Shown shown) {
    std::array<int, 2> output{-1, -1};
    std::array<int, 2> failure{-1, -1};
    if (pipe2(output.data(), O_CLOEXEC) != 0 || pipe2(failure.data(), O_CLOEXEC) != 0)
      throw Error(std::string("no pipe: ") + std::strerror(errno));
    const auto begin = std::chrono::steady_clock::now();
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become(environment, parent, output[1], failure[1], shown);
    const int fork_error = errno;
    close(output[1]);
    close(failure[1]);
    int error = pid < 0 ? fork_error : 0;
    if (pid > 0 && read(failure[0], &error, sizeof error) != sizeof error) error = 0;
    close(failure[0]);
    ProvedRun result;
    result.tuned = tuned;
    if (error == 0) {
      result.wait_status = follow(pid, output[0], shown, result.output);
      result.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    } else if (pid > 0) {
      waitpid(pid, nullptr, 0);
    }
    close(output[0]);
    if (error != 0) throw Error(command_.front() + ": " + std::strerror(error));
    return result;
  }

 private:
  [[noreturn]] void become(const Environment& environment, pid_t parent, int output, int failure,
                           Shown shown) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(run_failed);
    input_.open();
    dup2(output, STDOUT_FILENO);
    if (shown == Shown::No) {
      const int null = ::open("/dev/null", O_WRONLY);
      if (null > STDERR_FILENO) dup2(null, STDERR_FILENO);
    }
    const std::vector<char*> arguments = pointers(command_);
    const std::vector<char*> variables = pointers(environment.entries());
    execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = write(failure, &error, sizeof error);
    _exit(run_failed);
  }

  // Reads until the program has ended, though what it leaves behind may keep its output open.
  static int follow(pid_t pid, int output, Shown shown, std::string& text) {
    int status = 0;
    bool ended = false;
    std::array<char, 65536> piece{};
    while (true) {
      pollfd ready{output, POLLIN, 0};
      if (poll(&ready, 1, ended ? 0 : look_for_end_ms) > 0) {
        const ssize_t count = read(output, piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        text.append(piece.data(), static_cast<std::size_t>(count));
        if (shown == Shown::Yes) write_out({piece.data(), static_cast<std::size_t>(count)});
      } else if (ended) {
        break;
      } else {
        ended = waitpid(pid, &status, WNOHANG) == pid;
      }
    }
    while (!ended && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const std::vector<std::string>& command_;
  Input input_;
};

// Whether a process of the run says so, in the reason of a fallback.
bool says(const RunWatch& watch, std::string_view reason) {
  const auto& processes = watch.processes();
  return std::ranges::any_of(processes, [&](const log::ProcessReport& process) {
    return std::ranges::any_of(
        process.fallbacks, [&](const log::FallbackReport& one) { return one.reason == reason; });
  });
}

bool has_region(const RunWatch& watch, const std::function<bool(const log::RegionReport&)>& is_it) {
  const auto& processes = watch.processes();
  return std::ranges::any_of(processes, [&](const log::ProcessReport& process) {
    return std::ranges::any_of(process.regions, is_it);
  });
}

// A helper process of the program may find nothing where the program itself does.
bool has_settled(const RunWatch& watch) {
  return has_region(watch, [](const log::RegionReport& region) {
    return region.submission && region.submission->state == "settled";
  });
}

// Launches are NCCL's for the most part, and no other region was tuned.
bool is_left_to_nccl(const RunWatch& watch) {
  return has_region(watch,
                    [](const log::RegionReport& region) {
                      return region.submission && region.submission->state == "nccl";
                    }) &&
         !has_region(watch, [](const log::RegionReport& region) {
           return region.name != "auto" && !region.confirms.empty();
         });
}

class Prover {
 public:
  Prover(const RunRequest& request, RunSetup setup, Reporter& reporter)
      : request_(request),
        setup_(std::move(setup)),
        reporter_(reporter),
        bare_(Environment::of_this_process()),
        runner_(request.command) {
    bare_.set("CONTEXTUNE_DISABLE", "1");
    if (request.clock.empty()) return;
    try {
      clock_.emplace(request.clock);
    } catch (const std::regex_error& error) {
      throw Error("--clock " + request.clock + ": " + error.what());
    }
    if (clock_->mark_count() == 0)
      throw Error("--clock " + request.clock +
                  ": there is no group in it, as in 'Total time: ([0-9.]+)'");
  }

  int prove() {
    std::vector<ProvedRun> runs;
    runs.push_back(run_bare(Shown::Yes));
    if (clock_ && !(runs.front().own_time > 0.0))
      throw Error("--clock " + request_.clock + ": no line of the output has a time there");
    settle();
    for (int i = 0; i < request_.prove; ++i) {
      const bool bare_first = i % 2 == 0;
      const auto add = [&](bool tuned) {
        progress("round " + std::to_string(i + 1) + " of " + std::to_string(request_.prove) +
                 (tuned ? ", tuned" : ", bare"));
        runs.push_back(tuned ? run_tuned() : run_bare(Shown::No));
      };
      add(!bare_first);
      add(bare_first);
    }
    // The first one was shown while it ran, and the files were not in memory yet.
    const std::string output = std::move(runs.front().output);
    const int status = runs.front().wait_status;
    runs.erase(runs.begin());
    const Proof proof = proof_of(runs);
    reporter_.say("contextune: " + log_name() + ", bare and tuned in turns, " +
                  std::to_string(request_.prove) + " times each\n  search     " + settled_ + "\n" +
                  proof_text(proof, runs) +
                  (clock_ && !proof.own ? "  own clock  NOT in the output of every run\n" : ""));
    const bool holds = proof.holds() && runs.front().wait_status == status &&
                       (proof.bare == Likeness::Different ||
                        likeness(output, runs.front().output) != Likeness::Different);
    constexpr int failed = 1 << 8;  // exit status 1, as waitpid tells it
    return holds ? status : failed;
  }

 private:
  ProvedRun run_bare(Shown shown) { return timed(runner_.run(bare_, false, shown)); }

  ProvedRun run_tuned() {
    setup_.environment.set("CONTEXTUNE_RUN_ID", log::run_id_or_random(""));
    return timed(runner_.run(setup_.environment, true, Shown::No));
  }

  [[nodiscard]] ProvedRun timed(ProvedRun run) const {
    if (clock_) run.own_time = take_time(run.output, *clock_);
    return run;
  }

  // A search that is still open has no result yet.
  void settle() {
    std::string took;
    for (int i = 1; i <= most_settling_runs; ++i) {
      progress("tuned run " + std::to_string(i) + " of at most " +
               std::to_string(most_settling_runs) + ", until the search is settled");
      const std::string run = log::run_id_or_random("");
      setup_.environment.set("CONTEXTUNE_RUN_ID", run);
      RunWatch watch(setup_.log_folder, run);
      took += (i == 1 ? "" : ", ") +
              time_text(runner_.run(setup_.environment, true, Shown::No).seconds);
      watch.finish();
      if (watch.num_lines() == 0) {
        settled_ = "NONE: the rank log has no line of the program, so nothing was tuned";
        return;
      }
      if (says(watch, "not_settled")) continue;
      if (!has_settled(watch) && is_left_to_nccl(watch)) {
        settled_ = "nothing was searched: most launches are NCCL's";
      } else if (!has_settled(watch) && says(watch, "nothing_repeats")) {
        settled_ = "nothing was found that repeats";
      } else {
        settled_ =
            "settled after " + count_text(static_cast<unsigned>(i), "run", "runs") + " of " + took;
      }
      return;
    }
    settled_ = "not settled after " + std::to_string(most_settling_runs) + " runs of " + took +
               ": the figures below are not its last word";
  }

  void progress(const std::string& text) {
    if (reporter_.shows_progress()) reporter_.say("contextune: " + text + "\n");
  }

  [[nodiscard]] std::string log_name() const { return request_.command.front(); }

  const RunRequest& request_;
  RunSetup setup_;
  Reporter& reporter_;
  Environment bare_;
  Runner runner_;
  std::optional<std::regex> clock_;
  std::string settled_;
};

}  // namespace

int prove(const RunRequest& request, RunSetup setup, Reporter& reporter) {
  return Prover(request, std::move(setup), reporter).prove();
}

}  // namespace contextune::cli

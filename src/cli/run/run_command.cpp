#include "cli/words/commands.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <contextune/error.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "cli/report/rank_comparison.hpp"
#include "cli/report/summary.hpp"
#include "cli/run/descriptors.hpp"
#include "cli/run/forced_pins.hpp"
#include "cli/run/local_ranks.hpp"
#include "cli/run/program.hpp"
#include "cli/run/progress.hpp"
#include "cli/run/prove.hpp"
#include "cli/run/reporter.hpp"
#include "cli/run/run_conditions.hpp"
#include "cli/run/run_watch.hpp"
#include "cli/setup/memory_limits.hpp"
#include "cli/setup/program_file.hpp"
#include "cli/setup/run_setup.hpp"
#include "cli/setup/space_files.hpp"
#include "log/events.hpp"
#include "log/log_folder.hpp"
#include "log/rank_of_environment.hpp"
#include "store/cache_folder.hpp"
#include "store/trial_journal.hpp"

namespace contextune::cli {
namespace {

constexpr double look_period = 0.25;
constexpr double seconds_until_killed = 10;

std::string start_failure(const std::string& program, int error) {
  std::string text = "contextune run: " + program + ": " + std::strerror(error);
  const bool has_folder = program.find('/') != std::string::npos;
  std::error_code ignored;
  if (error == ENOENT && has_folder && std::filesystem::exists(program, ignored)) {
    text += "; the file is there, but the interpreter or loader that it names is not";
  } else if (error == ENOENT && !has_folder) {
    text += "; there is no such program on $PATH";
  }
  return text + "\n";
}

double now_in_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Says in the rank log that nothing of the run was seen. The `errno` of the failure, or 0.
int log_silence(const RunSetup& setup) {
  log::RankLog log({setup.log_folder, log::rank_of_environment(), setup.run, LogLevel::Info});
  log::write_fallback(log, FallbackReason::NothingSeen, {}, {}, {});
  return log.last_error();
}

// Why a run left no line in the logs, as far as can be told from here.
std::string why_silent(const RunSetup& setup, const std::string& program, int log_error) {
  std::string text = "contextune: nothing was tuned: the rank log in " + setup.log_folder +
                     " has no line of the program.\n";
  if (log_error != 0) {
    return text + "  It cannot be written (" + log::why_not_written(log_error) +
           "): give another folder with --log-dir. The program may have been tuned all the same.\n";
  }
  std::vector<std::string> obstacles = preload_obstacles(program);
  if (std::string memory = memory_obstacle(); !memory.empty()) obstacles.push_back(memory);
  for (const std::string& obstacle : obstacles) text += "  " + obstacle + ".\n";
  if (!obstacles.empty()) return text;
  return text +
         "  Either the program ended before it had started CUDA, or it does not use it. "
         "`contextune doctor -- " +
         program + "` tells more.\n";
}

void report(const RunSetup& setup, const RunWatch& watch, Reporter& reporter) {
  std::vector<std::string> texts;
  std::vector<RankComparison> comparisons;
  if (!setup.options.discover) comparisons = compare_ranks(watch.processes());
  texts.reserve(comparisons.size());
  for (const RankComparison& comparison : comparisons) {
    texts.push_back(comparison_text(comparison, *comparison.ranks.begin()->second, reporter.width(),
                                    Detail::Few));
  }
  for (const log::ProcessReport* process : told_alone(watch.processes(), comparisons)) {
    texts.push_back(setup.options.discover
                        ? kernel_list(*process, reporter.width())
                        : process_summary(*process, reporter.width(), Detail::Few));
  }
  for (std::size_t i = 0; i < texts.size(); ++i) reporter.say((i > 0 ? "\n" : "") + texts[i]);
}

void write_space_file(const RunRequest& request, const RunWatch& watch, Reporter& reporter) {
  reporter.say("contextune: " + write_starter_file(watch.processes(), request.space_out) + "\n");
}

// Configs in flight are to blame for a crash, but not for an end that somebody wanted.
store::ProcessEnd end_of(int wait_status) {
  constexpr int faults[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
  const bool crashed =
      WIFSIGNALED(wait_status) &&
      std::find(std::begin(faults), std::end(faults), WTERMSIG(wait_status)) != std::end(faults);
  return crashed ? store::ProcessEnd::Crash : store::ProcessEnd::Nobodys;
}

std::string folder_of_store(const Options& options) {
  if (options.store == StoreUse::Off) return {};
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return store::cache_folder(options.cache_dir, variable("XDG_CACHE_HOME"), variable("HOME"));
}

// Waits for the program and tells about it; nothing that fails here may change how the program's
// end is passed on.
int follow(Program& program, const RunSetup& setup, const RunRequest& request, RunWatch& watch,
           Reporter& reporter) {
  Progress progress;
  const auto look = [&] {
    try {
      watch.poll();
      for (const std::string& line : progress.news(watch.processes())) reporter.say(line + "\n");
      if (reporter.shows_status())
        reporter.show_status(progress.status(watch.processes(), now_in_seconds()));
    } catch (const std::exception&) {  // no memory
    }
  };
  const auto failed = [&](std::size_t rank, int status) {
    try {
      reporter.say("contextune: " + end_of_rank(rank, status) +
                   (request.kill_on_failure ? "; the other ranks are ended\n"
                                            : "; the other ranks go on\n"));
    } catch (const std::exception&) {  // no memory
    }
  };
  const std::string stored = folder_of_store(setup.options);
  const auto ended = [&](pid_t process, int wait_status) {
    if (stored.empty()) return;
    const std::string judged = store::judge_end(stored, process, end_of(wait_status));
    try {
      if (!judged.empty())
        reporter.say("contextune: " + end_of_process(process, wait_status) + ". " + judged + "\n");
    } catch (const std::exception&) {  // no memory
    }
  };
  const int status =
      program.wait({reporter.shows_progress() ? look_period : 0, look, ended, failed});
  try {
    watch.finish();
    if (watch.num_lines() == 0) {
      const int error = log_silence(setup);
      reporter.say(why_silent(setup, request.command.front(), error));
    } else if (reporter.listening()) {
      report(setup, watch, reporter);
    }
    if (setup.options.discover) write_space_file(request, watch, reporter);
  } catch (const std::exception& error) {
    reporter.say(std::string("contextune: ") + error.what() + "\n");
  }
  return status;
}

int run_proof(const RunRequest& request, const RunSetup& setup) {
  if (setup.options.disable || setup.options.discover)
    throw Error("--prove compares tuned runs, and --disable and --discover tune nothing");
  Reporter reporter(setup.options.report, setup.options.quiet, request.progress);
  switch_colours(reporter.has_colours(request.colour));
  return prove(request, setup, reporter);
}

int run(const RunRequest& request) {
  const RunSetup setup = prepare_run(request);
  if (!setup.options.discover && !request.space_out.empty())
    throw Error("--space-out names the file that --discover writes, and there is no --discover");
  if (setup.options.discover && !request.space_out.empty() &&
      std::filesystem::exists(request.space_out)) {
    throw Error(request.space_out +
                " is there already and is not overwritten; give another name "
                "with --space-out");
  }
  if (!setup.options.disable) require_possible(setup);
  if (request.prove > 0) end_like(run_proof(request, setup));
  int status = 0;
  {
    Reporter reporter(setup.options.report, setup.options.quiet, request.progress);
    switch_colours(reporter.has_colours(request.colour));
    if (!setup.options.disable) {
      for (const std::string& doubt :
           pins_unknown_to_store(setup.options.force, folder_of_store(setup.options)))
        reporter.say("contextune: " + doubt + "\n");
    }
    RunWatch watch(setup.log_folder, setup.run);
    Program program(request.command,
                    request.num_ranks > 0
                        ? environments_of_ranks(setup.environment, request.num_ranks)
                        : std::vector<Environment>{setup.environment});
    if (request.kill_on_failure) program.end_all_on_failure(seconds_until_killed);
    if (program.start_error() != 0) {
      std::cerr << start_failure(request.command.front(), program.start_error()) << std::flush;
      return exit_status_of_start_error(program.start_error());
    }
    close_all_but(reporter.descriptors());
    if (setup.options.disable) {
      status = program.wait({});
    } else {
      status = follow(program, setup, request, watch, reporter);
    }
  }
  end_like(status);
}

}  // namespace

int answer(const RunRequest& request) {
  try {
    return run(request);
  } catch (const std::exception& error) {
    std::cerr << "contextune run: " << error.what() << std::endl;
    return run_failed;
  }
}

}  // namespace contextune::cli

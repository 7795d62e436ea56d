#include <gnu/libc-version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <contextune/error.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "cli/setup/environment.hpp"
#include "cli/setup/findings.hpp"
#include "cli/setup/memory_limits.hpp"
#include "cli/setup/run_setup.hpp"
#include "cli/store/store_folder.hpp"
#include "core/value/option_table.hpp"
#include "gpu/clock/cupti_library.hpp"
#include "log/log_folder.hpp"
#include "log/logfmt.hpp"
#include "store/folder.hpp"

namespace contextune::cli {
namespace {

using Verdict = Finding::Verdict;

constexpr int least_glibc_minor = 34;  // of glibc 2

// Variables of ours that are no options.
constexpr std::array<std::string_view, 3> other_variables = {
    "CONTEXTUNE_RUN_ID", "CONTEXTUNE_NVTX_CHAIN", "CONTEXTUNE_SECRET"};

// The prefix of variables that a tool sets in the programs that it starts.
struct ToolSign {
  std::string_view prefix;
  std::string_view tool;
};
constexpr std::array<ToolSign, 5> tool_signs = {{
    {"CUDA_INJECTION64_PATH=", "A library that the driver injects"},
    {"NSYS_", "Nsight Systems"},
    {"NV_NSIGHT_INJECTION_", "Nsight Compute"},
    {"NV_SANITIZER_", "compute-sanitizer"},
    {"CUPTI_", "A CUPTI setting"},
}};

void examine_c_library(Findings& findings) {
  const std::string_view version = gnu_get_libc_version();
  int minor = 0;
  const std::size_t dot = version.find('.');
  if (version.starts_with("2.") && dot != std::string_view::npos) {
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), minor);
  }
  const bool fits = minor >= least_glibc_minor;
  findings.push_back({fits ? Verdict::Good : Verdict::Missing, "glibc",
                      std::string(version) + (fits ? "" : "; 2.34 or later is needed")});
}

void examine_own_libraries(Findings& findings) {
  try {
    const std::string preload = find_preload_library();
    const std::filesystem::path core =
        std::filesystem::path(preload).parent_path() / "libcontextune.so";
    std::error_code error;
    if (std::filesystem::exists(core, error)) {
      findings.push_back({Verdict::Good, "libraries", preload});
    } else {
      findings.push_back(
          {Verdict::Missing, "libraries",
           core.string() + " is not there; build the whole project, or install it again"});
    }
    Environment scratch;
    add_preload(scratch, preload);
  } catch (const Error& error) {
    findings.push_back({Verdict::Missing, "libraries", error.what()});
  }
}

void examine_preload(const Environment& environment, Findings& findings) {
  if (const char* users = environment.find("LD_PRELOAD"); users != nullptr && *users != '\0') {
    findings.push_back({Verdict::Note, "LD_PRELOAD",
                        log::printable(users) +
                            ": kept, contextune's is loaded behind it; a library that "
                            "replaces dlsym as well may hide the driver from contextune"});
  }
  if (const char* nvtx = environment.find("NVTX_INJECTION64_PATH");
      nvtx != nullptr && *nvtx != '\0') {
    std::error_code error;
    const bool there = std::filesystem::exists(nvtx, error);
    findings.push_back({Verdict::Note, "NVTX",
                        std::string("NVTX_INJECTION64_PATH is ") + log::printable(nvtx) +
                            (there ? ": started first, its callbacks stay in force"
                                   : ", which is not there: it is passed over")});
  } else {
    findings.push_back(
        {Verdict::Good, "NVTX",
         "ranges are seen through NVTX_INJECTION64_PATH, which `contextune run` sets"});
  }
}

void examine_tools(const Environment& environment, Findings& findings) {
  std::vector<std::string_view> seen;
  for (const std::string& entry : environment.entries()) {
    for (const ToolSign& sign : tool_signs) {
      if (!entry.starts_with(sign.prefix)) continue;
      if (std::ranges::find(seen, sign.tool) != seen.end()) continue;
      seen.push_back(sign.tool);
      findings.push_back({Verdict::Note, "profiler",
                          std::string(sign.tool) + " is set up in this environment (" +
                              log::printable(entry.substr(0, entry.find('='))) +
                              "): if it uses CUPTI, launches are timed with CUDA events"});
    }
  }
  if (const std::string tool = gpu::profiler_in_process(); !tool.empty() && seen.empty()) {
    findings.push_back(
        {Verdict::Note, "profiler", tool + " is active here: launches are timed with CUDA events"});
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("TracerPid:") || line.ends_with("\t0")) continue;
    findings.push_back({Verdict::Note, "debugger",
                        "this process is being traced: programs run, but "
                        "figures taken under a debugger mean little"});
  }
}

// Programs that are started from here inherit the filter.
void examine_filter(Findings& findings) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Seccomp:") || line.ends_with("\t0")) continue;
    findings.push_back({Verdict::Note, "seccomp",
                        "a filter of system calls is in force here, as in a container: contextune "
                        "does without the calls that it refuses with an error. Where it kills or "
                        "traps, the limits (src/intercept/LIMITS.md of contextune's documentation) "
                        "say which calls it has to let pass"});
  }
}

// Why a process that is tuned would not write there; empty where the folder is still to be made.
std::string why_not_trusted(const std::string& log_dir) {
  const int folder = log::open_log_folder(log_dir);
  if (folder < 0) return errno == ENOENT ? std::string() : log::why_not_written(errno);
  close(folder);
  return {};
}

void examine_options(const Environment& environment, Findings& findings) {
  std::string faults;
  const Options options = options_of_environment(environment, faults);
  while (!faults.empty()) {
    const std::size_t end = faults.find('\n');
    findings.push_back({Verdict::Note, "options",
                        log::printable(faults.substr(0, end)) + "; the default is used"});
    faults.erase(0, end + 1);
  }
  const auto known = [](std::string_view name) {
    const auto table = option_table();
    return std::ranges::find(other_variables, name) != other_variables.end() ||
           std::ranges::any_of(table,
                               [&](const OptionInfo& option) { return option.variable == name; });
  };
  for (const std::string& entry : environment.entries()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!name.starts_with("CONTEXTUNE_") || known(name)) continue;
    findings.push_back({Verdict::Note, "options",
                        log::printable(name) + " means nothing to this version; `contextune run "
                                               "--help` lists the variables"});
  }
  if (options.disable) {
    findings.push_back({Verdict::Missing, "options",
                        "CONTEXTUNE_DISABLE is set: every program runs untouched; unset it"});
  }
  std::string why = why_not_writable(options.log_dir);
  if (why.empty()) why = why_not_trusted(options.log_dir);
  if (why.empty()) {
    findings.push_back({Verdict::Good, "log folder", options.log_dir + " can be written"});
  } else {
    findings.push_back({Verdict::Note, "log folder",
                        options.log_dir + " cannot be written (" + why +
                            "): programs are tuned, but nobody can tell what was done; set "
                            "CONTEXTUNE_LOG_DIR"});
  }
}

void examine_limits(Findings& findings) {
  const std::string why = memory_obstacle();
  if (!why.empty()) findings.push_back({Verdict::Missing, "memory", why});
}

void examine_store(const Environment& environment, Findings& findings) {
  const std::string folder = store_folder(environment);
  std::string why = folder.empty() ? "nothing names a folder" : "";
  try {
    if (!folder.empty() && !store::Folder::open(folder, store::Trust::Own)) {
      why = why_not_writable(folder);
    } else if (!folder.empty() && access(folder.c_str(), W_OK | X_OK) != 0) {
      why = std::strerror(errno);
    }
  } catch (const Error& error) {
    why = error.what();
  }
  if (why.empty()) {
    findings.push_back({Verdict::Good, "store", folder + " can be written"});
  } else {
    findings.push_back({Verdict::Note, "store",
                        folder + " cannot be used (" + log::printable(why) +
                            "): every run tunes anew; set CONTEXTUNE_CACHE_DIR"});
  }
}

}  // namespace

void examine_surroundings(Findings& findings) {
  const Environment environment = Environment::of_this_process();
  examine_c_library(findings);
  examine_own_libraries(findings);
  examine_preload(environment, findings);
  examine_tools(environment, findings);
  examine_options(environment, findings);
  examine_store(environment, findings);
  examine_limits(findings);
  examine_filter(findings);
}

}  // namespace contextune::cli

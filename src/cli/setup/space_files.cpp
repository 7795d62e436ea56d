#include "cli/setup/space_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <contextune/error.hpp>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "cli/setup/findings.hpp"
#include "cli/words/text.hpp"
#include "core/value/take_until.hpp"
#include "log/logfmt.hpp"
#include "space/starter_file.hpp"

namespace contextune::cli {
namespace {

constexpr const char* usual_name = "contextune.lua";

// Where no GPU can be asked, a file is judged for one of this size.
DeviceFacts assumed_device() {
  DeviceFacts facts;
  facts.name = "a GPU of compute capability 9.0";
  facts.num_sms = 132;
  facts.compute_capability = 90;
  facts.max_threads_per_block = 1024;
  facts.max_threads_per_sm = 2048;
  facts.max_shared_bytes = std::size_t{227} * 1024;
  facts.max_shared_bytes_per_sm = std::size_t{228} * 1024;
  facts.registers_per_sm = 65536;
  facts.l2_bytes = std::size_t{50} * 1024 * 1024;
  return facts;
}

// The log has a space file's words for types; a starter file is made from those of C++.
std::string_view type_of_word(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> types = {{
      {"i8", "signed char"},
      {"u8", "unsigned char"},
      {"i16", "short"},
      {"u16", "unsigned short"},
      {"i32", "int"},
      {"u32", "unsigned int"},
      {"i64", "long"},
      {"u64", "unsigned long"},
      {"f32", "float"},
      {"f64", "double"},
      {"ptr", "void*"},
  }};
  for (const auto& [known, type] : types) {
    if (known == word) return type;
  }
  return "struct";
}

std::array<std::uint32_t, 3> extent_of(const std::string& text) {
  std::array<std::uint32_t, 3> extent{1, 1, 1};
  std::sscanf(text.c_str(), "%ux%ux%u", &extent[0], &extent[1], &extent[2]);
  return extent;
}

space::DiscoveredKernel discovered(const log::KernelReport& report, double total_seconds) {
  space::DiscoveredKernel kernel;
  kernel.kernel = report.name;
  std::string_view words = report.params;
  while (!words.empty()) {
    kernel.parameters.append(kernel.num_arguments++ > 0 ? ", " : "");
    kernel.parameters.append(type_of_word(take_until(words, ' ')));
  }
  kernel.launches = report.launches;
  kernel.seconds = std::isfinite(report.seconds) ? report.seconds : 0;
  kernel.share = total_seconds > 0 ? kernel.seconds / total_seconds : 0;
  kernel.grid = extent_of(report.grid);
  kernel.block = extent_of(report.block);
  kernel.shared_bytes = static_cast<std::uint32_t>(report.shared_bytes);
  kernel.registers = static_cast<int>(report.registers);
  return kernel;
}

std::vector<space::DiscoveredKernel> all_kernels(const std::vector<log::ProcessReport>& processes) {
  std::vector<log::KernelReport> reports;
  double total = 0;
  for (const log::ProcessReport& process : processes) {
    for (const log::RegionReport& region : process.regions) {
      for (const log::KernelReport& kernel : region.kernels) {
        if (std::isfinite(kernel.seconds)) total += kernel.seconds;
        reports.push_back(kernel);
      }
    }
  }
  std::vector<space::DiscoveredKernel> kernels;
  kernels.reserve(reports.size());
  for (const log::KernelReport& report : reports) kernels.push_back(discovered(report, total));
  return kernels;
}

// Writes a new file; returns errno.
int write_new_file(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  int error = 0;
  while (!text.empty() && error == 0) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno != EINTR) error = errno;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

SpaceCheck check_space_file(const std::string& path) {
  try {
    const std::optional<DeviceFacts> present = first_device();
    const DeviceFacts device = present ? *present : assumed_device();
    const space::SpaceFile file = space::SpaceFile::load(path, device);
    return {true, log::printable(path) + ": " +
                      count_text(file.rules().size(), "kernel", "kernels") + ", " +
                      count_text(file.collectives().size(), "collective", "collectives") +
                      ", judged for " + log::printable(device.name) +
                      (present ? "" : " (there is none here)")};
  } catch (const Error& error) {
    return {false, log::printable(error.what())};
  }
}

SpaceFiles load_space_files(const std::string& paths) {
  SpaceFiles spaces;
  std::size_t start = 0;
  while (start < paths.size()) {
    const std::size_t end = std::min(paths.find(':', start), paths.size());
    const std::string path = paths.substr(start, end - start);
    start = end + 1;
    try {
      if (!path.empty()) spaces.files.push_back(space::SpaceFile::load(path, assumed_device()));
    } catch (const space::DeviceDependentError&) {
      spaces.all_known = false;
    }
  }
  return spaces;
}

std::string write_starter_file(const std::vector<log::ProcessReport>& processes,
                               const std::string& path) {
  const std::vector<space::DiscoveredKernel> kernels = all_kernels(processes);
  if (kernels.empty()) return "no space file was written, as no kernel was seen in a region";
  const std::string file = path.empty() ? usual_name : path;
  const int error = write_new_file(file, space::write_starter(kernels));
  if (error == EEXIST) {
    return file + " is there already and was not overwritten; --space-out gives another name";
  }
  if (error != 0) return "cannot write " + file + ": " + std::strerror(error);
  return "wrote " + file + ": fill in what to try, then run with --space " + file;
}

}  // namespace contextune::cli

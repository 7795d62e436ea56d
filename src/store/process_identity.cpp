#include "store/process_identity.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "store/descriptor.hpp"

namespace contextune::store {
namespace {

constexpr std::size_t most_proc_bytes = 4096;

std::optional<std::string> text_of_file(const std::string& path) {
  const Descriptor file(AT_FDCWD, path, O_RDONLY);
  std::string text;
  if (!file || read_all(file.number(), most_proc_bytes, text) != 0) return std::nullopt;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

struct Standing {
  char state = '?';
  std::uint64_t start_ticks = 0;
};

// /proc/<pid>/stat: "pid (name) state ... start", where the name may hold anything.
std::optional<Standing> standing_of(const std::string& process) {
  const auto text = text_of_file("/proc/" + process + "/stat");
  const std::size_t end = text ? text->rfind(") ") : std::string::npos;
  if (end == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(end + 2);
  Standing standing;
  if (!rest.empty()) standing.state = rest.front();
  constexpr int fields_before_start = 19;
  for (int i = 0; i < fields_before_start; ++i) {
    const std::size_t blank = rest.find(' ');
    if (blank == rest.npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  (void)std::from_chars(rest.data(), rest.data() + rest.size(), standing.start_ticks);
  return standing;
}

std::string link_text(const char* path) {
  std::array<char, 256> text{};
  const ssize_t size = ::readlink(path, text.data(), text.size());
  return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
}

}  // namespace

ProcessIdentity ProcessIdentity::of_this_process() {
  ProcessIdentity identity;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) identity.host = host.data();
  identity.boot = text_of_file("/proc/sys/kernel/random/boot_id").value_or("");
  identity.pid_namespace = link_text("/proc/self/ns/pid");
  identity.pid = ::getpid();
  if (const auto standing = standing_of("self")) identity.start_ticks = standing->start_ticks;
  return identity;
}

std::string ProcessIdentity::to_string() const {
  return "process " + std::to_string(pid) + " on " + (host.empty() ? "an unknown host" : host);
}

Presence presence_of(const ProcessIdentity& process) {
  const ProcessIdentity here = ProcessIdentity::of_this_process();
  if (process.boot.empty() || process.boot != here.boot) return Presence::Unknown;
  if (process.pid_namespace.empty() || process.pid_namespace != here.pid_namespace)
    return Presence::Unknown;
  const auto standing = standing_of(std::to_string(process.pid));
  if (!standing) {
    // A /proc that hides other users' processes says the same of one that runs.
    return ::access("/proc/self/stat", R_OK) == 0 && ::access("/proc/1/stat", R_OK) == 0
               ? Presence::Gone
               : Presence::Unknown;
  }
  const bool ended = standing->state == 'Z' || standing->state == 'X';
  return ended || standing->start_ticks != process.start_ticks ? Presence::Gone : Presence::Alive;
}

}  // namespace contextune::store

#include "cli/setup/program_file.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>

#include "gpu/driver/byte_source.hpp"

namespace contextune::cli {
namespace {

constexpr int most_interpreters = 4;  // as the kernel
constexpr std::size_t most_headers = 256;

#if defined(__x86_64__)
constexpr unsigned own_machine = EM_X86_64;
constexpr std::string_view own_machine_name = "x86-64";
#elif defined(__aarch64__)
constexpr unsigned own_machine = EM_AARCH64;
constexpr std::string_view own_machine_name = "AArch64";
#else
#error "contextune knows x86-64 and AArch64"
#endif

bool runnable(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// The words of a script's first line behind "#!".
std::vector<std::string> interpreter_of(const gpu::FileSource& file) {
  std::array<char, 256> head{};
  std::string_view line(head.data(), file.read_some(0, head.data(), head.size()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  std::istringstream words{std::string(line)};
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  return result;
}

void look_at_rights(const std::string& path, std::vector<std::string>& obstacles) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return;
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  const bool capable = getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  if (other_user || other_group || capable) {
    obstacles.push_back(path + " runs with other rights (" +
                        (capable ? "file capabilities" : "setuid or setgid") +
                        "), for which the loader ignores LD_PRELOAD; run a copy without them");
  }
}

void look_at_headers(const std::string& path, const gpu::FileSource& file, const Elf64_Ehdr& header,
                     std::vector<std::string>& obstacles) {
  std::string loader;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, most_headers); ++i) {
    const auto part = file.read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!part) break;
    if (part->p_type != PT_INTERP || part->p_filesz == 0 || part->p_filesz > 4096) continue;
    loader.resize(part->p_filesz);
    loader.resize(file.read_some(part->p_offset, loader.data(), loader.size()));
    loader.resize(std::strlen(loader.c_str()));
  }
  if (loader.empty()) {
    obstacles.push_back(path +
                        " is statically linked, so no library can be preloaded into it; "
                        "link it dynamically, or link contextune::contextune");
  } else if (loader.find("ld-musl") != std::string::npos) {
    obstacles.push_back(path + " uses the C library musl (" + loader +
                        "); contextune needs glibc 2.34 or later");
  }
}

void look_at_binary(const std::string& path, const gpu::FileSource& file,
                    std::vector<std::string>& obstacles) {
  const auto header = file.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    obstacles.push_back(path +
                        " is neither an ELF program nor a script that names its interpreter");
  } else if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != own_machine) {
    obstacles.push_back(path + " is not a 64-bit " + std::string(own_machine_name) +
                        " program, which contextune is built for");
  } else {
    look_at_headers(path, file, *header, obstacles);
  }
}

}  // namespace

std::optional<std::string> find_program(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    return runnable(program) ? std::optional(program) : std::nullopt;
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  while (!program.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder(end == 0 ? "." : rest.substr(0, end));
    if (runnable(folder + "/" + program)) return folder + "/" + program;
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  return std::nullopt;
}

std::vector<std::string> preload_obstacles(const std::string& program) {
  std::vector<std::string> obstacles;
  std::optional<std::string> path = find_program(program);
  if (!path) return {program + " was not found, or is not a program"};
  for (int depth = 0; path && depth < most_interpreters; ++depth) {
    const gpu::FileSource file(*path);
    if (!file.is_open()) {
      obstacles.push_back(*path + " cannot be read, so it cannot be judged");
      break;
    }
    std::vector<std::string> interpreter = interpreter_of(file);
    if (interpreter.empty()) {
      look_at_rights(*path, obstacles);
      look_at_binary(*path, file, obstacles);
      break;
    }
    // "#!/usr/bin/env python3" runs python3.
    const bool through_env = interpreter[0].ends_with("/env") && interpreter.size() > 1 &&
                             !interpreter[1].starts_with('-');
    const std::string next = interpreter[through_env ? 1 : 0];
    const std::string script = *path;
    path = find_program(next);
    if (!path) obstacles.push_back(script + " names an interpreter that was not found: " + next);
  }
  return obstacles;
}

}  // namespace contextune::cli

#include "gpu/driver/source_build.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <contextune/error.hpp>

#include "gpu/driver/detached_process.hpp"
#include "gpu/driver/loaded_library.hpp"

namespace contextune::gpu {
namespace {

// A build that takes longer has met a compiler that hangs.
constexpr double longest_build_seconds = 300;

// Then the bytes of image and PTX, the symbol, a newline, the image, the PTX.
constexpr std::string_view reply_begin = "contextune kernel 2 ";

/// The command is installed with the library that this code is in.
std::string find_command(const std::string& source) {
  namespace fs = std::filesystem;
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&find_command), &self) == 0) {
    throw Error(source + ": cannot be built: the folder of contextune's library is not known");
  }
  std::error_code error;
  const fs::path folder = fs::absolute(self.dli_fname, error).parent_path();
  // bin beside lib or lib64, or lib/x86_64-linux-gnu
  for (const char* place : {"../bin/contextune", "../../bin/contextune"}) {
    const fs::path path = (folder / place).lexically_normal();
    if (fs::exists(path, error)) return path.string();
  }
  throw Error(source + ": cannot be built: the command `contextune` is not in " +
              (folder / "../bin").lexically_normal().string() +
              "; install it with the library, or give a cubin instead of a source");
}

// The pip packages beside the libraries that this process has loaded, which the command has not.
void add_library_folders(std::vector<std::string>& environment) {
  constexpr std::string_view name = "LD_LIBRARY_PATH=";
  const auto known = std::ranges::find_if(
      environment, [&](const std::string& variable) { return variable.starts_with(name); });
  std::string path = known == environment.end() ? std::string(name) : *known;
  for (const std::string& folder : cuda_library_folders("cuda_nvrtc")) {
    path += (path.size() == name.size() ? "" : ":") + folder;
  }
  if (known == environment.end()) {
    environment.push_back(path);
  } else {
    *known = path;
  }
}

}  // namespace

std::string build_reply(const CompiledSource& compiled) {
  return std::string(reply_begin) + std::to_string(compiled.image.size()) + " " +
         std::to_string(compiled.ptx.size()) + " " + compiled.symbol + "\n" + compiled.image +
         compiled.ptx;
}

CompiledSource build_source(const std::string& path, const std::vector<std::string>& options,
                            const std::string& name_expression, int compute_capability,
                            std::vector<std::string> environment) {
  std::vector<std::string> command{
      find_command(path), "build", path, name_expression, std::to_string(compute_capability), "--"};
  for (const std::string& folder : cuda_library_folders("cuda_runtime")) {
    command.push_back("--include-path=" + folder + "/../include");
  }
  command.insert(command.end(), options.begin(), options.end());
  add_library_folders(environment);
  const std::string reply = output_of_detached(command, environment, longest_build_seconds);
  const std::string cut = path + ": cannot be built: `contextune build` ended in mid-answer";
  if (!reply.starts_with(reply_begin)) throw Error(reply.empty() ? cut : reply);
  std::istringstream words(reply.substr(reply_begin.size(), reply.find('\n') - reply_begin.size()));
  std::size_t image_bytes = 0;
  std::size_t ptx_bytes = 0;
  CompiledSource compiled;
  words >> image_bytes >> ptx_bytes >> compiled.symbol;
  const std::size_t begin = std::min(reply.find('\n'), reply.size() - 1) + 1;
  if (!words || image_bytes > reply.size() - begin) throw Error(cut);
  compiled.image = reply.substr(begin, image_bytes);
  compiled.ptx = reply.substr(begin + image_bytes);
  if (build_reply(compiled) != reply) throw Error(cut);
  return compiled;
}

}  // namespace contextune::gpu

#include "space/launch_result.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <system_error>

#include "space/kernel_name.hpp"
#include "space/lua_state.hpp"

namespace contextune::space {
namespace {

using Extent = std::array<std::uint32_t, 3>;

std::uint64_t volume(const Extent& extent) {
  return std::uint64_t{extent[0]} * extent[1] * extent[2];
}

std::string shown(const Extent& extent) {
  return std::to_string(extent[0]) + " x " + std::to_string(extent[1]) + " x " +
         std::to_string(extent[2]);
}

/// The edited extent. Dimensions that were not written come from the launch: that is a read.
Extent merged(const ExtentEdit& edit, const Extent& launch, bool& read) {
  if (!edit.all()) read = true;
  Extent result = launch;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (edit.written[i]) result[i] = edit.value[i];
  }
  return result;
}

void finish_block(Scene& scene, LaunchChange& change) {
  const ExtentEdit& edit = scene.edit.block;
  if (!edit.any()) return;
  change.block = merged(edit, scene.launch->block, scene.reads.block);
  const int most = scene.device.max_threads_per_block;
  if (most > 0 && volume(*change.block) > static_cast<std::uint64_t>(most)) {
    throw ScriptFault{edit.line, "launch.block = " + shown(*change.block) + " is more than the " +
                                     std::to_string(most) +
                                     " threads of a block; rule such a config out with prune"};
  }
}

void finish_grid(Scene& scene, LaunchChange& change) {
  if (scene.edit.grid.any()) {
    change.grid = merged(scene.edit.grid, scene.launch->grid, scene.reads.grid);
  }
}

void finish_cluster(Scene& scene, LaunchChange& change) {
  const ExtentEdit& edit = scene.edit.cluster;
  if (!edit.any()) return;
  Extent cluster = merged(edit, scene.launch->cluster, scene.reads.shape);
  // A launch without clusters says 0: one block, in the dimensions that were not written.
  for (std::uint32_t& size : cluster) size = std::max<std::uint32_t>(size, 1);
  change.cluster = cluster;
  if (volume(cluster) > 16) {
    throw ScriptFault{edit.line, "launch.cluster = " + shown(cluster) +
                                     " is more than 16 blocks; rule such a config out with prune"};
  }
  if (!change.grid) scene.reads.grid = true;
  const Extent grid = change.grid.value_or(scene.launch->grid);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    if (grid[i] % cluster[i] != 0) {
      throw ScriptFault{std::max(edit.line, scene.edit.grid.line),
                        "the grid (" + shown(grid) + ") is no multiple of launch.cluster = " +
                            shown(cluster) + "; round launch.grid up to one"};
    }
  }
}

void finish_shared(Scene& scene, LaunchChange& change) {
  change.shared_bytes = scene.edit.shared_bytes;
  const std::size_t most = scene.device.max_shared_bytes;
  if (change.shared_bytes && most > 0 && *change.shared_bytes > most) {
    throw ScriptFault{scene.edit.shared_line,
                      "launch.shared_bytes = " + std::to_string(*change.shared_bytes) +
                          " is more than the " + std::to_string(most) +
                          " bytes of a block; rule such a config out with prune"};
  }
}

/// An absolute path to a file that is there.
std::string existing_file(const std::string& written, const char* what,
                          const std::filesystem::path& folder, int line) {
  const std::filesystem::path path = (folder / written).lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw ScriptFault{line, std::string(what) + " = \"" + written + "\": there is no file " +
                                path.string() + ", or it is a folder, pipe or device" +
                                "; give a path relative to the space file, or an absolute one"};
  }
  return path.string();
}

void finish_code(Scene& scene, LaunchChange& change, const std::filesystem::path& folder) {
  LaunchEdit& edit = scene.edit;
  if (!edit.module.empty() && !edit.source.empty()) {
    throw ScriptFault{edit.code_line,
                      "launch.module and launch.source are both written; a kernel comes from one "
                      "of them"};
  }
  if (edit.source.empty() && (!edit.defines.empty() || !edit.options.empty())) {
    throw ScriptFault{edit.code_line,
                      "launch.defines and launch.options are for building launch.source, which is "
                      "not written; write launch.source = \"file.cu\""};
  }
  change.function = edit.function;
  if (!edit.module.empty()) {
    change.module = existing_file(edit.module, "launch.module", folder, edit.code_line);
  }
  if (!edit.source.empty()) {
    change.source = existing_file(edit.source, "launch.source", folder, edit.code_line);
    std::sort(edit.defines.begin(), edit.defines.end());
    for (const auto& [name, value] : edit.defines) {
      change.build_options.push_back("-D" + name + "=" + value);
    }
    change.build_options.insert(change.build_options.end(), edit.options.begin(),
                                edit.options.end());
  }
  const bool elsewhere = !change.module.empty() || !change.source.empty();
  if (elsewhere && change.function.empty()) change.function = std::string(scene.kernel);
  if (!elsewhere && normalised_name(change.function) == normalised_name(scene.kernel)) {
    change.function.clear();
  }
}

}  // namespace

LaunchChange finish_launch(Scene& scene, const std::filesystem::path& folder) {
  LaunchChange change;
  finish_block(scene, change);
  finish_grid(scene, change);
  finish_cluster(scene, change);
  finish_shared(scene, change);
  finish_code(scene, change, folder);
  return change;
}

}  // namespace contextune::space

#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "space/declaration.hpp"
#include "space/lua_state.hpp"
#include "space/scene.hpp"

namespace contextune::space {

/// A space file that was run once: its Lua state, the objects that its functions are given, and
/// what it declares. Rules of one file share it; `lock` it around each call.
class Script {
 public:
  /// Runs the text. @throws Error that names path and line
  Script(std::string_view text, std::string path, const DeviceFacts& device);

  [[nodiscard]] const std::vector<KernelDeclaration>& kernels() const { return kernels_; }
  [[nodiscard]] const std::vector<CollectiveDeclaration>& collectives() const {
    return collectives_;
  }
  [[nodiscard]] const std::vector<ChoiceDeclaration>& choices() const { return choices_; }
  [[nodiscard]] std::filesystem::path folder() const;
  [[nodiscard]] const std::string& text() const { return text_; }

  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  [[nodiscard]] Scene& scene() { return scene_; }
  [[nodiscard]] LuaState& state() { return state_; }

  /// "file.lua:3"; without the number if the line is not known.
  [[nodiscard]] std::string place(int line) const;

  /// @throws Error "file.lua:3: kernel 'x': text", with a remedy if the text has none
  [[noreturn]] void fail(int line, std::string_view who, std::string_view text) const;

 private:
  void run(std::string_view text);
  void collect();
  void collect_one(int index, std::vector<std::pair<std::string, int>>& seen);

  std::string path_;
  std::string text_;
  std::mutex mutex_;
  Scene scene_;
  LuaState state_;  // after the scene, to which its objects point
  std::vector<KernelDeclaration> kernels_;
  std::vector<CollectiveDeclaration> collectives_;
  std::vector<ChoiceDeclaration> choices_;
};

}  // namespace contextune::space

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/error.hpp>

#include "space/space_file.hpp"

namespace contextune::space::test {

/// A folder of its own that is removed with its scope.
class Folder {
 public:
  Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder();

  /// Writes a file that may be trusted, and returns its path.
  std::string write(const std::string& name, std::string_view text) const;
  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A device like an H200.
[[nodiscard]] DeviceFacts device();

/// A launch with arguments of its own.
class TestLaunch {
 public:
  TestLaunch& grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1);
  TestLaunch& block(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1);
  TestLaunch& shared(std::uint32_t bytes);
  TestLaunch& cluster(std::uint32_t x);
  TestLaunch& parameters(std::string_view list);

  template <class Number>
  TestLaunch& argument(Number value) {
    return bytes({reinterpret_cast<const char*>(&value), sizeof value});
  }
  TestLaunch& bytes(std::string_view raw);

  [[nodiscard]] const LaunchView& view();

 private:
  LaunchView view_;
  std::vector<std::string> values_;
  std::vector<const void*> pointers_;
  std::vector<ArgumentLayout> layouts_;
};

/// (int n, float a, float* x, float* y) with grid 1024 and block 256.
[[nodiscard]] TestLaunch saxpy_launch(int n = 1 << 20);

/// What the error says that `action` throws; "" if it throws none.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// What loading the text says, with "FILE" for the path.
[[nodiscard]] std::string load_error(std::string_view text);

/// The rule of a text that declares one kernel.
[[nodiscard]] std::shared_ptr<KernelRule> one_rule(std::string_view text);

/// What the call of one function of the rule says; "" if nothing.
[[nodiscard]] std::string key_error(std::string_view text, TestLaunch launch = saxpy_launch());
[[nodiscard]] std::string configs_error(std::string_view text, TestLaunch launch = saxpy_launch());
[[nodiscard]] std::string apply_error(std::string_view text, TestLaunch launch = saxpy_launch());

[[nodiscard]] bool contains(std::string_view text, std::string_view part);

/// "grid block shape everything arg0 arg2": what was read.
[[nodiscard]] std::string to_string(const LaunchReads& reads);

/// A kernel `k` whose space is { block = {64} } and whose apply has this body.
[[nodiscard]] std::string with_apply(std::string_view body);

}  // namespace contextune::space::test

#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "space/declaration.hpp"
#include "space/device_dependent_error.hpp"

namespace contextune::space {

class Script;
class SpaceRule;

/// The declarations of a space file, for one device: rules for kernels, configs for collectives,
/// and which implementations of a choice may run.
///
/// A space file is a Lua program that runs in a sandbox. It reaches no file, no clock and no other
/// program, and each call of it is bounded in steps and memory. It is run once, when it is loaded;
/// `key`, `prune` and `apply` are called for launches. Rules stay valid when the SpaceFile is gone.
/// Rules of one file may be called from any thread.
class SpaceFile {
 public:
  /// Reads and runs a file that must be regular, owned by the user or root, and writable by nobody
  /// else.
  /// @throws Error "file.lua:3: kernel 'x': what is wrong; what to do"; a DeviceDependentError if
  /// the device may be why
  [[nodiscard]] static SpaceFile load(const std::string& path, const DeviceFacts& device);

  /// Runs a text as if it had been read from `path`. @throws Error as `load`
  [[nodiscard]] static SpaceFile parse(std::string_view text, const std::string& path,
                                       const DeviceFacts& device);

  /// In the order of declaration.
  [[nodiscard]] std::span<const std::shared_ptr<KernelRule>> rules() const { return rules_; }
  /// The kernels as declared, in the order of rules().
  [[nodiscard]] std::span<const KernelDeclaration> kernels() const;
  [[nodiscard]] std::span<const CollectiveDeclaration> collectives() const;
  [[nodiscard]] std::span<const ChoiceDeclaration> choices() const;
  /// Whether it asked for the device as it was loaded, so that it may declare something else for
  /// another one.
  [[nodiscard]] bool asked_for_device() const;

  /// The rule for a kernel, by its demangled name (with or without return type and parameters) or
  /// its symbol; null if there is none. Blanks and the types of numbers in template arguments do
  /// not count: "gemm<64, 64>" is "void gemm<(int)64, (int)64>(float*)".
  [[nodiscard]] std::shared_ptr<KernelRule> find(std::string_view name,
                                                 std::string_view symbol = {}) const;

 private:
  explicit SpaceFile(std::shared_ptr<Script> script);

  std::shared_ptr<Script> script_;
  std::vector<std::shared_ptr<KernelRule>> rules_;
  std::vector<std::string> names_;  ///< of `rules_`, normalised
};

}  // namespace contextune::space

#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "gpu/image/module_variables.hpp"

namespace contextune::gpu {

/// Kernels from files that a rule names: cubins, fatbins, PTX, and CUDA C++ built with NVRTC.
/// Every file is loaded and every build made once; nothing is ever unloaded, since winners stay in
/// use. Any thread, but a call may take seconds (a build), and others wait for it: not for a thread
/// that is about to launch. Needs a current context.
class KernelCode {
 public:
  /// @param images is told what is loaded, for whoever asks what its kernels do; null: nobody does
  explicit KernelCode(const Driver& driver, ModuleVariables* images = nullptr)
      : driver_(driver), images_(images) {}
  KernelCode(const KernelCode&) = delete;
  KernelCode& operator=(const KernelCode&) = delete;

  /// @param name symbol or demangled name; empty: the file's only kernel
  /// @return a handle to launch, in every context
  /// @throws Error if the file cannot be read or loaded, or has no such kernel
  [[nodiscard]] CUfunction from_file(const std::string& path, std::string_view name);

  /// Sets the environment that builds get; called before the first build.
  void set_environment(std::vector<std::string> variables) { environment_ = std::move(variables); }

  /// @param options         of NVRTC
  /// @param name_expression the kernel, as in C++: "saxpy", "tile<32, 8>"
  /// @throws Error if the source cannot be read or built; holds the compiler's first lines
  [[nodiscard]] CUfunction from_source(const std::string& path,
                                       const std::vector<std::string>& options,
                                       const std::string& name_expression);

 private:
  /// @param ptx that the image was made from; empty: it is the image's own affair
  [[nodiscard]] CUlibrary load(const std::string& image, const std::string& origin,
                               const std::string& ptx = {}) const;
  [[nodiscard]] CUfunction find(CUlibrary library, std::string_view name,
                                const std::string& origin) const;

  const Driver& driver_;
  ModuleVariables* const images_;
  std::vector<std::string> environment_;
  std::mutex mutex_;
  std::map<std::string, CUlibrary> files_;
  std::map<std::vector<std::string>, CUfunction> builds_;
};

}  // namespace contextune::gpu

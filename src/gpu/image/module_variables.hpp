#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "gpu/image/loaded_image.hpp"

namespace contextune::gpu {

/// Where a variable of a module is, in one context.
struct VariableRange {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  VariableKind kind = VariableKind::Device;
  std::string name;  ///< mangled
};

/// The things that the kernels of a module can use beside their arguments. A value; ranges are
/// valid until the module or library is unloaded.
struct ModuleUse {
  /// "": all of the following is known. Else a sentence that says why it is not.
  std::string unknown;
  std::vector<VariableRange> variables;  ///< all that exist, written to or not, sorted by name
  bool uses_printf = false;
  bool uses_malloc = false;
  bool launches_kernels = false;
};

/// The module-scope variables of the modules and libraries that the program loads. The driver finds
/// variables by name, also static ones, and lists none, so the names come from the loaded images.
/// Any thread. Nothing throws.
class ModuleVariables {
 public:
  explicit ModuleVariables(const Driver& driver) noexcept : driver_(driver) {}
  ModuleVariables(const ModuleVariables&) = delete;
  ModuleVariables& operator=(const ModuleVariables&) = delete;

  // After a load that succeeded, while the program is still in the call. A cubin takes some
  // microseconds, PTX a millisecond for each MiB, a fatbin the same whatever its size.
  void loaded(CUmodule module, const void* code) noexcept;
  /// @param ptx that machine code was made from, where that is known beside it
  void loaded(CUlibrary library, const void* code, const std::string& ptx = {}) noexcept;
  void loaded_from_file(CUmodule module, const char* path) noexcept;
  void loaded_from_file(CUlibrary library, const char* path) noexcept;
  /// After the program got a library's module, or a kernel's function, for the current context.
  void belongs(CUmodule module, CUlibrary library) noexcept;
  void belongs(CUfunction function, CUkernel kernel) noexcept;
  /// Whether that was said before, as far as is remembered.
  [[nodiscard]] bool is_known(CUfunction function, CUkernel kernel) const noexcept {
    return last_of(function).load(std::memory_order_relaxed) == both(function, kernel);
  }
  /// After the program got one of its kernels to launch, or, without one, the place of a variable:
  /// from then on its variables may be known to other modules' kernels.
  void used(CUmodule module, CUfunction kernel) noexcept;
  void used(CUlibrary library, CUkernel kernel) noexcept;
  // Before an unload.
  void unloads(CUmodule module) noexcept;
  void unloads(CUlibrary library) noexcept;
  /// Before a context is destroyed, or may be; null: one of them, not known which.
  void context_goes_away(CUcontext context) noexcept;

  /// The answer for the kernel's module, in this thread's current context. The first answer for a
  /// module may take milliseconds, later ones are kept. Never null.
  [[nodiscard]] std::shared_ptr<const ModuleUse> of(const KernelIdentity& kernel) noexcept;

  /// The CUmodule or CUlibrary that the program loaded the kernel with; null: it is not known.
  [[nodiscard]] const void* owner_of(const KernelIdentity& kernel) noexcept;

  /// The image that the kernel was loaded from; null: it is not known.
  [[nodiscard]] std::shared_ptr<LoadedImage> image_of(const KernelIdentity& kernel);

  /// A module or library that was used, and its use in this thread's current context. A module or
  /// library that nobody used has no variables yet, or no kernel knows them; to ask would load it.
  struct UsedModule {
    const void* owner = nullptr;  ///< a CUmodule or CUlibrary; null: of some it is not known
    std::shared_ptr<const ModuleUse> use;
  };
  [[nodiscard]] std::vector<UsedModule> of_used() noexcept;

 private:
  static std::uint64_t both(CUfunction function, CUkernel kernel) noexcept {
    return reinterpret_cast<std::uint64_t>(function) * 0x9e3779b97f4a7c15ULL ^
           reinterpret_cast<std::uint64_t>(kernel);
  }
  std::atomic<std::uint64_t>& last_of(CUfunction function) const noexcept {
    const auto handle = reinterpret_cast<std::uint64_t>(function);
    return last_of_function_[handle / 16 % last_of_function_.size()];
  }

  /// A CUmodule or a CUlibrary; their addresses differ.
  using Handle = const void*;

  struct Loaded {
    std::shared_ptr<LoadedImage> image;  ///< null: what is lasting has not been asked about yet
    const void* lasting = nullptr;       ///< a fatbin that stays as it is
    CUcontext context = nullptr;         ///< that a module lives and dies with; null for a library
  };

  /// How a module or library was used first.
  struct Used {
    bool is_module = false;
    CUcontext context = nullptr;  ///< that a module lives and dies with; null for a library
    CUfunction kernel = nullptr;  ///< one of its kernels as the program launches it; null: none yet
  };

  /// @param make gives the image; not called where `code` says what it is
  template <typename Make>
  void remember(Handle handle, bool is_module, const void* code, Make make) noexcept;
  void forget(Handle handle) noexcept;
  /// Under the mutex.
  [[nodiscard]] Handle known_owner(const KernelIdentity& kernel);
  void note_use(Handle handle, bool is_module, CUfunction kernel) noexcept;
  [[nodiscard]] std::shared_ptr<const ModuleUse> of_used(Handle handle, const Used& used);
  /// The library that has the kernel of that function; null: none that is known.
  [[nodiscard]] CUlibrary library_of(const KernelIdentity& kernel);
  [[nodiscard]] ModuleUse find_out(const KernelIdentity& kernel);
  [[nodiscard]] CUresult find(const KernelIdentity& kernel, const char* name,
                              VariableRange& range) const noexcept;

  const Driver& driver_;
  std::mutex mutex_;
  std::map<Handle, Loaded> loaded_;
  std::map<CUmodule, CUlibrary> libraries_;  ///< of modules that belong to one
  std::map<CUfunction, CUlibrary> function_libraries_;
  /// Pairs of function and kernel that are in it, mixed. Emptied under the mutex.
  mutable std::array<std::atomic<std::uint64_t>, 64> last_of_function_{};
  std::map<std::pair<Handle, CUcontext>, std::shared_ptr<const ModuleUse>> answers_;
  std::map<Handle, Used> used_;
  bool lost_ = false;          ///< no memory: one that was used is not in `used_`
  std::uint64_t changes_ = 0;  ///< an answer begun before one is not kept
};

}  // namespace contextune::gpu

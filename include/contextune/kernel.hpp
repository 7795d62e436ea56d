#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/config_space.hpp>
#include <contextune/device.hpp>
#include <contextune/dim3.hpp>
#include <contextune/kernel_name.hpp>
#include <contextune/key.hpp>
#include <contextune/key_words.hpp>
#include <contextune/unseen_size.hpp>

struct contextune_launch_view;
struct contextune_launch_change;

namespace contextune {

/// A launch as the program wrote it. Valid during the call that it is given to. It notes which of
/// its values are read, so that an answer is kept for all launches that agree in these, whatever
/// else differs.
class LaunchInfo {
 public:
  explicit LaunchInfo(contextune_launch_view& view) noexcept;

  [[nodiscard]] std::string_view kernel() const noexcept;  ///< demangled, without parameters
  [[nodiscard]] Dim3 grid() const noexcept;
  [[nodiscard]] Dim3 block() const noexcept;
  [[nodiscard]] Dim3 cluster() const noexcept;                ///< zeros: none asked for
  [[nodiscard]] std::uint32_t shared_bytes() const noexcept;  ///< dynamic shared memory
  [[nodiscard]] Device device() const noexcept;
  [[nodiscard]] std::size_t num_arguments() const noexcept;

  /// Value of kernel argument `index`, read as a T; a pointer or any trivially copyable type.
  /// @throws Error if there is no such argument, or it is not of T's size
  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T argument(std::size_t index) const {
    T value;
    std::memcpy(&value, bytes(index, sizeof(T)), sizeof(T));
    return value;
  }

 protected:
  [[nodiscard]] const void* bytes(std::size_t index, std::size_t size_bytes) const;
  contextune_launch_view* view_;
};

/// A launch that a config may change: reading gives what the program wrote, setting says what is to
/// be launched in its place.
class LaunchEdit : public LaunchInfo {
 public:
  LaunchEdit(contextune_launch_view& view, contextune_launch_change& change,
             std::vector<std::string>& texts) noexcept;

  LaunchEdit& set_grid(Dim3 grid) noexcept;
  LaunchEdit& set_block(Dim3 block) noexcept;
  LaunchEdit& set_cluster(Dim3 cluster) noexcept;
  LaunchEdit& set_shared_bytes(std::uint32_t size_bytes) noexcept;
  /// Another function with the same parameters, by demangled name without parameters or by symbol.
  /// It is of the same module, or of a cubin, fatbin or PTX file.
  LaunchEdit& set_function(std::string function, std::string module_file = {});
  /// A function built with NVRTC from a CUDA C++ file. `name` is the name expression.
  LaunchEdit& set_source(std::string source_file, std::string name,
                         std::vector<std::string> build_options);

 private:
  contextune_launch_change* change_;
  std::vector<std::string>* texts_;
};

/// The changes that may be made to the launches of one kernel, which the program makes with <<<>>>
/// or cuLaunchKernel. For programs that link contextune or run under it:
///
///     contextune::Kernel("saxpy_grid_stride")
///         .space(contextune::ConfigSpace().parameter("block", {64, 128, 256}).parameter("per_sm",
///         {1, 2})) .key([](const contextune::LaunchInfo& launch) { return contextune::Key{{"n",
///         launch.argument<int>(3)}}; }) .apply([](const contextune::Config& config,
///         contextune::LaunchEdit& launch) {
///           launch.set_block({std::uint32_t(config.get_int("block"))});
///           launch.set_grid({std::uint32_t(config.get_int("per_sm") * launch.device().num_sms)});
///         })
///         .declare();
///
/// Config 0 of the site is always the launch as the program wrote it; the configs of the space come
/// after it. The callables run on the thread that launches, one at a time for a kernel, and must
/// not call CUDA. Their exceptions go into the log, and the kernel keeps its own launch. Building a
/// Kernel is for one thread.
class Kernel {
 public:
  using Size = std::function<std::uint64_t(const LaunchInfo&)>;
  using Prune = std::function<bool(const Config&, const LaunchInfo&)>;
  using Apply = std::function<void(const Config&, LaunchEdit&)>;

  /// @param name demangled name without parameters, "gemm<64, 64>", or the symbol; see
  /// kernel_name()
  explicit Kernel(std::string name);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  Kernel& space(ConfigSpace space);
  /// The key that, beside kernel, device, grid, block and shared memory, makes two launches the
  /// same problem, as key_words.hpp says.
  template <class KeyFunction>
  Kernel& key(KeyFunction of_launch) {
    return set_key([of_launch = std::move(of_launch)](const LaunchInfo& launch) mutable {
      return detail::key_of_result(std::invoke(of_launch, launch));
    });
  }
  /// How large the problem of a launch is: launches whose sizes are in one bucket are one problem,
  /// whatever their grids.
  Kernel& size(Size size);
  /// Which sizes are one bucket; powers of two if nothing is said.
  Kernel& buckets(Buckets buckets);
  /// The behaviour of a launch whose size comes when its region is tuned. Nearest runs the winner
  /// of the nearest size, if this launch has that config, too; else it is tuned as it comes.
  Kernel& unseen(UnseenSize unseen);
  /// True keeps the config for this launch.
  Kernel& prune(Prune keep);
  Kernel& apply(Apply apply);
  Kernel& n_warmup(int passes);
  Kernel& n_repeat(int passes);

  /// Declares the kernel, for launches that are first seen from now on; the last declaration of a
  /// name counts. Does nothing where contextune is off. Call it once.
  /// @throws Error if the space is empty or apply is missing
  void declare();

 private:
  using KeyOfLaunch = std::function<Key(const LaunchInfo&)>;
  Kernel& set_key(KeyOfLaunch key);

  struct Rule;
  std::unique_ptr<Rule> rule_;
};

}  // namespace contextune

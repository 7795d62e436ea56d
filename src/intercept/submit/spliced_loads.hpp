#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <contextune/options.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/spliced_image.hpp"
#include "intercept/host/name_filter.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

using contextune::Splice;

/// The modules and libraries that the program loads, handed to the driver with a wait at the entry
/// of their kernels. Where that is not possible, or not wanted, the driver gets the program's
/// image, and its kernels are only read.
///
/// Any thread; nothing throws.
class SplicedLoads {
 public:
  /// Makes the driver's own call of a load with these arguments.
  using Load = std::function<CUresult(contextune_fn fn, void* const* args)>;
  /// Whether the user leaves a kernel out, by its symbol.
  using LeftOut = std::function<bool(const std::string& symbol)>;
  /// Told why an image was left alone.
  using Refused = std::function<void(const std::string& sentence)>;

  struct Totals {
    std::size_t images = 0;    ///< spliced ones
    std::size_t kernels = 0;   ///< that wait
    std::size_t refused = 0;   ///< kernels in them that cannot wait
    std::size_t left = 0;      ///< images that were left alone
    std::size_t unneeded = 0;  ///< images of which an earlier run launched nothing
    std::size_t kept_bytes = 0;
    double seconds = 0;  ///< spent at loads, less what the driver was spared there
  };

  /// @param splice   off also where a GPU is of another architecture than is known
  /// @param reads    images are read although none is to be changed
  /// @param seconds  that may still be spent; asked before each image
  /// @param left_out empty: none is
  SplicedLoads(const gpu::Driver& driver, Splice splice, bool reads,
               std::function<double()> seconds, Refused refused, LeftOut left_out = {});
  SplicedLoads(const SplicedLoads&) = delete;
  SplicedLoads& operator=(const SplicedLoads&) = delete;

  [[nodiscard]] bool is_on() const noexcept { return reads() && splice_ != Splice::Off; }

  /// From now on images are loaded as they are.
  /// @param reads whether they are read
  void leave_all(bool reads) noexcept {
    splice_ = Splice::Off;
    if (!reads) reads_ = false;
  }

  /// From now on these kernels, by hashes of their names, stay as they are in what is loaded.
  void leave(std::vector<std::uint64_t> kernels) noexcept {
    const std::lock_guard lock(mutex_);
    left_ = std::move(kernels);
  }

  /// From now on only these images are read, by their keys.
  void read_only(std::vector<std::uint64_t> images) noexcept {
    const std::lock_guard lock(mutex_);
    needed_ = std::move(images);
  }

  /// From now on NVIDIA's own libraries are read as well, and stay as they are.
  void read_others() noexcept { reads_others_ = true; }

  /// The image that a module or library was loaded from.
  struct Image {
    std::uint64_t key = 0;  ///< equal in every run; 0: not known
    bool was_read = false;  ///< or cannot be, in any run
  };
  [[nodiscard]] Image image_of(const void* owner) noexcept;

  /// A load by the program: cuModuleLoad* or cuLibraryLoad*, with the arguments as the frontend
  /// shows them.
  [[nodiscard]] CUresult load(contextune_fn fn, void* const* args, const Load& load) noexcept;

  /// Before a module or library is unloaded.
  void unloads(const void* owner) noexcept;

  /// The order of a kernel in a module or library. Empty: its code was not read. A kernel that may
  /// be linked with the device's runtime is taken to launch unless its code was read.
  [[nodiscard]] std::optional<gpu::KernelOrder> order_of(const void* owner,
                                                         std::string_view symbol) noexcept;

  [[nodiscard]] Totals totals() noexcept;

 private:
  struct Loaded {
    gpu::SplicedImage image;        ///< its bytes only where the driver may read them later
    gpu::FatBinaryWrapper wrapper;  ///< around them; without a fatbin: the program's image has none
    Image origin;
    /// The driver may link what it loads, so that a kernel may do more than the image says.
    bool is_linked = false;
  };

  [[nodiscard]] bool reads() const noexcept { return reads_; }
  /// Reads an image that was linked from several, or may be linked again, without changing it.
  [[nodiscard]] std::shared_ptr<Loaded> read_linked(const void* image);
  /// @param changes the driver gets the image with waits, and need not uncompress it
  [[nodiscard]] std::uint64_t bytes_left(bool changes) const;
  /// The image to load in place of the program's. Null: it is left alone.
  [[nodiscard]] std::shared_ptr<Loaded> splice(contextune_fn fn, void* const* args);
  void remember(const void* owner, std::shared_ptr<Loaded> loaded, bool keeps_bytes);
  /// A handle may have been another's, which went with its context.
  void forget(const void* owner) noexcept;

  const gpu::Driver& driver_;
  const std::function<double()> seconds_;
  const Refused refused_;
  const LeftOut left_out_;
  std::atomic<bool> reads_;
  std::atomic<Splice> splice_;
  std::atomic<bool> reads_others_{false};
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<Loaded>> loaded_;
  std::vector<std::uint64_t> left_;
  std::vector<std::uint64_t> needed_;              ///< images; empty: all
  std::deque<std::shared_ptr<Loaded>> unloading_;  ///< the last of them
  Totals totals_;
};

/// The kernels that the options only and exclude leave out. The filter outlives it.
[[nodiscard]] SplicedLoads::LeftOut left_out_by(const NameFilter& filter);

}  // namespace contextune::intercept

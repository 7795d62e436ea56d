#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/driver/kernel_access.hpp"
#include "gpu/image/kernel_image.hpp"

namespace contextune::gpu {

/// Keeps enough of an image at its load to read the image when a question comes. Machine code and
/// PTX are read at once. Fatbins can be large, compressed and many: only their place is kept where
/// it lasts, in a loaded program file or a file. A fatbin on the heap may be freed right after the
/// load, and is copied, if it is not too large. Any thread.
class LoadedImage {
 public:
  /// @param code as the program gave it to cuModuleLoadData, cuModuleLoadFatBinary or
  ///   cuLibraryLoadData, which succeeded
  /// @param ptx that machine code was made from, where that is known beside it
  [[nodiscard]] static std::shared_ptr<LoadedImage> from_memory(const void* code,
                                                                const std::string& ptx = {});
  /// @param path as given to cuModuleLoad or cuLibraryLoadFromFile
  /// @param simulated the driver reads PATH.sim in its place, if there is one
  [[nodiscard]] static std::shared_ptr<LoadedImage> from_file(const std::string& path,
                                                              bool simulated);

  /// Read once for each `binary_version`, as of read_kernel_image.
  /// @return null: it cannot be told, and `why` says so in a sentence
  [[nodiscard]] std::shared_ptr<const KernelImage> read(int binary_version, std::string& why);

  /// Tells, without reading the image, whether it is the same as in an earlier run. The stamp names
  /// the build of a program or version of a file that the image is in, or is a hash of its bytes.
  /// "": it is quick to read.
  [[nodiscard]] const std::string& stamp() const noexcept { return stamp_; }

  /// Whether a kernel's instructions may be read in passing.
  [[nodiscard]] bool is_quick_to_read() const noexcept { return bytes_ <= quick_bytes; }

  /// Hash of a kernel's instructions, as KernelImage has it. "": it cannot be told.
  [[nodiscard]] std::string code_of(const std::string& symbol, int binary_version);

  /// Which memory a kernel reads and writes. Read once for each `binary_version`, which takes some
  /// 20 ms for each MiB of PTX.
  [[nodiscard]] KernelAccess access_of(const std::string& symbol, int binary_version);

  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

 private:
  struct Answer {
    std::shared_ptr<const KernelImage> image;
    std::string why;
  };

  LoadedImage() = default;
  void keep_answer(const ByteSource& source);
  void keep_fat_binary(const void* address);
  [[nodiscard]] Answer read_now(int binary_version) const;
  /// @return why there is nothing to use; "": it was used
  [[nodiscard]] std::string with_source(int binary_version,
                                        const std::function<void(const ByteSource&)>& use) const;

  std::mutex mutex_;
  bool lasting_ = false;  ///< `answer_` is all there will ever be
  Answer answer_;
  std::map<int, Answer> answers_;  ///< of a fatbin, by binary version
  std::map<int, KernelAccesses> accesses_;
  std::string text_;  ///< of an image that is one, or the PTX of one that is machine code

  // Where a fatbin is: one of the three.
  const void* address_ = nullptr;
  std::string path_;
  std::string copy_;
  std::string mark_;          ///< of what is there: its first bytes, or the file's version
  std::string program_file_;  ///< that `address_` is in
  std::string stamp_;
  std::uint64_t bytes_ = 0;  ///< of a fatbin; 0: it was read at its load
  static constexpr std::uint64_t quick_bytes = std::uint64_t{1} << 20U;
  bool links_at_load_ = false;
};

}  // namespace contextune::gpu

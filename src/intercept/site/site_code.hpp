#pragma once

#include <memory>
#include <string>

#include "gpu/image/loaded_image.hpp"

namespace contextune::intercept {

/// Where the instructions of a site's kernel can be read, and what its configs mean. A value. Any
/// thread.
struct SiteCode {
  std::shared_ptr<gpu::LoadedImage> image{};  ///< null: it is no kernel, or its image is not known
  std::string symbol{};
  int binary_version = 0;
  std::string declaration{};  ///< as StoredSite has it
  /// Of a function or choice: the build of the program file that calls it; empty: not known.
  std::string build{};

  /// As StoredSite has them; read() may take milliseconds unless is_quick().
  [[nodiscard]] std::string stamp() const { return image == nullptr ? build : image->stamp(); }
  [[nodiscard]] bool is_quick() const { return image == nullptr || image->is_quick_to_read(); }
  [[nodiscard]] std::string read() const {
    return image == nullptr ? "" : image->code_of(symbol, binary_version);
  }
};

}  // namespace contextune::intercept

#include <algorithm>

#include "gpu/driver/kernel_access.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/kernel_image.hpp"

namespace contextune::gpu {
namespace {

KernelAccesses read_text(const std::string& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const bool is_simulated = std::string_view(text).substr(begin).starts_with(simulated_begin);
  return is_simulated ? read_simulated_accesses(text) : read_ptx_accesses(text);
}

/// The architecture of the PTX that says what the kernels do; 0: of none.
int architecture_of(const std::vector<FatBinaryEntry>& entries, int binary_version) {
  using Kind = FatBinaryEntry::Kind;
  int best = 0;
  for (const FatBinaryEntry& one : entries) {
    if (one.kind == Kind::Cubin && one.architecture == binary_version) return binary_version;
    if (one.kind == Kind::Ptx && one.architecture <= binary_version)
      best = std::max(best, one.architecture);
  }
  return best;
}

}  // namespace

KernelAccesses read_image_accesses(const ByteSource& image, int binary_version) {
  const ImageForm form = form_of_image(image);
  if (form == ImageForm::Text) {
    const auto text = image.read_text(0);
    return text ? read_text(*text) : KernelAccesses{};
  }
  KernelAccesses accesses;
  if (form != ImageForm::FatBinary) return accesses;
  std::string why;
  const auto entries = read_fat_binary(image, why);
  if (!entries) return accesses;
  const int architecture = architecture_of(*entries, binary_version);
  for (const FatBinaryEntry& entry : *entries) {
    if (entry.kind != FatBinaryEntry::Kind::Ptx || entry.architecture != architecture) continue;
    const auto content = content_of(image, entry, why);
    if (content) accesses.merge(read_ptx_accesses(content->substr(0, content->find('\0'))));
  }
  return accesses;
}

}  // namespace contextune::gpu

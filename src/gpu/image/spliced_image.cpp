#include "gpu/image/spliced_image.hpp"

#include <utility>

#include "gpu/fat_binary.hpp"
#include "gpu/kernel_image.hpp"

namespace contextune::gpu {
namespace {

class Splicer {
 public:
  Splicer(const ByteSource& image, std::uint64_t most_bytes,
          const std::function<bool(const CodeKernel&)>& wanted, std::string& why)
      : image_(image), most_bytes_(most_bytes), wanted_(wanted), why_(why) {}

  std::optional<SplicedImage> splice() {
    switch (form_of_image(image_)) {
      case ImageForm::FatBinary:
        return splice_fat_binary() ? std::optional(std::move(made_)) : std::nullopt;
      case ImageForm::Cubin:
        return splice_machine_code() ? std::optional(std::move(made_)) : std::nullopt;
      case ImageForm::Text:
        why_ = "it is source that the driver compiles";
        return std::nullopt;
      case ImageForm::Unknown:
        break;
    }
    why_ = "it has a form that is not known";
    return std::nullopt;
  }

 private:
  bool fails(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool has_room_for(std::uint64_t bytes) {
    made_.code_bytes += bytes;
    return made_.code_bytes <= most_bytes_ ||
           fails("it has more machine code than is worth reading");
  }

  /// @return whether the code could be read; then it may have been changed
  bool splice_code(std::string& code, bool& changed) {
    auto found = read_code_kernels(code, why_);
    if (!found) return false;
    std::erase_if(found->kernels, [&](const CodeKernel& one) {
      const bool waits = !one.reason && wanted_(one);
      if (one.reason) ++made_.refused[*one.reason];
      add({waits, one.triggers, found->launches, one.maps}, one.symbol);
      return !waits;
    });
    changed = changed || !found->kernels.empty();
    code = with_entry_waits(std::move(code), *found);
    return true;
  }

  void add(const KernelOrder& order, const std::string& symbol) {
    const auto [known, is_new] = made_.kernels.emplace(symbol, order);
    if (is_new) return;
    // Only the driver knows which of them it takes.
    known->second.waits = known->second.waits && order.waits;
    known->second.triggers = known->second.triggers || order.triggers;
    known->second.launches = known->second.launches || order.launches;
    known->second.maps = known->second.maps || order.maps;
  }

  bool splice_machine_code() {
    const auto bytes = machine_code_bytes(image_);
    if (!bytes) return fails("its machine code has no size that is known");
    if (!has_room_for(*bytes)) return false;
    auto code = image_.read_bytes(0, *bytes);
    if (!code) return fails("its machine code is cut off");
    bool changed = false;
    if (!splice_code(*code, changed)) return false;
    if (changed) made_.bytes = std::move(*code);
    return true;
  }

  bool splice_fat_binary() {
    const auto entries = read_fat_binary(image_, why_);
    if (!entries) return false;
    std::string entries_bytes;
    bool changed = false;
    bool has_code = false;
    for (const FatBinaryEntry& one : *entries) {
      const bool is_code = one.kind == FatBinaryEntry::Kind::Cubin;
      if (is_code && one.architecture != entry_wait_architecture) continue;
      if (!is_code) {
        if (!append_stored(image_, one, entries_bytes)) return fails("its fatbin is cut off");
        continue;
      }
      has_code = true;
      if (!has_room_for(one.bytes)) return false;
      auto code = content_of(image_, one, why_);
      if (!code || !splice_code(*code, changed)) return false;
      if (!append_uncompressed(image_, one, *code, entries_bytes))
        return fails("its fatbin is cut off");
    }
    if (!has_code) return fails("it has no machine code for sm_90");
    if (changed) made_.bytes = fat_binary_of(entries_bytes);
    return true;
  }

  const ByteSource& image_;
  const std::uint64_t most_bytes_;
  const std::function<bool(const CodeKernel&)>& wanted_;
  std::string& why_;
  SplicedImage made_;
};

}  // namespace

std::optional<SplicedImage> spliced_image(const ByteSource& image, std::uint64_t most_bytes,
                                          const std::function<bool(const CodeKernel&)>& wanted,
                                          std::string& why) {
  return Splicer(image, most_bytes, wanted, why).splice();
}

}  // namespace contextune::gpu

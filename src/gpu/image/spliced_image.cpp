#include "gpu/image/spliced_image.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <span>
#include <utility>

#include "gpu/image/fat_binary.hpp"
#include "gpu/image/kernel_image.hpp"

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
    return made_.code_bytes <= most_bytes_ || fails(std::string(too_much_code));
  }

  /// @return whether the code could be read; then it may have been changed
  bool splice_code(std::span<char> code, bool& changed) {
    auto found = read_code_kernels({code.data(), code.size()}, why_);
    if (!found) return false;
    std::erase_if(found->kernels, [&](const CodeKernel& one) {
      const bool waits = !one.reason && wanted_(one);
      if (one.reason) ++made_.refused[*one.reason];
      add({waits, one.triggers, found->launches, one.maps}, one.symbol);
      return !waits;
    });
    changed = changed || !found->kernels.empty();
    put_entry_waits(code, *found);
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
    ImageBytes code(static_cast<std::size_t>(*bytes));
    if (!image_.read(0, code.data(), code.size())) return fails("its machine code is cut off");
    bool changed = false;
    if (!splice_code(code.span(), changed)) return false;
    if (changed) made_.bytes = std::move(code);
    return true;
  }

  bool splice_fat_binary() {
    using Writer = FatBinaryWriter;
    auto entries = read_fat_binary(image_, why_);
    if (!entries) return false;
    const auto is_code = [](const FatBinaryEntry& one) {
      return one.kind == FatBinaryEntry::Kind::Cubin;
    };
    std::erase_if(*entries, [&](const FatBinaryEntry& one) {
      return is_code(one) && one.architecture != entry_wait_architecture;
    });
    if (std::none_of(entries->begin(), entries->end(), is_code))
      return fails("it has no machine code for sm_90");
    std::uint64_t bytes = 0;
    for (const FatBinaryEntry& one : *entries) {
      if (is_code(one) && !has_room_for(one.bytes)) return false;
      bytes += is_code(one) ? Writer::bytes_uncompressed(one) : Writer::bytes_as_stored(one);
    }
    ImageBytes made(static_cast<std::size_t>(Writer::header_bytes() + bytes));
    Writer::put_header(made.data(), bytes);
    char* to = made.data() + Writer::header_bytes();
    const Writer writer(image_);
    bool changed = false;
    double spared = std::numeric_limits<double>::infinity();
    for (const FatBinaryEntry& one : *entries) {
      if (!is_code(one)) {
        if (!writer.put_as_stored(to, one)) return fails("its fatbin is cut off");
        to += Writer::bytes_as_stored(one);
        continue;
      }
      char* const content = writer.put_uncompressed(to, one);
      if (content == nullptr) return fails("its fatbin is cut off");
      const std::span code(content, static_cast<std::size_t>(one.bytes));
      const auto begin = std::chrono::steady_clock::now();
      if (!read_content(image_, one, code, why_)) return false;
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      const bool is_compressed = one.compression != FatBinaryEntry::Compression::None;
      spared = std::min(spared, is_compressed ? took.count() : 0);
      if (!splice_code(code, changed)) return false;
      to += Writer::bytes_uncompressed(one);
    }
    if (!changed) return true;
    made_.bytes = std::move(made);
    made_.spared_seconds = spared;
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

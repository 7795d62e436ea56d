#include "gpu/image/loaded_image.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/value/hexadecimal.hpp"
#include "core/value/stable_hash.hpp"
#include "gpu/driver/byte_source.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/program_file.hpp"

namespace contextune::gpu {
namespace {

constexpr std::size_t most_copied_bytes = 16 << 20;
constexpr std::size_t most_copied_bytes_together = 256 << 20;
constexpr std::size_t mark_bytes = 256;
constexpr const char* linked_at_load = "the driver linked it at its load, from several fatbins";
std::atomic<std::size_t> copied_bytes{0};

std::string first_bytes(const ByteSource& source) {
  std::string bytes(mark_bytes, '\0');
  bytes.resize(source.read_some(0, bytes.data(), bytes.size()));
  return bytes;
}

bool has_machine_code(const ByteSource& fat_binary, int binary_version) {
  std::string ignored;
  const auto entries = read_fat_binary(fat_binary, ignored);
  return entries && std::any_of(entries->begin(), entries->end(), [&](const FatBinaryEntry& one) {
           return one.kind == FatBinaryEntry::Kind::Cubin && one.architecture == binary_version;
         });
}

}  // namespace

std::shared_ptr<LoadedImage> LoadedImage::from_memory(const void* code, const std::string& ptx) {
  std::shared_ptr<LoadedImage> image(new LoadedImage);
  const MemorySource source(code);
  const auto wrapper = source.read<FatBinaryWrapper>(0);
  if (wrapper && wrapper->is_valid()) {
    image->links_at_load_ = wrapper->is_linked_at_load();
    image->keep_fat_binary(wrapper->fat_binary);
  } else if (form_of_image(source) == ImageForm::FatBinary) {
    image->keep_fat_binary(code);
  } else {
    image->keep_answer(source);
    if (image->text_.empty() && ptx.size() <= most_copied_bytes) image->text_ = ptx;
  }
  return image;
}

std::shared_ptr<LoadedImage> LoadedImage::from_file(const std::string& path, bool simulated) {
  std::shared_ptr<LoadedImage> image(new LoadedImage);
  std::error_code ignored;
  std::string place = std::filesystem::absolute(path, ignored).string();
  if (simulated && std::filesystem::exists(place + ".sim", ignored)) place += ".sim";
  const FileSource source(place);
  if (form_of_image(source) == ImageForm::FatBinary) {
    image->path_ = place;
    image->mark_ = source.version();
    image->stamp_ = "file " + image->mark_;
    image->bytes_ = fat_binary_bytes(source).value_or(0);
  } else {
    image->keep_answer(source);
  }
  return image;
}

LoadedImage::~LoadedImage() {
  copied_bytes.fetch_sub(copy_.size(), std::memory_order_relaxed);
}

void LoadedImage::keep_answer(const ByteSource& source) {
  lasting_ = true;
  if (auto read = read_kernel_image(source, 0, answer_.why)) {
    answer_.image = std::make_shared<const KernelImage>(std::move(*read));
  }
  if (form_of_image(source) != ImageForm::Text) return;
  auto text = source.read_text(0);
  if (text && text->size() <= most_copied_bytes) text_ = std::move(*text);
}

void LoadedImage::keep_fat_binary(const void* address) {
  const MemorySource source(address);
  const auto bytes = fat_binary_bytes(source);
  if (!bytes) {
    lasting_ = true;
    answer_.why = "its fatbin has no header that is known";
    return;
  }
  bytes_ = *bytes;
  if (const auto file = program_file_of(address, *bytes)) {
    program_file_ = file->load;
    address_ = address;
    stamp_ = file->build;
    mark_ = first_bytes(source);
    return;
  }
  if (*bytes <= most_copied_bytes &&
      copied_bytes.load(std::memory_order_relaxed) + *bytes <= most_copied_bytes_together) {
    if (auto copy = source.read_bytes(0, *bytes)) {
      copy_ = std::move(*copy);
      StableHash hash;
      hash.add(copy_);
      stamp_ = "bytes " + hexadecimal(hash.value());
      copied_bytes.fetch_add(copy_.size(), std::memory_order_relaxed);
      return;
    }
  }
  lasting_ = true;
  answer_.why =
      "its fatbin was loaded from memory that the program may free, and is too large to "
      "be copied";
}

std::string LoadedImage::with_source(int binary_version,
                                     const std::function<void(const ByteSource&)>& use) const {
  const auto is_linked = [&](const ByteSource& source) {
    return links_at_load_ && !has_machine_code(source, binary_version);
  };
  if (!path_.empty()) {
    const FileSource source(path_);
    if (source.version() != mark_)
      return "its file was changed or removed after the load: " + path_;
    use(source);
  } else if (address_ != nullptr) {
    const MemorySource source(address_);
    const auto bytes = fat_binary_bytes(source);
    const auto file = bytes ? program_file_of(address_, *bytes) : std::nullopt;
    if (!file || file->load != program_file_ || first_bytes(source) != mark_)
      return "the program file that it came from is no longer loaded";
    if (is_linked(source)) return linked_at_load;
    use(source);
  } else {
    const BufferSource source(copy_);
    if (is_linked(source)) return linked_at_load;
    use(source);
  }
  return {};
}

LoadedImage::Answer LoadedImage::read_now(int binary_version) const {
  Answer answer;
  std::optional<KernelImage> read;
  std::string problem;
  const std::string why = with_source(binary_version, [&](const ByteSource& source) {
    read = read_kernel_image(source, binary_version, problem);
  });
  answer.why = why.empty() ? problem : why;
  if (read) answer.image = std::make_shared<const KernelImage>(std::move(*read));
  return answer;
}

KernelAccess LoadedImage::access_of(const std::string& symbol, int binary_version) {
  const std::lock_guard lock(mutex_);
  auto known = accesses_.find(binary_version);
  if (known == accesses_.end()) {
    KernelAccesses read;
    if (!text_.empty()) {
      read = read_image_accesses(BufferSource(text_), binary_version);
    } else if (!lasting_) {
      (void)with_source(binary_version, [&](const ByteSource& source) {
        read = read_image_accesses(source, binary_version);
      });
    }
    known = accesses_.emplace(binary_version, std::move(read)).first;
  }
  const auto found = known->second.find(symbol);
  if (found != known->second.end()) return found->second;
  KernelAccess unknown;
  unknown.unknown = "its image has no PTX for it";
  return unknown;
}

std::string LoadedImage::code_of(const std::string& symbol, int binary_version) {
  std::string why;
  const auto image = read(binary_version, why);
  if (image == nullptr) return {};
  const auto found = image->code.find(symbol);
  return found == image->code.end() ? std::string() : hexadecimal(found->second);
}

std::shared_ptr<const KernelImage> LoadedImage::read(int binary_version, std::string& why) {
  const std::lock_guard lock(mutex_);
  if (lasting_) {
    why = answer_.why;
    return answer_.image;
  }
  auto known = answers_.find(binary_version);
  if (known == answers_.end()) {
    known = answers_.emplace(binary_version, read_now(binary_version)).first;
  }
  why = known->second.why;
  return known->second.image;
}

}  // namespace contextune::gpu

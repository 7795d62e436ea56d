#include "gpu/image/kernel_image.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "core/value/stable_hash.hpp"
#include "gpu/image/cubin.hpp"
#include "gpu/image/fat_binary.hpp"
#include "gpu/image/ptx.hpp"

namespace contextune::gpu {
namespace {

std::uint64_t hash_of(std::string_view text) {
  StableHash hash;
  hash.add(text);
  return hash.value();
}

std::optional<KernelImage> read_simulated(const std::string& text) {
  KernelImage code;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    ImageVariable variable;
    if (!(words >> word)) continue;
    if (word == "global" && words >> variable.name >> variable.bytes) {
      code.variables.push_back(variable);
    } else if (word == "code" && words >> variable.name && std::getline(words >> std::ws, word)) {
      code.code[variable.name] = hash_of(word.substr(0, word.find_last_not_of(" \t\r") + 1));
    }
  }
  std::ranges::sort(code.variables, [](const auto& a, const auto& b) { return a.name < b.name; });
  code.variables.erase(std::unique(code.variables.begin(), code.variables.end(),
                                   [](const auto& a, const auto& b) { return a.name == b.name; }),
                       code.variables.end());
  return code;
}

std::optional<KernelImage> read_text(const std::string& text, std::string& why) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  if (std::string_view(text).substr(begin).starts_with(simulated_begin)) {
    return read_simulated(text);
  }
  return read_ptx(text, why);
}

/// The entries that the driver takes one of, for a kernel of this machine code.
std::vector<FatBinaryEntry> fitting(const std::vector<FatBinaryEntry>& entries,
                                    int binary_version) {
  using Kind = FatBinaryEntry::Kind;
  std::vector<FatBinaryEntry> fit;
  for (const FatBinaryEntry& one : entries) {
    if (one.kind == Kind::Cubin && one.architecture == binary_version) fit.push_back(one);
  }
  if (!fit.empty()) return fit;
  for (const FatBinaryEntry& one : entries) {
    if (one.kind == Kind::Ptx && one.architecture <= binary_version) fit.push_back(one);
  }
  return fit;
}

/// An image with all that either of two images has.
KernelImage either(const KernelImage& a, const KernelImage& b) {
  KernelImage both;
  both.uses_printf = a.uses_printf || b.uses_printf;
  both.uses_malloc = a.uses_malloc || b.uses_malloc;
  both.launches_kernels = a.launches_kernels || b.launches_kernels;
  both.code = a.code;
  for (const auto& [symbol, hash] : b.code) {
    const auto [known, is_new] = both.code.emplace(symbol, hash);
    if (!is_new && known->second != hash) known->second = known->second * 31 + hash;
  }
  auto left = a.variables.begin();
  auto right = b.variables.begin();
  while (left != a.variables.end() || right != b.variables.end()) {
    const bool only_right =
        left == a.variables.end() || (right != b.variables.end() && right->name < left->name);
    const bool only_left =
        right == b.variables.end() || (left != a.variables.end() && left->name < right->name);
    ImageVariable one = only_right ? *right : *left;
    one.certain = one.certain && !only_left && !only_right;
    if (!only_left && !only_right) one.bytes = std::max(left->bytes, right->bytes);
    if (!only_right) ++left;
    if (!only_left) ++right;
    both.variables.push_back(std::move(one));
  }
  return both;
}

std::optional<KernelImage> read_fat(const ByteSource& image, int binary_version, std::string& why) {
  const auto entries = read_fat_binary(image, why);
  if (!entries) return std::nullopt;
  std::optional<KernelImage> code;
  for (const FatBinaryEntry& entry : fitting(*entries, binary_version)) {
    const auto content = content_of(image, entry, why);
    if (!content) return std::nullopt;
    const BufferSource source(*content);
    const auto one = entry.kind == FatBinaryEntry::Kind::Cubin
                         ? read_cubin(source, why)
                         : read_ptx(content->substr(0, content->find('\0')), why);
    if (!one) return std::nullopt;
    code = code ? either(*code, *one) : *one;
  }
  if (!code) {
    why = "its fatbin has neither machine code for sm_" + std::to_string(binary_version) +
          " nor PTX for it";
  }
  return code;
}

}  // namespace

void KernelImage::add_driver_function(std::string_view name) {
  if (name == "vprintf") uses_printf = true;
  if (name == "malloc" || name == "free" || name.find("device_malloc") != std::string_view::npos) {
    uses_malloc = true;
  }
  for (const std::string_view part : {"cudaCDP", "syscall_cnp", "cudaLaunchDevice",
                                      "cudaGetParameterBuffer", "cudaGraphLaunch"}) {
    if (name.find(part) != std::string_view::npos) launches_kernels = true;
  }
}

ImageForm form_of_image(const ByteSource& image) noexcept {
  const auto magic = image.read<std::uint32_t>(0);
  if (!magic) {
    char first = 0;
    return image.read(0, &first, 1) && first != '\0' ? ImageForm::Text : ImageForm::Unknown;
  }
  if (*magic == fat_binary_magic) return ImageForm::FatBinary;
  const char* bytes = reinterpret_cast<const char*>(&*magic);
  if (std::memcmp(bytes, "\177ELF", 4) == 0) return ImageForm::Cubin;
  const auto is_text = [](char c) {
    const auto value = static_cast<unsigned char>(c);
    return (value >= 0x20 && value < 0x7f) || (value >= '\t' && value <= '\r');
  };
  return std::all_of(bytes, bytes + 4, is_text) ? ImageForm::Text : ImageForm::Unknown;
}

std::optional<KernelImage> read_kernel_image(const ByteSource& image, int binary_version,
                                             std::string& why) {
  switch (form_of_image(image)) {
    case ImageForm::Cubin:
      return read_cubin(image, why);
    case ImageForm::FatBinary:
      return read_fat(image, binary_version, why);
    case ImageForm::Text:
      if (const auto text = image.read_text(0)) return read_text(*text, why);
      why = "its text is too long";
      return std::nullopt;
    case ImageForm::Unknown:
      break;
  }
  why = "it is neither machine code, a fatbin nor PTX";
  return std::nullopt;
}

}  // namespace contextune::gpu

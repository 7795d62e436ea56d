// Any bytes as machine code that is given waits: it is refused with a reason, or nothing but the
// entries of kernels changes, and the padding of those that need a detour, and no kernel can be
// given a second wait. The same as a whole image, fatbin or not, which another look finds nothing
// to change in.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "gpu/image/code_images.hpp"
#include "gpu/image/entry_wait.hpp"
#include "gpu/image/spliced_image.hpp"

namespace {

using namespace contextune::gpu;

constexpr std::uint64_t load_stack_pointer = 0x00000a00ff017b82;
constexpr std::uint64_t wait_low = 0x000000000000782e;
constexpr std::uint64_t wait_high = 0x000fe20000000000;

std::uint64_t word_at(std::string_view bytes, std::uint64_t offset) {
  std::uint64_t word = 0;
  if (offset + sizeof word > bytes.size()) std::abort();
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

void give_waits(std::string_view image) {
  std::string why;
  const auto found = read_code_kernels(image, why);
  if (found.has_value() != why.empty()) std::abort();
  if (!found) return;
  std::string made = with_entry_waits(std::string(image), *found);
  const auto again = read_code_kernels(made, why);
  if (made.size() != image.size() || !again || again->kernels.size() != found->kernels.size()) {
    std::abort();
  }
  for (std::size_t i = 0; i < found->kernels.size(); ++i) {
    const CodeKernel& kernel = found->kernels[i];
    if (again->kernels[i].reason != kernel.reason.value_or(NoEntryWait::OwnWait)) std::abort();
    if (kernel.reason) continue;
    if (word_at(image, kernel.code) != load_stack_pointer) std::abort();
    if (kernel.waits_in_place() != (kernel.room == 0)) std::abort();
    const std::uint64_t wait = kernel.room == 0 ? kernel.code : kernel.room + instruction_bytes;
    if (word_at(made, wait) != wait_low || word_at(made, wait + 8) != wait_high) std::abort();
    made.replace(kernel.code, instruction_bytes, image.substr(kernel.code, instruction_bytes));
    if (kernel.room == 0) continue;
    made.replace(kernel.room, entry_wait_bytes, image.substr(kernel.room, entry_wait_bytes));
  }
  if (made != image) std::abort();
}

void splice(std::string_view image) {
  constexpr std::uint64_t most_bytes = 1 << 20;
  const auto splice_all = [](std::string_view bytes, std::string& why) {
    return spliced_image(
        BufferSource(bytes), most_bytes, [](const CodeKernel&) { return true; }, why);
  };
  std::string why;
  const auto made = splice_all(image, why);
  if (made.has_value() != why.empty()) std::abort();
  if (!made) return;
  if (made->code_bytes > most_bytes) std::abort();
  bool any_waits = false;
  for (const auto& [symbol, order] : made->kernels) any_waits = any_waits || order.waits;
  if (made->bytes.empty()) {
    if (any_waits) std::abort();
    return;
  }
  const auto again = splice_all(made->bytes, why);
  if (!again || !again->bytes.empty() || again->kernels.size() != made->kernels.size()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!for_each_machine_code(BufferSource(bytes), give_waits)) give_waits(bytes);
  splice(bytes);
  return 0;
}

// Any bytes as machine code that is given waits: it is refused with a reason, or nothing but the
// entries of kernels changes, the padding of those that need a detour, and where the code of others
// stands with the numbers that say so, and no kernel can be given a second wait. No wait is in
// place of a stack pointer that is plainly used, and no code moves that plainly goes who knows
// where. The same as a whole image, fatbin or not, which another look finds nothing to change in.
#include <elf.h>

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
constexpr std::uint64_t nop_low = 0x7918;

/// Adds to R1, keeps or finds something at it, or goes who knows where.
bool plainly_uses_stack_pointer(std::uint64_t low) {
  const std::uint64_t what = low & 0xfff;
  const bool at_stack = (low >> 24 & 0xff) == 1;
  switch (what) {
    case 0x810:  // IADD3
    case 0x836:  // VIADD
    case 0x387:  // STL
    case 0x983:  // LDL
      return at_stack;
    case 0x343:  // CALL.ABS
    case 0x949:  // BRX
      return true;
    default:
      return false;
  }
}

template <class T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  T value{};
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) std::abort();
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// @param begin of the kernel's code
void check_in_place(std::string_view image, std::uint64_t begin) {
  const auto header = read_at<Elf64_Ehdr>(image, 0);
  std::uint64_t sections = header.e_shnum;
  if (sections == 0) sections = read_at<Elf64_Shdr>(image, header.e_shoff).sh_size;
  for (std::uint64_t i = 0; i < sections; ++i) {
    const auto one = read_at<Elf64_Shdr>(image, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (one.sh_offset != begin || (one.sh_flags & SHF_EXECINSTR) == 0) continue;
    if (one.sh_type == SHT_NOBITS || one.sh_size == 0) continue;
    const std::uint64_t end = begin + one.sh_size;
    for (std::uint64_t at = begin + instruction_bytes; at < end; at += instruction_bytes) {
      if (plainly_uses_stack_pointer(read_at<std::uint64_t>(image, at))) std::abort();
    }
    return;
  }
  std::abort();  // it has no code
}

std::uint64_t place_of_wait(const CodeKernel& kernel) {
  switch (kernel.form) {
    case EntryWaitForm::InPlace:
      return kernel.code;
    case EntryWaitForm::Moved:
      return kernel.code + instruction_bytes;
    case EntryWaitForm::Detour:
      break;
  }
  return kernel.room + instruction_bytes;
}

/// Undoes a move: the first instruction stays, and the others are as they were, one further up.
void move_back(std::string& made, std::string_view image, const CodeKernel& kernel) {
  constexpr std::uint64_t branch_in_register = 0x949;  // BRX
  const std::uint64_t second = kernel.code + instruction_bytes;
  const std::uint64_t bytes = kernel.room - second;
  for (std::uint64_t at = second; at < kernel.room; at += instruction_bytes) {
    if ((read_at<std::uint64_t>(image, at) & 0xfff) == branch_in_register) std::abort();
  }
  if (read_at<std::uint64_t>(image, kernel.room) != nop_low) std::abort();
  made.replace(second, bytes, made.substr(second + instruction_bytes, bytes));
  made.replace(kernel.room, instruction_bytes, image.substr(kernel.room, instruction_bytes));
  for (const std::uint64_t place : kernel.numbers) {
    const auto number =
        read_at<std::uint32_t>(made, place) - static_cast<std::uint32_t>(instruction_bytes);
    if (number % instruction_bytes != 0 || number < instruction_bytes ||
        number >= kernel.room - kernel.code) {
      std::abort();
    }
    std::memcpy(made.data() + place, &number, sizeof number);
  }
}

void give_waits(std::string_view image) {
  std::string why;
  const auto found = read_code_kernels(image, why);
  if (found.has_value() != why.empty()) std::abort();
  if (!found) return;
  std::string made(image);
  put_entry_waits(made, *found);
  const auto again = read_code_kernels(made, why);
  if (made.size() != image.size() || !again || again->kernels.size() != found->kernels.size()) {
    std::abort();
  }
  for (std::size_t i = 0; i < found->kernels.size(); ++i) {
    const CodeKernel& kernel = found->kernels[i];
    if (again->kernels[i].reason != kernel.reason.value_or(NoEntryWait::OwnWait)) std::abort();
    if (kernel.reason) continue;
    if (read_at<std::uint64_t>(image, kernel.code) != load_stack_pointer) std::abort();
    if ((kernel.form == EntryWaitForm::InPlace) != (kernel.room == 0)) std::abort();
    const std::uint64_t wait = place_of_wait(kernel);
    if (read_at<std::uint64_t>(made, wait) != wait_low ||
        read_at<std::uint64_t>(made, wait + 8) != wait_high)
      std::abort();
    switch (kernel.form) {
      case EntryWaitForm::InPlace:
        check_in_place(image, kernel.code);
        break;
      case EntryWaitForm::Moved:
        move_back(made, image, kernel);
        continue;
      case EntryWaitForm::Detour:
        made.replace(kernel.room, entry_wait_bytes, image.substr(kernel.room, entry_wait_bytes));
    }
    made.replace(kernel.code, instruction_bytes, image.substr(kernel.code, instruction_bytes));
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

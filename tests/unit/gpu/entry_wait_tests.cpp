// Kernels that the compiler made of entry_waits.cu, with one thing changed for each rule.
#include "gpu/image/entry_wait.hpp"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu/image/code_images.hpp"
#include "gpu/image/fat_binary.hpp"
#include "tests/case_step.hpp"

using namespace contextune::gpu;

namespace {

using enum NoEntryWait;
using enum EntryWaitForm;
using Reason = std::optional<NoEntryWait>;

std::string test_image(const std::string& name) {
  std::ifstream file(std::string(CONTEXTUNE_TEST_IMAGES) + "/" + name, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Machine code of the compiler, to be changed.
struct Code {
  std::string bytes = test_image("entry_waits.cubin");

  template <typename T>
  [[nodiscard]] T get(std::uint64_t offset) const {
    T value;
    REQUIRE(offset + sizeof(T) <= bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  template <typename T>
  void set(std::uint64_t offset, const T& value) {
    REQUIRE(offset + sizeof(T) <= bytes.size());
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
  }
  [[nodiscard]] Elf64_Ehdr header() const { return get<Elf64_Ehdr>(0); }
  [[nodiscard]] std::uint64_t section_place(std::uint64_t index) const {
    return header().e_shoff + index * sizeof(Elf64_Shdr);
  }
  [[nodiscard]] Elf64_Shdr section(std::uint64_t index) const {
    return get<Elf64_Shdr>(section_place(index));
  }
  [[nodiscard]] std::uint64_t find_section(const std::string& name) const {
    const std::uint64_t names = section(header().e_shstrndx).sh_offset;
    for (std::uint64_t i = 0; i < header().e_shnum; ++i) {
      if (bytes.c_str() + names + section(i).sh_name == name) return i;
    }
    FAIL("there is no section " << name);
    return 0;
  }
  [[nodiscard]] std::uint64_t symbol_place(const std::string& part) const {
    const Elf64_Shdr table = section(find_section(".symtab"));
    const std::uint64_t names = section(table.sh_link).sh_offset;
    for (std::uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto one = get<Elf64_Sym>(table.sh_offset + at);
      const std::string name = bytes.c_str() + names + one.st_name;
      if (ELF64_ST_TYPE(one.st_info) == STT_FUNC && name.find(part) != name.npos) {
        return table.sh_offset + at;
      }
    }
    FAIL("there is no symbol " << part);
    return 0;
  }
  /// Where the instructions of a kernel are.
  [[nodiscard]] std::uint64_t text(const std::string& kernel) const {
    return section(find_section(".text." + kernel)).sh_offset;
  }
  [[nodiscard]] std::uint64_t text_bytes(const std::string& kernel) const {
    return section(find_section(".text." + kernel)).sh_size;
  }
  /// Puts bits into the schedule of a kernel's first instruction.
  void schedule_entry(const std::string& name, std::uint64_t bits) {
    const std::uint64_t place = text(name) + 8;
    set(place, get<std::uint64_t>(place) | bits);
  }
  /// Has a kernel that does not use its stack pointer move all the same: its first instruction
  /// waits for a barrier.
  void force_move(const std::string& name) { schedule_entry(name, std::uint64_t{1} << 52); }
  /// Has a kernel wait by a detour: nobody knows what is said of it.
  void force_detour(const std::string& name) {
    force_move(name);
    set(facts(name) + 1, std::uint8_t{0xee});
  }
  /// Where the first fact of a kernel is: a byte for its form, one for what it is, two for how many
  /// bytes follow.
  [[nodiscard]] std::uint64_t facts(const std::string& kernel) const {
    return section(find_section(".nv.info." + kernel)).sh_offset;
  }
  [[nodiscard]] std::uint64_t fact(const std::string& kernel, std::uint8_t what) const {
    const Elf64_Shdr facts = section(find_section(".nv.info." + kernel));
    for (std::uint64_t at = facts.sh_offset; at < facts.sh_offset + facts.sh_size; at += 4) {
      if (get<std::uint8_t>(at) != 4) continue;
      if (get<std::uint8_t>(at + 1) == what) return at;
      at += get<std::uint16_t>(at + 2);
    }
    FAIL("nobody says that of " << kernel);
    return 0;
  }
  /// Where the numbers of a kernel's exits are: one for each.
  [[nodiscard]] std::vector<std::uint64_t> exits(const std::string& kernel) const {
    const std::uint64_t begin = fact(kernel, 0x1c);
    std::vector<std::uint64_t> places;
    for (std::uint64_t k = 0; k < get<std::uint16_t>(begin + 2); k += 4) {
      places.push_back(begin + 4 + k);
    }
    return places;
  }
  [[nodiscard]] CodeKernels kernels() const {
    std::string why;
    const auto found = read_code_kernels(bytes, why);
    INFO(why);
    REQUIRE(found);
    return *found;
  }
  [[nodiscard]] CodeKernel kernel(const std::string& name) const {
    for (const CodeKernel& one : kernels().kernels) {
      if (one.symbol == name) return one;
    }
    FAIL("there is no kernel " << name);
    return {};
  }
  [[nodiscard]] Reason reason(const std::string& name) const { return kernel(name).reason; }
  [[nodiscard]] std::string refusal() const {
    std::string why;
    CHECK_FALSE(read_code_kernels(bytes, why));
    return why;
  }
};

constexpr std::uint64_t exit_low = 0x000000000000794d;
constexpr std::uint64_t exit_high = 0x000fea0003800000;
constexpr std::uint64_t to_itself_low = 0xfffffffc00fc7947;
constexpr std::uint64_t to_itself_high = 0x000fc0000383ffff;

void check_moved(const std::string& image, const std::string& made, const CodeKernel& kernel) {
  const auto code = static_cast<std::size_t>(kernel.code);
  const auto moved = static_cast<std::size_t>(kernel.room - kernel.code) - 16;
  const auto word = [](const std::string& bytes, std::uint64_t place) {
    std::uint32_t value = 0;
    std::memcpy(&value, bytes.data() + place, sizeof value);
    return value;
  };
  if (made.compare(code, 16, image, code, 16) != 0) FAIL("another first instruction");
  if (word(made, kernel.code + 16) != 0x782e) FAIL("no wait");
  if (made.compare(code + 32, moved, image, code + 16, moved) != 0) FAIL("not moved");
  if (word(image, kernel.room) != 0x7918) FAIL("there was no padding");
  for (const std::uint64_t place : kernel.numbers) {
    if (word(made, place) != word(image, place) + 16) FAIL("a number did not move");
    if (word(image, place) < 16 || word(image, place) >= moved + 16) FAIL("a number of nothing");
  }
}

/// Whatever the image is: only the first instruction of those that may have a wait, the padding of
/// those that need a detour, and the code of those that move with the numbers of its instructions
/// are another, and then they have it.
void check_waits(const std::string& image) {
  std::string why;
  const auto found = read_code_kernels(image, why);
  if (!found) {
    if (why.empty()) FAIL("refused without a reason");
    return;
  }
  std::string made(image);
  put_entry_waits(made, *found);
  if (made.size() != image.size()) FAIL("another size");
  std::vector<bool> may_change(image.size());
  const auto allow = [&](std::uint64_t begin, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      may_change.at(static_cast<std::size_t>(begin) + i) = true;
  };
  for (const CodeKernel& one : found->kernels) {
    if (one.reason) continue;
    if ((one.form == InPlace) != (one.room == 0)) FAIL("no form");
    if (one.form != Moved && !one.numbers.empty()) FAIL("numbers of what does not move");
    if (one.form == Moved) {
      check_moved(image, made, one);
      allow(one.code, static_cast<std::size_t>(one.room - one.code) + instruction_bytes);
      for (const std::uint64_t place : one.numbers) allow(place, sizeof(std::uint32_t));
      continue;
    }
    allow(one.code, instruction_bytes);
    if (one.form == Detour) allow(one.room, entry_wait_bytes);
  }
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (made[i] != image[i] && !may_change[i]) FAIL("byte " << i << " has changed");
  }
  const auto again = read_code_kernels(made, why);
  if (!again || again->kernels.size() != found->kernels.size()) FAIL("it cannot be read any more");
  for (std::size_t i = 0; i < again->kernels.size(); ++i) {
    const Reason before = found->kernels[i].reason;
    if (again->kernels[i].reason != (before ? *before : OwnWait)) FAIL("kernel " << i);
  }
}

}  // namespace

TEST_CASE("Kernels of sm_90 can be given a wait unless they wait or trigger themselves",
          "[entry_wait]") {
  const Code code;
  const CodeKernels found = code.kernels();
  CHECK(found.architecture == 90);
  CHECK(found.kernels.size() == 7);
  for (const char* name : {"plain", "empty", "stack", "calls", "writes_variable"}) {
    INFO(name);
    CHECK(code.reason(name) == Reason());
    CHECK(code.kernel(name).registers > 0);
    CHECK(code.kernel(name).code == code.text(name));
  }
  CHECK(code.reason("waits") == OwnWait);
  CHECK(code.reason("triggers") == OwnTrigger);
}

TEST_CASE("The wait replaces the load of a stack pointer that the kernel does not use",
          "[entry_wait]") {
  const Code code;
  for (const char* name : {"plain", "empty", "calls", "writes_variable"}) {
    INFO(name);
    CHECK(code.kernel(name).form == InPlace);
  }
  CHECK(code.kernel("stack").form == Moved);
  Code made;
  made.bytes = code.bytes;
  put_entry_waits(made.bytes, code.kernels());
  const std::uint64_t begin = code.text("plain");
  CHECK(made.get<std::uint64_t>(begin) == 0x000000000000782e);
  CHECK(made.get<std::uint64_t>(begin + 8) == 0x000fe20000000000);
  const auto rest = code.text_bytes("plain") - 16;
  CHECK((made.bytes.substr(begin + 16, rest) == code.bytes.substr(begin + 16, rest)));
}

TEST_CASE("A load of the stack pointer with another schedule than a load's stays", "[entry_wait]") {
  const std::uint64_t begin = Code().text("plain");
  const auto with_schedule = [&](std::uint64_t bits, std::uint64_t mask) {
    Code code;
    code.set(begin + 8, (code.get<std::uint64_t>(begin + 8) & ~mask) | bits);
    CHECK(code.reason("plain") == Reason());
    return code.kernel("plain").form == InPlace;
  };
  const auto write_barrier = [&](std::uint64_t number) {
    return with_schedule(number << 46, std::uint64_t{7} << 46);
  };
  for (std::uint64_t stall = 0; stall < 16; ++stall) {
    CHECK(with_schedule(stall << 41, std::uint64_t{15} << 41));
  }
  for (std::uint64_t number = 0; number < 8; ++number)
    CHECK(write_barrier(number) == (number != 6));
  for (std::uint64_t number = 0; number < 8; ++number) {
    CHECK(with_schedule(number << 49, std::uint64_t{7} << 49) == (number == 7));
  }
  for (int bit = 52; bit < 62; ++bit) CHECK_FALSE(with_schedule(std::uint64_t{1} << bit, 0));
}

TEST_CASE("A kernel needs no padding where the wait is in place", "[entry_wait]") {
  Code code;
  code.set(code.kernel("plain").code + code.text_bytes("plain") - 16, exit_low);
  CHECK(code.kernel("plain").form == InPlace);
  code.force_detour("plain");
  CHECK(code.reason("plain") == NoRoom);
}

TEST_CASE("A kernel that uses its stack pointer waits behind the load of it", "[entry_wait]") {
  for (const char* name : {"stack", "plain", "empty", "calls", "writes_variable"}) {
    INFO(name);
    Code code;
    code.force_move(name);
    REQUIRE(code.kernel(name).form == Moved);
    Code made;
    made.bytes = code.bytes;
    put_entry_waits(made.bytes, code.kernels());
    const std::uint64_t begin = code.text(name);
    CHECK(made.get<std::uint64_t>(begin) == 0x00000a00ff017b82);
    CHECK(made.get<std::uint64_t>(begin + 16) == 0x000000000000782e);
    CHECK(made.get<std::uint64_t>(begin + 24) == 0x000fe20000000000);
    const std::uint64_t moved = code.text_bytes(name) - 32;
    CHECK((made.bytes.substr(begin + 32, moved) == code.bytes.substr(begin + 16, moved)));
    // Wherever it ended, it ends one instruction further down.
    REQUIRE_FALSE(code.exits(name).empty());
    for (const std::uint64_t place : code.exits(name)) {
      const auto before = code.get<std::uint32_t>(place);
      CHECK(made.get<std::uint32_t>(place) == before + 16);
      CHECK((made.get<std::uint64_t>(begin + before + 16) & 0xfff) == 0x94d);
    }
  }
}

TEST_CASE("Functions behind a kernel's code move along", "[entry_wait]") {
  Code code;
  code.force_move("calls");
  const std::uint64_t place = code.symbol_place("$calls$");
  const auto before = code.get<Elf64_Sym>(place).st_value;
  REQUIRE(before > 0);
  Code made;
  made.bytes = code.bytes;
  put_entry_waits(made.bytes, code.kernels());
  CHECK(made.get<Elf64_Sym>(place).st_value == before + 16);
}

TEST_CASE("Code stays where it is if somebody may find an instruction where it was",
          "[entry_wait]") {
  Code whole;
  whole.force_move("calls");
  const auto form_with = [&](std::uint64_t place, const auto& value) {
    Code code = whole;
    code.set(place, value);
    CHECK(code.reason("calls") == Reason());
    return code.kernel("calls").form;
  };
  CHECK(whole.kernel("calls").form == Moved);
  const std::uint64_t room = whole.kernel("calls").room - whole.text("calls");

  // Facts that nobody knows, that name no instruction of it, or that are cut off.
  const std::uint64_t facts = whole.facts("calls");
  CHECK(form_with(facts + 1, std::uint8_t{0xee}) == Detour);
  CHECK(form_with(facts, std::uint32_t{0x000fee03}) == Moved);  // a number, which is too small
  CHECK(form_with(facts, std::uint32_t{0x0010ee03}) == Detour);
  // Pairs: their second numbers, or their first ones, are of instructions.
  struct Pair {
    std::uint32_t head, first, second;
  };
  const std::uint64_t pairs = whole.fact("calls", 0x17);
  REQUIRE(whole.get<std::uint16_t>(pairs + 2) == 12);
  const auto moved_numbers = [&](std::uint8_t what, std::uint32_t first, std::uint32_t second) {
    Code code = whole;
    code.set(pairs, Pair{0x00080004U | static_cast<std::uint32_t>(what) << 8U, first, second});
    code.set(pairs + 12, std::uint32_t{0x00015003});  // plain
    std::vector<std::uint64_t> found;
    if (code.kernel("calls").form != Moved) return found;
    for (const std::uint64_t place : code.kernel("calls").numbers) {
      if (place >= pairs && place < pairs + 12) found.push_back(place - pairs);
    }
    check_waits(code.bytes);
    return found;
  };
  CHECK(moved_numbers(0x55, 1, 32) == std::vector<std::uint64_t>{8});
  CHECK(moved_numbers(0x55, 16, 32).empty());
  CHECK(moved_numbers(0x55, 1, 33).empty());
  CHECK(moved_numbers(0x44, 32, 0xf0ff) == std::vector<std::uint64_t>{4});
  CHECK(moved_numbers(0x44, 33, 0xf0ff).empty());
  const std::uint64_t exit = whole.exits("calls").front();
  for (const std::uint32_t number : {0U, 8U, 17U, static_cast<unsigned>(room)}) {
    INFO(number);
    CHECK(form_with(exit, number) == Detour);
  }
  CHECK(form_with(exit, static_cast<std::uint32_t>(room) - 16) == Moved);
  CHECK(form_with(facts + 2, std::uint16_t{0xffff}) == Detour);
  // None, or two of them.
  const std::uint64_t section = whole.section_place(whole.find_section(".nv.info.calls"));
  CHECK(form_with(section + offsetof(Elf64_Shdr, sh_info), std::uint32_t{0}) == Detour);
  const std::uint64_t other = whole.section_place(whole.find_section(".nv.info.plain"));
  CHECK(form_with(other + offsetof(Elf64_Shdr, sh_info),
                  static_cast<std::uint32_t>(whole.find_section(".text.calls"))) == Detour);

  // Functions of it that begin between two instructions, or that others know.
  const std::uint64_t symbol = whole.symbol_place("$calls$");
  CHECK(form_with(symbol + offsetof(Elf64_Sym, st_value), std::uint64_t{24}) == Detour);
  const std::uint64_t relocation =
      whole.section(whole.find_section(".rela.nv.constant4")).sh_offset;
  const Elf64_Shdr symbols = whole.section(whole.find_section(".symtab"));
  const std::uint64_t index = (symbol - symbols.sh_offset) / sizeof(Elf64_Sym);
  const auto info = whole.get<Elf64_Rela>(relocation).r_info;
  CHECK(form_with(relocation + offsetof(Elf64_Rela, r_info),
                  ELF64_R_INFO(index, ELF64_R_TYPE(info))) == Detour);

  // Its last instruction would stand beyond what is said to be its code.
  const Elf64_Shdr table = whole.section(whole.find_section(".symtab"));
  for (std::uint64_t at = table.sh_offset; at < table.sh_offset + table.sh_size;
       at += sizeof(Elf64_Sym)) {
    const auto one = whole.get<Elf64_Sym>(at);
    if (one.st_shndx != whole.find_section(".text.calls") || (one.st_other & 0x10) == 0) continue;
    const std::uint64_t size = at + offsetof(Elf64_Sym, st_size);
    CHECK(form_with(size, room + 16) == Moved);
    CHECK(form_with(size, room + 15) == Detour);
  }

  // A branch to an address in a register.
  CHECK(form_with(whole.text("calls") + 16, std::uint64_t{0xfffffffc02007949}) == Detour);
}

TEST_CASE("Code moves where one instruction of padding is", "[entry_wait]") {
  Code code;
  code.force_move("plain");
  const std::uint64_t room = code.kernel("plain").room;
  const std::uint64_t end = code.text("plain") + code.text_bytes("plain");
  for (std::uint64_t at = room; at < end - 16; at += 16) {
    code.set(at, exit_low);
    code.set(at + 8, exit_high);
  }
  CHECK(code.reason("plain") == NoRoom);
  code.set(end - 32, to_itself_low);
  code.set(end - 24, to_itself_high);
  CHECK(code.kernel("plain").form == Moved);
  check_waits(code.bytes);
  code.set(end - 16, to_itself_low);
  code.set(end - 8, to_itself_high);
  CHECK(code.reason("plain") == NoRoom);
}

TEST_CASE("A kernel goes to its padding, waits there and comes back", "[entry_wait]") {
  Code code;
  code.force_detour("empty");
  Code made;
  made.bytes = code.bytes;
  put_entry_waits(made.bytes, code.kernels());
  const std::uint64_t begin = code.text("empty");
  // LDC R1, EXIT and BRA to itself stand before the padding.
  REQUIRE(code.kernel("empty").room == begin + 0x30);
  const std::vector<std::uint64_t> wanted = {
      0x0000000000087947, 0x000fea0003800000,                  // BRA 0x30
      exit_low,           exit_high,                           //
      to_itself_low,      to_itself_high,                      //
      0x00000a00ff017b82, code.get<std::uint64_t>(begin + 8),  // LDC R1, c[0x0][0x28]
      0x000000000000782e, 0x000fe20000000000,                  // ACQBULK
      0xfffffffc00ec7947, 0x000fea000383ffff,                  // BRA 0x10
      0x0000000000007918};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    INFO(i);
    CHECK(made.get<std::uint64_t>(begin + 8 * i) == wanted[i]);
  }
}

TEST_CASE("Nothing changes but what a wait needs, and no kernel gets a second wait",
          "[entry_wait]") {
  for (const char* name : {"entry_waits.cubin", "variables.cubin", "functions.cubin"}) {
    INFO(name);
    const std::string image = test_image(name);
    check_waits(image);
    std::string why;
    std::string made = image;
    put_entry_waits(made, *read_code_kernels(image, why));
    CHECK(made != image);
  }
}

TEST_CASE("A kernel that begins in another way gets no wait", "[entry_wait]") {
  Code code;
  const std::uint64_t begin = code.text("plain");
  const auto high = code.get<std::uint64_t>(begin + 8);
  code.set(begin + 8, high ^ (std::uint64_t{1} << 60));  // another schedule
  CHECK(code.reason("plain") == Reason());
  code.set(begin + 8, high ^ 1);  // another operand
  CHECK(code.reason("plain") == Entry);
  code.set(begin + 8, high);
  code.set(begin, code.get<std::uint64_t>(begin) ^ 0x10000);  // another register
  CHECK(code.reason("plain") == Entry);
  CHECK(code.reason("empty") == Reason());
}

TEST_CASE("A kernel that does not begin where its code does gets no wait", "[entry_wait]") {
  Code code;
  const std::uint64_t place = code.symbol_place("plain");
  auto symbol = code.get<Elf64_Sym>(place);
  symbol.st_value = 16;
  code.set(place, symbol);
  CHECK(code.reason("plain") == Entry);
  symbol.st_value = 0;
  symbol.st_shndx = static_cast<Elf64_Half>(code.find_section(".text.empty"));
  code.set(place, symbol);
  CHECK(code.reason("plain") == Entry);  // two in one place
  CHECK(code.reason("empty") == Entry);
}

TEST_CASE("A detour wants three instructions of padding behind a branch to itself",
          "[entry_wait]") {
  Code whole;
  whole.force_detour("plain");
  const std::uint64_t begin = whole.text("plain");
  const std::uint64_t end = begin + whole.text_bytes("plain");
  const auto with = [&](std::uint64_t place, std::uint64_t low, std::uint64_t high) {
    Code code = whole;
    code.set(place, low);
    code.set(place + 8, high);
    return code.kernel("plain");
  };
  CHECK(with(end - 4 * 16, to_itself_low, to_itself_high).reason == Reason());
  CHECK(with(end - 4 * 16, to_itself_low, to_itself_high).room == end - 3 * 16);
  CHECK(with(end - 3 * 16, to_itself_low, to_itself_high).reason == NoRoom);
  CHECK(with(end - 16, to_itself_low, to_itself_high).reason == NoRoom);
  const std::uint64_t room = whole.kernel("plain").room;
  CHECK(with(room - 16, exit_low, exit_high).reason == NoRoom);
  CHECK(with(room - 16, to_itself_low, to_itself_high ^ 1).reason == NoRoom);
  CHECK(with(room - 16, to_itself_low ^ 0x10000, to_itself_high).reason == NoRoom);
}

TEST_CASE("Padding in which a function begins is no room", "[entry_wait]") {
  Code code;
  code.force_detour("calls");
  const std::uint64_t place = code.symbol_place("$calls$");
  auto symbol = code.get<Elf64_Sym>(place);
  const std::uint64_t room = code.kernel("calls").room - code.text("calls");
  symbol.st_value = room - 16;
  code.set(place, symbol);
  CHECK(code.reason("calls") == Reason());
  symbol.st_value = room;
  code.set(place, symbol);
  CHECK(code.reason("calls") == NoRoom);
}

TEST_CASE("Instructions that the driver changes stay where they are", "[entry_wait]") {
  Code code;
  CHECK(code.kernel("plain").form == InPlace);
  code.force_detour("plain");
  const std::uint64_t room = code.kernel("plain").room - code.text("plain");
  const std::uint64_t place = code.section_place(code.find_section(".rela.nv.constant4"));
  auto section = code.get<Elf64_Shdr>(place);
  section.sh_info = static_cast<Elf64_Word>(code.find_section(".text.plain"));
  code.set(place, section);
  for (const auto& [offset, wanted] : {std::pair{std::uint64_t{16}, Reason()},
                                       {std::uint64_t{0}, Reason(Relocation)},
                                       {std::uint64_t{8}, Reason(Relocation)},
                                       {room - 16, Reason()},
                                       {room, Reason(Relocation)}}) {
    INFO(offset);
    code.set(section.sh_offset, offset);
    CHECK(code.reason("plain") == wanted);
    CHECK(code.reason("empty") == Reason());
  }
  // Changed to what, nobody knows here.
  Code changed;
  changed.set(place, section);
  changed.set(section.sh_offset, std::uint64_t{16});
  CHECK(changed.reason("plain") == Reason());
  CHECK(changed.kernel("plain").form == Detour);
}

TEST_CASE("A wait or trigger in a function of the image is any kernel's", "[entry_wait]") {
  Code code;
  const auto make_function = [&](const char* name) {
    const std::uint64_t place = code.symbol_place(name);
    auto symbol = code.get<Elf64_Sym>(place);
    symbol.st_other = 0;
    code.set(place, symbol);
  };
  make_function("triggers");
  CHECK(code.kernels().kernels.size() == 6);
  CHECK(code.reason("plain") == OwnTrigger);
  make_function("waits");
  CHECK(code.kernels().kernels.size() == 5);
  CHECK(code.reason("plain") == OwnWait);
  code = Code();
  make_function("empty");
  CHECK(code.reason("plain") == Reason());
}

TEST_CASE("Code of another architecture and code that is not linked get no wait", "[entry_wait]") {
  Code code;
  Elf64_Ehdr header = code.header();
  header.e_type = ET_REL;
  code.set(0, header);
  for (const CodeKernel& one : code.kernels().kernels) CHECK(one.reason == Unlinked);
  header.e_type = ET_EXEC;
  // The number's place is another before version 8 of the format.
  header.e_flags = header.e_ident[EI_ABIVERSION] >= 8 ? 100U << 8 : 100U;
  code.set(0, header);
  CHECK(code.kernels().architecture == 100);
  for (const CodeKernel& one : code.kernels().kernels) CHECK(one.reason == Architecture);
  header.e_ident[EI_ABIVERSION] = 7;
  header.e_flags = 0x5a055a;
  code.set(0, header);
  CHECK(code.reason("plain") == Reason());
}

TEST_CASE("Code that lies where something else does is refused", "[entry_wait]") {
  Code code;
  const std::uint64_t place = code.section_place(code.find_section(".text.plain"));
  auto section = code.get<Elf64_Shdr>(place);
  section.sh_offset = code.text("empty");
  for (const auto type : {Elf64_Word{SHT_PROGBITS}, Elf64_Word{SHT_NULL}}) {
    INFO(type);
    section.sh_type = type;
    code.set(place, section);
    CHECK(code.refusal() ==
          "its machine code cannot be read: code and another part of it lie in one place");
  }
}

TEST_CASE("Every reason against a wait is in the table once", "[entry_wait]") {
  std::size_t index = 0;
  for (const NoEntryWaitInfo& one : no_entry_wait_table()) {
    CHECK(one.reason == static_cast<NoEntryWait>(index++));
    CHECK(&info_of(one.reason) == &one);
  }
  CHECK(index == static_cast<std::size_t>(NoRoom) + 1);
}

TEST_CASE("Machine code that is cut off or damaged never leads beyond its end", "[entry_wait]") {
  const std::string image = test_image("entry_waits.cubin");
  for (std::size_t bytes = 0; bytes < image.size(); bytes += 61 * case_step) {
    check_waits(image.substr(0, bytes));
  }
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  // What leads to the rest stands in these: hit as often as all the code.
  const auto header = Code().header();
  for (int i = 0; i < 1500; i += case_step) {
    std::string damaged = image;
    for (std::size_t k = below(4) + 1; k > 0; --k) {
      const std::size_t at = below(2) == 0 ? below(image.size())
                                           : static_cast<std::size_t>(header.e_shoff) +
                                                 below(header.e_shnum * sizeof(Elf64_Shdr));
      damaged[at] = static_cast<char>(random());
    }
    check_waits(damaged);
  }
}

TEST_CASE("Machine code is found in cubins, fatbins and sections of the host's files",
          "[entry_wait]") {
  const std::string alone = test_image("variables.cubin");
  const auto found_in = [&](const std::string& file) {
    std::vector<std::string> found;
    const auto images = for_each_machine_code(
        BufferSource(file), [&](std::string_view one) { found.emplace_back(one); });
    REQUIRE(images);
    CHECK(images->damage.empty());
    CHECK(images->machine_code == found.size());
    return found;
  };
  const std::vector<std::string> once = {alone};
  CHECK(found_in(alone) == once);
  std::string both;
  for (const auto& one : std::filesystem::directory_iterator(CONTEXTUNE_TEST_IMAGES)) {
    if (one.path().extension() != ".fatbin") continue;
    INFO(one.path());
    const std::string fatbin = test_image(one.path().filename().string());
    CHECK(found_in(fatbin) == once);
    if (!both.empty()) continue;
    both = fatbin + std::string((8 - fatbin.size() % 8) % 8 + 16, '\0') + fatbin;
  }
  // An object file with two fatbins in its section, and a gap between them.
  const std::string names("\0.nv_fatbin\0", 12);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_X86_64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[3]{};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 1;
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = sizeof header + names.size();
  sections[2].sh_size = both.size();
  header.e_shoff = sections[2].sh_offset + both.size();
  std::string object(reinterpret_cast<const char*>(&header), sizeof header);
  object += names + both;
  object.append(reinterpret_cast<const char*>(sections), sizeof sections);
  CHECK(found_in(object) == std::vector<std::string>{alone, alone});
  const auto none = [](std::string_view) { FAIL("it has none"); };
  CHECK_FALSE(for_each_machine_code(BufferSource("int main() {}"), none));
  CHECK_FALSE(for_each_machine_code(BufferSource(""), none));
}

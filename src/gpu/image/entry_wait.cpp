#include "gpu/image/entry_wait.hpp"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "gpu/image/code_facts.hpp"
#include "gpu/image/code_flow.hpp"
#include "gpu/image/kernel_image.hpp"
#include "gpu/image/stack_pointer.hpp"

namespace contextune::gpu {
namespace {

constexpr std::array<NoEntryWaitInfo, 7> no_entry_waits = {{
    {NoEntryWait::Architecture, "architecture", "Its machine code is not for sm_90."},
    {NoEntryWait::Unlinked, "unlinked",
     "Its image is not linked yet, so that code which it calls may be missing."},
    {NoEntryWait::OwnWait, "own_wait",
     "It, or a function of its image, waits for the kernel before by itself."},
    {NoEntryWait::OwnTrigger, "own_trigger",
     "It, or a function of its image, lets the next kernel start early by itself."},
    {NoEntryWait::Entry, "entry", "It does not begin with the load of its stack pointer."},
    {NoEntryWait::Relocation, "relocation",
     "The driver changes instructions in the place that a wait needs."},
    {NoEntryWait::NoRoom, "no_room",
     "Its code has no padding behind it, or too little for a detour where the code cannot move."},
}};

constexpr Elf64_Half machine_of_gpus = 190;
constexpr unsigned char entry_mark = 0x10;  // in a symbol's st_other: a kernel
constexpr std::uint64_t most_parts = 1U << 22;
constexpr Elf64_Word type_of_facts = SHT_LOPROC;  // of the sections .nv.info

constexpr unsigned operation_wait = 0x82e;
constexpr unsigned operation_trigger = 0x82d;
/// Whatever the form of their operands.
constexpr unsigned operation_without_form = 0x1ff;
constexpr std::array<unsigned, 4> operations_by_map = {0x1b4, 0x1b5, 0x1b6, 0x1b8};
constexpr unsigned operation_on_map = 0x1b9;
constexpr std::uint64_t kinds_on_map = 0x1f0000;  // of the high word; 0: its cached copy goes

/// How an instruction bears on the order of kernels.
enum class Order : std::uint8_t { None, Wait, Trigger, ByMap, OnMap };
constexpr auto orders = [] {
  std::array<Order, 0x1000> table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    for (const unsigned by_map : operations_by_map)
      if ((i & operation_without_form) == by_map) table[i] = Order::ByMap;
    if ((i & operation_without_form) == operation_on_map) table[i] = Order::OnMap;
  }
  table[operation_wait] = Order::Wait;
  table[operation_trigger] = Order::Trigger;
  return table;
}();

constexpr std::uint64_t nop = 0x7918;
constexpr Instruction load_stack_pointer{0x00000a00ff017b82, 0x0000000000000800};
constexpr Instruction wait{0x000000000000782e, 0x000fe20000000000};

/// A branch by so many bytes from the instruction behind it.
constexpr Instruction branch(std::int64_t bytes) {
  const auto n = static_cast<std::uint64_t>(bytes / 4);
  const auto upper = static_cast<std::uint64_t>(bytes / 4 >> 38);
  return {0x7947 | (n & 0xff) << 16 | (n >> 8) << 34, 0x000fea0003800000 | (upper & 0x3ffff)};
}
constexpr Instruction to_itself = branch(-static_cast<std::int64_t>(instruction_bytes));
static_assert(to_itself.low == 0xfffffffc00fc7947 && (to_itself.high & operand_bits) == 0x383ffff);

struct Part {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool changes = false;
};

/// Reads machine code and believes none of it.
class CodeReader {
 public:
  CodeReader(std::string_view image, std::string& why) : image_(image), why_(why) {}

  std::optional<CodeKernels> read() {
    if (!read_header() || !read_sections() || !read_symbols() || !read_relocations()) {
      return std::nullopt;
    }
    read_facts();
    if (known()) look_at_functions();
    look_at_names();
    for (std::size_t i = 1; i < symbols_.size(); ++i) {
      if (is_kernel(symbols_[i]) && !add_kernel(i)) return std::nullopt;
    }
    return std::move(found_);
  }

 private:
  bool fails(std::string_view what) {
    why_ = "its machine code cannot be read: " + std::string(what);
    return false;
  }

  template <typename T>
  [[nodiscard]] std::optional<T> at(std::uint64_t offset) const {
    if (offset > image_.size() || image_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, image_.data() + offset, sizeof(T));
    return value;
  }

  template <typename T>
  [[nodiscard]] bool read_table(const Elf64_Shdr& section, std::vector<T>& table) const {
    if (!inside(section)) return false;
    table.resize(static_cast<std::size_t>(section.sh_size / sizeof(T)));
    if (!table.empty()) {
      std::memcpy(table.data(), image_.data() + section.sh_offset, table.size() * sizeof(T));
    }
    return true;
  }

  [[nodiscard]] bool inside(const Elf64_Shdr& section) const {
    return section.sh_type == SHT_NOBITS || (section.sh_offset <= image_.size() &&
                                             section.sh_size <= image_.size() - section.sh_offset);
  }

  [[nodiscard]] std::string_view text_at(std::size_t table, std::uint64_t offset) const {
    const Elf64_Shdr& texts = sections_[table];
    if (texts.sh_type == SHT_NOBITS || offset >= texts.sh_size) return {};
    const std::string_view rest = image_.substr(static_cast<std::size_t>(texts.sh_offset + offset),
                                                static_cast<std::size_t>(texts.sh_size - offset));
    const std::size_t end = rest.find('\0');
    return end == rest.npos ? std::string_view() : rest.substr(0, end);
  }

  bool read_header() {
    if (image_.size() > most_code_bytes) return fails("it is too large");
    const auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
      return fails("it has no ELF header");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != machine_of_gpus) {
      return fails("it is not code for a GPU");
    }
    header_ = *header;
    constexpr unsigned char moved = 8;  // version of the format: since it, a byte further up
    found_.architecture = static_cast<int>(
        (header_.e_flags >> (header_.e_ident[EI_ABIVERSION] >= moved ? 8U : 0U)) & 0xff);
    return true;
  }

  bool read_sections() {
    const auto first = at<Elf64_Shdr>(header_.e_shoff);
    if (header_.e_shoff == 0 || header_.e_shentsize != sizeof(Elf64_Shdr) || !first) {
      return fails("it has no sections");
    }
    // Counts that do not fit into the header are in the first section.
    const std::uint64_t count = header_.e_shnum != 0 ? header_.e_shnum : first->sh_size;
    names_ = header_.e_shstrndx != SHN_XINDEX ? header_.e_shstrndx : first->sh_link;
    if (count == 0 || count > most_parts || names_ >= count) return fails("it has no sections");
    Elf64_Shdr table{};
    table.sh_offset = header_.e_shoff;
    table.sh_size = count * sizeof(Elf64_Shdr);
    if (!read_table(table, sections_)) return fails("it is cut off");
    for (Elf64_Shdr& one : sections_) {
      if (inside(one)) continue;
      // The compiler writes some kinds of section of its own with a size but no content.
      if (one.sh_type <= SHT_LOPROC) return fails("it is cut off");
      one.sh_type = SHT_NOBITS;
    }
    return what_changes_lies_apart() || fails("code and another part of it lie in one place");
  }

  /// Code, what is said of it, and symbols: what is changed there is then changed nowhere else.
  [[nodiscard]] bool what_changes_lies_apart() const {
    std::vector<Part> parts = {
        {0, sizeof(Elf64_Ehdr)},
        {header_.e_shoff, header_.e_shoff + sections_.size() * sizeof(Elf64_Shdr)}};
    if (header_.e_phoff != 0 && header_.e_phoff <= image_.size()) {
      parts.push_back({header_.e_phoff,
                       header_.e_phoff + std::uint64_t{header_.e_phnum} * header_.e_phentsize});
    }
    for (const Elf64_Shdr& one : std::span(sections_).subspan(1)) {  // the first is none
      if (one.sh_type == SHT_NOBITS || one.sh_size == 0) continue;
      const bool changes =
          is_code(one) || one.sh_type == type_of_facts || one.sh_type == SHT_SYMTAB;
      parts.push_back({one.sh_offset, one.sh_offset + one.sh_size, changes});
    }
    std::ranges::sort(parts, {}, &Part::begin);
    std::uint64_t reached = 0;
    std::uint64_t changes_reached = 0;
    for (const Part& one : parts) {
      if (one.begin < (one.changes ? reached : changes_reached)) return false;
      reached = std::max(reached, one.end);
      if (one.changes) changes_reached = std::max(changes_reached, one.end);
    }
    return true;
  }

  bool read_symbols() {
    const auto found = std::ranges::find_if(
        sections_, [](const Elf64_Shdr& one) { return one.sh_type == SHT_SYMTAB; });
    if (found == sections_.end()) return fails("it has no symbols");
    if (found->sh_entsize != sizeof(Elf64_Sym) || found->sh_link >= sections_.size()) {
      return fails("its symbols are of another form");
    }
    symbol_names_ = found->sh_link;
    symbols_begin_ = found->sh_offset;
    if (!read_table(*found, symbols_)) return fails("it is cut off");
    const auto index = static_cast<Elf64_Word>(found - sections_.begin());
    std::vector<Elf64_Word> long_indices;
    for (const Elf64_Shdr& one : sections_) {
      if (one.sh_type != SHT_SYMTAB_SHNDX || one.sh_link != index) continue;
      if (!read_table(one, long_indices)) return fails("it is cut off");
    }
    section_of_.resize(symbols_.size());
    symbols_in_.resize(sections_.size());
    for (std::size_t i = 0; i < symbols_.size(); ++i) {
      std::size_t section = symbols_[i].st_shndx;
      if (section == SHN_XINDEX) {
        section = i < long_indices.size() ? long_indices[i] : 0;
      } else if (section >= SHN_LORESERVE) {
        section = 0;
      }
      if (section >= sections_.size()) return fails("a symbol is in no section");
      section_of_[i] = section;
      symbols_in_[section].push_back(i);
    }
    return true;
  }

  bool read_relocations() {
    relocated_.resize(sections_.size());
    is_named_.resize(sections_.size());
    for (const Elf64_Shdr& one : sections_) {
      const bool with_addend = one.sh_type == SHT_RELA;
      if ((!with_addend && one.sh_type != SHT_REL) || one.sh_size == 0) continue;
      const std::uint64_t bytes = with_addend ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
      if (one.sh_info >= sections_.size() || one.sh_entsize != bytes) {
        return fails("its relocations are of another form");
      }
      const bool is_loaded = (sections_[one.sh_info].sh_flags & SHF_ALLOC) != 0;
      for (std::uint64_t k = 0; k + bytes <= one.sh_size; k += bytes) {
        const auto relocation = *at<Elf64_Rel>(one.sh_offset + k);
        relocated_[one.sh_info].push_back(relocation.r_offset);
        const std::uint64_t symbol = ELF64_R_SYM(relocation.r_info);
        if (symbol >= symbols_.size()) return fails("its relocations are of another form");
        if (is_loaded) is_named_[section_of_[symbol]] = true;
      }
    }
    return true;
  }

  /// The image's table of facts, and where those of kernels are.
  void read_facts() {
    constexpr std::string_view name = ".nv.info";
    constexpr std::uint8_t fact_registers = 0x2f;
    facts_of_.resize(sections_.size());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& section = sections_[i];
      if (section.sh_type != type_of_facts) continue;
      const std::string_view of = text_at(names_, section.sh_name);
      if (!of.starts_with(name)) continue;
      if (of != name) {
        if (section.sh_info < sections_.size()) facts_of_[section.sh_info].push_back(i);
        continue;
      }
      // Pairs of symbol and number. Registers are only shown.
      (void)for_each_fact(bytes_of(section), [&](std::uint8_t fact, std::string_view value) {
        if (fact == fact_registers && value.size() >= 8) {
          registers_[number_in(value)] = number_in(value.substr(4));
        }
        return true;
      });
    }
  }

  [[nodiscard]] bool is_kernel(const Elf64_Sym& symbol) const {
    return ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && (symbol.st_other & entry_mark) != 0 &&
           section_of_[static_cast<std::size_t>(&symbol - symbols_.data())] != 0;
  }

  [[nodiscard]] std::string_view bytes_of(const Elf64_Shdr& section) const {
    return image_.substr(static_cast<std::size_t>(section.sh_offset),
                         static_cast<std::size_t>(section.sh_size));
  }

  [[nodiscard]] static bool is_code(const Elf64_Shdr& section) {
    return (section.sh_flags & SHF_EXECINSTR) != 0;
  }

  [[nodiscard]] bool known() const { return found_.architecture == entry_wait_architecture; }

  [[nodiscard]] static std::size_t count_of(const Elf64_Shdr& section) {
    return section.sh_type == SHT_NOBITS
               ? 0
               : static_cast<std::size_t>(section.sh_size / instruction_bytes);
  }
  [[nodiscard]] Instruction instruction(const Elf64_Shdr& section, std::size_t index) const {
    return *at<Instruction>(section.sh_offset + index * instruction_bytes);
  }

  /// Waits, triggers and tensor maps of the author's.
  struct AuthorsOwn {
    bool waits = false;
    bool triggers = false;
    bool maps = false;
    bool fences_maps = false;

    [[nodiscard]] std::optional<NoEntryWait> reason() const {
      if (waits) return NoEntryWait::OwnWait;
      if (triggers) return NoEntryWait::OwnTrigger;
      return std::nullopt;
    }
  };

  [[nodiscard]] AuthorsOwn authors_own(const Elf64_Shdr& section) const {
    AuthorsOwn own;
    for (std::size_t i = 0, count = count_of(section); i < count; ++i) {
      const Instruction one = instruction(section, i);
      switch (orders[one.operation()]) {
        case Order::None:
          break;
        case Order::Wait:
          own.waits = true;
          break;
        case Order::Trigger:
          own.triggers = true;
          break;
        case Order::ByMap:
          own.maps = true;
          break;
        case Order::OnMap:
          own.fences_maps = own.fences_maps || (one.high & kinds_on_map) == 0;
      }
    }
    return own;
  }

  /// Any kernel may call a function that has code of its own.
  void look_at_functions() {
    std::vector<bool> has_kernel(sections_.size());
    for (std::size_t i = 1; i < symbols_.size(); ++i) {
      if (is_kernel(symbols_[i])) has_kernel[section_of_[i]] = true;
    }
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (has_kernel[i] || !is_code(sections_[i])) continue;
      const AuthorsOwn own = authors_own(sections_[i]);
      in_functions_.waits = in_functions_.waits || own.waits;
      in_functions_.triggers = in_functions_.triggers || own.triggers;
      in_functions_.maps = in_functions_.maps || (own.maps && !own.fences_maps);
    }
  }

  /// Functions that the code takes from the driver, as a call or in the code itself.
  void look_at_names() {
    KernelImage image;
    for (const Elf64_Sym& one : symbols_) {
      image.add_driver_function(text_at(symbol_names_, one.st_name));
    }
    found_.launches = image.launches_kernels;
  }

  bool add_kernel(std::size_t i) {
    const Elf64_Sym& symbol = symbols_[i];
    const Elf64_Shdr& section = sections_[section_of_[i]];
    CodeKernel kernel;
    kernel.symbol = text_at(symbol_names_, symbol.st_name);
    if (kernel.symbol.empty()) return fails("it has a kernel without a name");
    const auto registers = registers_.find(static_cast<std::uint32_t>(i));
    // Before the table had it, the number stood above the symbol's.
    const std::uint64_t count =
        registers != registers_.end() ? registers->second : section.sh_info >> 24;
    kernel.registers = static_cast<int>(std::min<std::uint64_t>(count, 255));
    kernel.code = section.sh_offset;
    AuthorsOwn own;
    if (known()) own = authors_own(section);
    kernel.triggers = own.triggers || in_functions_.triggers;
    kernel.maps = (own.maps && !own.fences_maps) || in_functions_.maps;
    kernel.reason = why_not(i, kernel, own);
    found_.kernels.push_back(std::move(kernel));
    return true;
  }

  std::optional<NoEntryWait> why_not(std::size_t symbol, CodeKernel& kernel,
                                     const AuthorsOwn& own) const {
    const std::size_t index = section_of_[symbol];
    const Elf64_Shdr& section = sections_[index];
    if (!known()) return NoEntryWait::Architecture;
    if (header_.e_type != ET_EXEC) return NoEntryWait::Unlinked;
    if (const auto reason = own.reason()) return reason;
    if (const auto reason = in_functions_.reason()) return reason;
    const std::size_t count = count_of(section);
    if (count < 2 || section.sh_size % instruction_bytes != 0 || symbols_[symbol].st_value != 0 ||
        !is_code(section)) {
      return NoEntryWait::Entry;
    }
    const Instruction first = instruction(section, 0);
    if (first.low != load_stack_pointer.low ||
        (first.high & operand_bits) != load_stack_pointer.high) {
      return NoEntryWait::Entry;
    }
    for (const std::size_t other : symbols_in_[index]) {
      if (other != symbol && is_kernel(symbols_[other])) return NoEntryWait::Entry;
    }
    if (!read_table(section, code_)) return NoEntryWait::Entry;
    if (can_wait_in_place(index)) return std::nullopt;
    std::size_t end = count;  // of the code
    while (end > 0 && instruction(section, end - 1).low == nop) --end;
    // Without a branch to itself in front of it, code might run into the padding.
    const Instruction last = instruction(section, end - 1);
    if (end == count || end < 2 || last.low != to_itself.low ||
        (last.high & operand_bits) != (to_itself.high & operand_bits)) {
      return NoEntryWait::NoRoom;
    }
    kernel.form = EntryWaitForm::Moved;
    kernel.room = section.sh_offset + end * instruction_bytes;
    if (can_move(symbol, end, kernel.numbers)) return std::nullopt;
    kernel.form = EntryWaitForm::Detour;
    kernel.numbers.clear();
    return why_no_detour(symbol, end);
  }

  /// Nobody may miss the load that is in the wait's place: neither its result nor its schedule.
  [[nodiscard]] bool can_wait_in_place(std::size_t index) const {
    const Schedule first(code_.front());
    // Whoever waits for the barrier that the load sets finds it open.
    const bool is_understood =
        first.waits == 0 && first.reuse == 0 && first.read_barrier == Schedule::no_barrier &&
        (first.write_barrier < Schedule::barriers || first.write_barrier == Schedule::no_barrier);
    return is_understood && relocated_[index].empty() && keeps_off_stack_pointer(code_);
  }

  /// Nobody may find an instruction where it was.
  /// @param end      of the code, in instructions
  /// @param numbers  set to where the image has numbers of those that move
  bool can_move(std::size_t symbol, std::size_t end, std::vector<std::uint64_t>& numbers) const {
    const std::size_t index = section_of_[symbol];
    if (symbols_[symbol].st_size < (end + 1) * instruction_bytes || !relocated_[index].empty() ||
        is_named_[index] || facts_of_[index].size() != 1 ||
        flow_of(std::span(code_).first(end)) == CodeFlow::Unknown) {
      return false;
    }
    for (const std::size_t other : symbols_in_[index]) {
      if (symbols_[other].st_value == 0) continue;
      if (!is_later_instruction(symbols_[other].st_value, end * instruction_bytes)) return false;
      numbers.push_back(symbols_begin_ + other * sizeof(Elf64_Sym) + offsetof(Elf64_Sym, st_value));
    }
    const Elf64_Shdr& section = sections_[facts_of_[index].front()];
    const auto places = places_of_instructions(bytes_of(section), end * instruction_bytes);
    if (!places) return false;
    for (const std::uint64_t place : *places) numbers.push_back(section.sh_offset + place);
    return true;
  }

  [[nodiscard]] std::optional<NoEntryWait> why_no_detour(std::size_t symbol,
                                                         std::size_t end) const {
    const std::size_t index = section_of_[symbol];
    const std::uint64_t room = end * instruction_bytes;
    if (sections_[index].sh_size - room < entry_wait_bytes) return NoEntryWait::NoRoom;
    for (const std::size_t other : symbols_in_[index]) {
      const std::uint64_t place = symbols_[other].st_value;
      if (place >= room && place < sections_[index].sh_size) return NoEntryWait::NoRoom;
    }
    for (const Elf64_Addr place : relocated_[index]) {
      if (place < instruction_bytes || place >= room) return NoEntryWait::Relocation;
    }
    return std::nullopt;
  }

  const std::string_view image_;
  std::string& why_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::size_t names_ = 0;  ///< the section of the sections' names
  std::vector<Elf64_Sym> symbols_;
  std::uint64_t symbols_begin_ = 0;  ///< in the image
  std::size_t symbol_names_ = 0;
  std::vector<std::size_t> section_of_;               ///< of each symbol; 0: none
  std::vector<std::vector<std::size_t>> symbols_in_;  ///< each section
  std::vector<std::vector<Elf64_Addr>> relocated_;    ///< places in each section
  std::vector<bool> is_named_;                        ///< each section, by what is loaded
  std::vector<std::vector<std::size_t>> facts_of_;    ///< sections, of each section of code
  std::map<std::uint32_t, std::uint32_t> registers_;  ///< by symbol
  AuthorsOwn in_functions_;
  mutable std::vector<Instruction> code_;  ///< the last kernel's
  CodeKernels found_;
};

void put(std::span<char> image, std::uint64_t offset, const Instruction& what) {
  std::memcpy(image.data() + offset, &what, sizeof what);
}

void move_number(std::span<char> image, std::uint64_t place) {
  std::uint32_t number = 0;
  std::memcpy(&number, image.data() + place, sizeof number);
  number += static_cast<std::uint32_t>(instruction_bytes);
  std::memcpy(image.data() + place, &number, sizeof number);
}

}  // namespace

std::span<const NoEntryWaitInfo> no_entry_wait_table() noexcept {
  return no_entry_waits;
}

const NoEntryWaitInfo& info_of(NoEntryWait reason) noexcept {
  return no_entry_waits[static_cast<std::size_t>(reason)];
}

std::string_view name_of(EntryWaitForm form) noexcept {
  constexpr std::array<std::string_view, 3> names = {"in_place", "moved", "detour"};
  return names[static_cast<std::size_t>(form)];
}

std::optional<std::uint64_t> machine_code_bytes(const ByteSource& image) noexcept {
  const auto header = image.read<Elf64_Ehdr>(0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_machine != machine_of_gpus || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  const auto first = image.read<Elf64_Shdr>(header->e_shoff);
  if (!first) return std::nullopt;
  const std::uint64_t count = header->e_shnum != 0 ? header->e_shnum : first->sh_size;
  if (count > most_parts) return std::nullopt;
  std::uint64_t end =
      std::max(header->e_shoff + count * sizeof(Elf64_Shdr),
               header->e_phoff + std::uint64_t{header->e_phnum} * header->e_phentsize);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto section = image.read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return std::nullopt;
    if (section->sh_type == SHT_NOBITS || section->sh_size == 0) continue;
    if (section->sh_size > most_code_bytes || section->sh_offset > most_code_bytes) {
      return std::nullopt;
    }
    const std::uint64_t section_end = section->sh_offset + section->sh_size;
    // The compiler writes some kinds of section of its own with a size but no content.
    if (section->sh_type > SHT_LOPROC && !image.read<char>(section_end - 1)) continue;
    end = std::max(end, section_end);
  }
  return end;
}

std::optional<CodeKernels> read_code_kernels(std::string_view image, std::string& why) {
  return CodeReader(image, why).read();
}

void put_entry_waits(std::span<char> image, const CodeKernels& kernels) noexcept {
  constexpr auto step = static_cast<std::int64_t>(instruction_bytes);
  for (const CodeKernel& one : kernels.kernels) {
    if (one.reason) continue;
    const auto there = static_cast<std::int64_t>(one.room - one.code);
    switch (one.form) {
      case EntryWaitForm::InPlace:
        put(image, one.code, wait);
        break;
      case EntryWaitForm::Moved:
        std::memmove(image.data() + one.code + 2 * instruction_bytes,
                     image.data() + one.code + instruction_bytes,
                     static_cast<std::size_t>(there - step));
        put(image, one.code + instruction_bytes, wait);
        for (const std::uint64_t place : one.numbers) move_number(image, place);
        break;
      case EntryWaitForm::Detour: {
        Instruction first;
        std::memcpy(&first, image.data() + one.code, sizeof first);
        put(image, one.code, branch(there - step));
        put(image, one.room, first);
        put(image, one.room + instruction_bytes, wait);
        // From behind the third to the second of the kernel.
        put(image, one.room + 2 * instruction_bytes, branch(step - (there + 3 * step)));
      }
    }
  }
}

}  // namespace contextune::gpu

#include "gpu/image/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value/stable_hash.hpp"

namespace contextune::gpu {
namespace {

constexpr Elf64_Half machine_cuda = 190;
constexpr unsigned char type_cuda_object = STT_LOPROC;  // before the link
constexpr unsigned char other_managed = 0x04;
constexpr std::uint64_t most_sections = 1U << 22;
constexpr std::uint64_t most_variable_bytes = std::uint64_t{1} << 48;

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Whether the compiler makes the constant itself and no code writes it: texts and tables of the
/// mathematical functions. Several may have one name.
bool is_compilers_constant(std::string_view name) {
  return name.starts_with("__cudart_") || name.starts_with("$str") ||
         name.starts_with("__unnamed_");
}

std::string_view text_at(const std::string& table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::size_t end = table.find('\0', static_cast<std::size_t>(offset));
  if (end == std::string::npos) return {};
  return std::string_view(table).substr(offset, end - offset);
}

class Cubin {
 public:
  Cubin(const ByteSource& image, std::string& why) : image_(image), why_(why) {}

  std::optional<KernelImage> read() {
    if (!read_sections() || !read_symbols()) return std::nullopt;
    named_.resize(sections_.size());
    for (std::size_t i = 1; i < symbols_.size(); ++i) {
      if (!read_symbol(i)) return std::nullopt;
    }
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!all_named(i)) return std::nullopt;
    }
    if (!names_differ() || !hash_code()) return std::nullopt;
    return std::move(code_);
  }

 private:
  bool fails(std::string_view what) {
    why_ = "its machine code cannot be read: " + std::string(what);
    return false;
  }

  template <typename T>
  bool read_table(const Elf64_Shdr& section, std::vector<T>& table) {
    const auto bytes = image_.read_bytes(section.sh_offset, section.sh_size);
    if (!bytes) return false;
    table.resize(bytes->size() / sizeof(T));
    if (!table.empty()) std::memcpy(table.data(), bytes->data(), table.size() * sizeof(T));
    return true;
  }

  bool read_sections() {
    const auto header = image_.read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
      return fails("it has no ELF header");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != machine_cuda) {
      return fails("it is not code for a GPU");
    }
    if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return fails("it has no sections");
    }
    const auto first = image_.read<Elf64_Shdr>(header->e_shoff);
    if (!first) return fails("it is cut off");
    // Counts that do not fit into the header are in the first section.
    const std::uint64_t count = header->e_shnum != 0 ? header->e_shnum : first->sh_size;
    const std::uint64_t names =
        header->e_shstrndx != SHN_XINDEX ? header->e_shstrndx : first->sh_link;
    if (count == 0 || count > most_sections || names >= count) return fails("it has no sections");
    Elf64_Shdr table{};
    table.sh_offset = header->e_shoff;
    table.sh_size = count * sizeof(Elf64_Shdr);
    if (!read_table(table, sections_)) return fails("it is cut off");
    const auto text = image_.read_bytes(sections_[names].sh_offset, sections_[names].sh_size);
    if (!text) return fails("it is cut off");
    section_names_ = *text;
    return true;
  }

  bool read_symbols() {
    const auto found = std::ranges::find_if(
        sections_, [](const Elf64_Shdr& one) { return one.sh_type == SHT_SYMTAB; });
    if (found == sections_.end()) return fails("it has no symbols");
    if (found->sh_entsize != sizeof(Elf64_Sym) || found->sh_link >= sections_.size()) {
      return fails("its symbols are of another form");
    }
    const Elf64_Shdr& names = sections_[found->sh_link];
    const auto text = image_.read_bytes(names.sh_offset, names.sh_size);
    if (!text || !read_table(*found, symbols_)) return fails("it is cut off");
    symbol_names_ = *text;
    const auto index = static_cast<Elf64_Word>(found - sections_.begin());
    for (const Elf64_Shdr& one : sections_) {
      if (one.sh_type == SHT_SYMTAB_SHNDX && one.sh_link == index &&
          !read_table(one, long_indices_)) {
        return fails("it is cut off");
      }
    }
    return true;
  }

  /// Empty: not the memory of variables.
  [[nodiscard]] std::optional<VariableKind> kind_of(std::size_t section) const {
    const std::string_view name = text_at(section_names_, sections_[section].sh_name);
    if (name.starts_with(".nv.constant")) return VariableKind::Constant;
    constexpr std::uint64_t written = SHF_WRITE | SHF_ALLOC;
    if ((sections_[section].sh_flags & written) != written) return std::nullopt;
    // Shared and local memory is new with every launch; .nv.merc is the code in another form.
    for (const std::string_view other : {".nv.shared", ".nv.local", ".nv.merc", ".nv_debug"}) {
      if (name.starts_with(other)) return std::nullopt;
    }
    return VariableKind::Device;
  }

  bool read_symbol(std::size_t i) {
    const Elf64_Sym& symbol = symbols_[i];
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    const std::string_view name = text_at(symbol_names_, symbol.st_name);
    std::size_t section = symbol.st_shndx;
    if (section == SHN_UNDEF) {
      code_.add_driver_function(name);
      return true;
    }
    if (type != STT_OBJECT && type != type_cuda_object) return true;
    if (section == SHN_XINDEX) {
      if (i >= long_indices_.size()) return fails("its symbols are of another form");
      section = long_indices_[i];
    } else if (section == SHN_COMMON) {
      return add_variable(name, symbol, VariableKind::Device);
    } else if (section >= SHN_LORESERVE) {
      return true;
    }
    if (section >= sections_.size()) return fails("a symbol is in no section");
    auto kind = kind_of(section);
    if (!kind) return true;
    if (*kind == VariableKind::Device && (symbol.st_other & other_managed) != 0) {
      kind = VariableKind::Managed;
    }
    if (!add_variable(name, symbol, *kind)) return false;
    named_[section].push_back({symbol.st_value, symbol.st_value + symbol.st_size});
    return true;
  }

  bool add_variable(std::string_view name, const Elf64_Sym& symbol, VariableKind kind) {
    if (name.empty()) return fails("it has a variable without a name");
    if (symbol.st_size > most_variable_bytes || symbol.st_value > most_variable_bytes) {
      return fails("a variable is too large");
    }
    code_.variables.push_back({std::string(name), symbol.st_size, kind});
    return true;
  }

  /// Whether each byte of a section that kernels can write belongs to a variable, but for the gaps
  /// that alignment leaves.
  bool all_named(std::size_t section) {
    const Elf64_Shdr& header = sections_[section];
    std::vector<Extent>& extents = named_[section];
    if (header.sh_size == 0 || kind_of(section) != VariableKind::Device) return true;
    std::ranges::sort(extents, {}, &Extent::begin);
    const std::uint64_t padding = std::max<std::uint64_t>(header.sh_addralign, 1);
    std::uint64_t reached = 0;
    for (const Extent& one : extents) {
      if (one.begin > reached && one.begin - reached >= padding) break;
      reached = std::max(reached, one.end);
    }
    if (reached < header.sh_size && header.sh_size - reached >= padding) {
      return fails("it has memory that no name leads to, in " +
                   std::string(text_at(section_names_, header.sh_name)));
    }
    return true;
  }

  /// A function that is no kernel has no place for parameters; any kernel may call it.
  bool hash_code() {
    constexpr std::string_view text = ".text.";
    constexpr std::string_view parameters = ".nv.constant0.";
    std::set<std::string_view> kernels;
    for (const Elf64_Shdr& one : sections_) {
      const std::string_view name = text_at(section_names_, one.sh_name);
      if (name.starts_with(parameters)) kernels.insert(name.substr(parameters.size()));
    }
    StableHash functions;
    std::map<std::string_view, StableHash> hashes;
    for (const Elf64_Shdr& one : sections_) {
      std::string_view name = text_at(section_names_, one.sh_name);
      const bool is_text = name.starts_with(text);
      if (!is_text && !name.starts_with(".nv.constant")) continue;
      if (one.sh_type == SHT_NOBITS) continue;
      // Numbers that instructions read are in ".nv.constant2.<kernel>" and the like.
      name = is_text ? name.substr(text.size())
                     : name.substr(std::min(name.find('.', parameters.size() - 2), name.size()));
      if (!is_text && !name.empty()) name.remove_prefix(1);
      const auto bytes = image_.read_bytes(one.sh_offset, one.sh_size);
      if (!bytes) return fails("it is cut off");
      (kernels.contains(name) ? hashes[name] : functions).add(*bytes);
    }
    for (auto& [kernel, hash] : hashes) {
      hash.add(functions.value());
      code_.code.emplace(kernel, hash.value());
    }
    return true;
  }

  bool names_differ() {
    auto& variables = code_.variables;
    std::ranges::sort(variables, {}, &ImageVariable::name);
    for (std::size_t i = 1; i < variables.size(); ++i) {
      // The driver finds one of them only.
      if (variables[i].name == variables[i - 1].name && !is_compilers_constant(variables[i].name)) {
        return fails("it has two variables " + variables[i].name);
      }
    }
    variables.erase(std::unique(variables.begin(), variables.end(),
                                [](const ImageVariable& a, const ImageVariable& b) {
                                  return a.name == b.name;
                                }),
                    variables.end());
    return true;
  }

  const ByteSource& image_;
  std::string& why_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<Elf64_Word> long_indices_;
  std::string section_names_;
  std::string symbol_names_;
  std::vector<std::vector<Extent>> named_;  ///< of each section, what its variables cover
  KernelImage code_;
};

}  // namespace

std::optional<KernelImage> read_cubin(const ByteSource& image, std::string& why) {
  return Cubin(image, why).read();
}

}  // namespace contextune::gpu

#include "gpu/driver/kernel_access.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace contextune::gpu {
namespace {

// An address may be made of places, and of these.
constexpr std::uint64_t in_block = std::uint64_t{1} << 62U;  // shared or local memory
constexpr std::uint64_t of_places = in_block - 1;

/// A value, by its origins: the places that its own bits come from, and the memory that was read
/// for it, by the places of its address.
struct Value {
  std::uint64_t from = 0;
  std::uint64_t read = 0;

  bool add(const Value& other) {
    const Value before = *this;
    from |= other.from;
    read |= other.read;
    return from != before.from || read != before.read;
  }
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' ||
         c == '%';
}

/// Without comments, and without the places in the source, which end with their line.
std::string code_of(std::string_view text) {
  std::string code;
  code.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool is_place =
        text.substr(at, 4) == ".loc" && at + 4 < text.size() && !is_word(text[at + 4]);
    if (text.substr(at, 2) == "//" || is_place) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      const std::size_t end = text.find("*/", at + 2);
      at = end == std::string_view::npos ? text.size() : end + 2;
      code += ' ';
    } else {
      code += text[at++];
    }
  }
  return code;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_word(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_word(text[end])) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool is_number(std::string_view word) {
  return std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

/// Commas between brackets do not count.
std::vector<std::string_view> operands_of(std::string_view text) {
  std::vector<std::string_view> operands;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    depth += c == '{' || c == '[' || c == '(' ? 1 : c == '}' || c == ']' || c == ')' ? -1 : 0;
    if (c != ',' || (depth > 0 && at < text.size())) continue;
    operands.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  return operands;
}

bool is_memory(std::string_view operand) {
  return operand.find('[') != std::string_view::npos;
}

/// "ld.global.v2.f32" has ".global".
bool has_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string_view::npos;
       at = name.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if (end == name.size() || name[end] == '.' || name[end] == ':') return true;
  }
  return false;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether its first operand is what it makes of the others, and it does nothing else.
bool is_arithmetic(std::string_view base) {
  return is_one_of(
      base,
      {"abs",  "activemask", "add",  "addc",     "and",      "bfe",  "bfi",       "bfind", "bmsk",
       "brev", "clz",        "cnot", "copysign", "cos",      "cvt",  "cvta",      "div",   "dp2a",
       "dp4a", "ex2",        "fma",  "fns",      "isspacep", "lg2",  "lop3",      "mad",   "mad24",
       "madc", "match",      "max",  "min",      "mma",      "mov",  "movmatrix", "mul",   "mul24",
       "neg",  "not",        "or",   "popc",     "prmt",     "rcp",  "redux",     "rem",   "rsqrt",
       "sad",  "selp",       "set",  "setp",     "shf",      "shfl", "shl",       "shr",   "sin",
       "slct", "sqrt",       "sub",  "subc",     "szext",    "tanh", "testp",     "vote",  "xor"});
}

/// Whether it only orders, ends or hints.
bool touches_nothing(std::string_view base) {
  return is_one_of(base, {"bar", "barrier", "brkpt", "exit", "fence", "griddepcontrol", "membar",
                          "nanosleep", "pmevent", "prefetch", "prefetchu", "ret", "trap"});
}

/// The size that ".f32" in "ld.global.v2.f32" names.
std::uint32_t bytes_of(std::string_view name) {
  const std::string_view type = name.substr(std::min(name.rfind('.'), name.size()));
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 8;
  std::uint32_t bits = 0;
  (void)std::from_chars(type.data() + digits, type.data() + type.size(), bits);
  return std::max(1U, bits / 8);
}

struct Instruction {
  std::string_view guard;  ///< a register; empty: none
  std::string_view name;
  std::vector<std::string_view> operands;
  std::size_t target = 0;  ///< of a branch: what it goes to; of another end of the thread: the end
};

/// Traces the values of one kernel.
class Trace {
 public:
  Trace(std::map<std::string_view, std::uint32_t> parameters, std::set<std::string_view> blocks)
      : parameters_(std::move(parameters)), block_memory_(std::move(blocks)) {}

  KernelAccess run(std::string_view body) {
    read(body);
    find_branches();
    for (bool more = true; more && unknown_.empty();) {
      changed_ = false;
      for (std::size_t i = 0; i < instructions_.size(); ++i) trace(i);
      more = changed_;
    }
    // Only now it is known of each address where it comes from.
    is_complete_ = true;
    for (std::size_t i = 0; i < instructions_.size(); ++i) trace(i);
    KernelAccess access;
    access.unknown = unknown_;
    if (!unknown_.empty()) return access;
    access.places = places_;
    for (std::size_t i = 0; i < places_.size(); ++i)
      access.places[i].steers = (steering_ >> i & 1U) != 0;
    for (const auto& [from, how] : uses_)
      access.uses.push_back({from.first, how.first, how.second, from.second});
    return access;
  }

 private:
  void fail(std::string why) {
    if (unknown_.empty()) unknown_ = std::move(why);
  }

  void read(std::string_view body) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < body.size(); ++at) {
      const char c = body[at];
      // A brace opens a scope where a statement begins, else a vector.
      const bool is_blank =
          body.substr(begin, at - begin).find_first_not_of(" \t\r\n") == std::string_view::npos;
      if ((c == '{' || c == '}') && is_blank) begin = at + 1;
      if (c == ':' && (at + 1 == body.size() || body[at + 1] != ':') && at > 0 &&
          body[at - 1] != ':') {
        const auto label = words_of(body.substr(begin, at - begin));
        if (label.size() == 1) {
          if (!labels_.emplace(label[0], instructions_.size()).second)
            fail("two places in its code have one name");
          begin = at + 1;
        }
      }
      if (c != ';') continue;
      add(body.substr(begin, at - begin));
      begin = at + 1;
    }
  }

  void add(std::string_view statement) {
    const std::size_t first = statement.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return;
    statement.remove_prefix(first);
    if (statement.front() == '.') return declare(statement);
    Instruction made;
    if (statement.front() == '@') {
      const auto guard = words_of(statement);
      if (guard.size() < 2) return fail("its code cannot be read");
      made.guard = guard[0];
      statement.remove_prefix(static_cast<std::size_t>(guard[1].data() - statement.data()));
    }
    std::size_t end = 0;
    while (end < statement.size() && (is_word(statement[end]) || statement[end] == ':')) ++end;
    made.name = statement.substr(0, end);
    if (made.name.empty()) return fail("its code cannot be read");
    if (statement.find_first_not_of(" \t\r\n", end) != std::string_view::npos)
      made.operands = operands_of(statement.substr(end));
    instructions_.push_back(std::move(made));
  }

  void declare(std::string_view statement) {
    const auto words = words_of(statement.substr(0, statement.find('=')));
    if (words.empty()) return fail("its code cannot be read");
    if (is_one_of(words[0], {".reg", ".pragma", ".param"})) return;
    if (!is_one_of(words[0], {".shared", ".local"}))
      return fail("it has the directive " + std::string(words[0]));
    // ".shared .align 4 .b8 name[1024]"
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (words[i].front() != '.' && !is_number(words[i])) block_memory_.insert(words[i]);
    }
  }

  std::optional<std::uint64_t> place(std::string_view parameter, std::uint32_t offset) {
    const auto number = parameters_.find(parameter);
    if (number == parameters_.end()) return std::nullopt;
    return add_place({number->second, offset / 8 * 8, false});
  }

  std::optional<std::uint64_t> add_place(KernelAccess::Place wanted) {
    const auto known = std::find(places_.begin(), places_.end(), wanted);
    const auto at = static_cast<std::size_t>(known - places_.begin());
    if (at == KernelAccess::most_places) {
      fail("it has too many parameters and variables");
      return std::nullopt;
    }
    if (known == places_.end()) places_.push_back(std::move(wanted));
    return std::uint64_t{1} << at;
  }

  /// The value that the words of an operand stand for.
  Value value_of(std::string_view operand) {
    Value all;
    for (const std::string_view word : words_of(operand)) {
      if (is_number(word)) continue;
      if (word.front() == '%' || registers_.contains(word)) {
        if (const auto known = registers_.find(word); known != registers_.end())
          all.add(known->second);
      } else if (block_memory_.contains(word)) {
        all.from |= in_block;
      } else if (parameters_.contains(word)) {
        fail("it takes the address of a parameter");
      } else if (!is_register(word) && word != "WARP_SZ") {
        all.from |= add_place({0, 0, false, std::string(word)}).value_or(0);
      }
    }
    return all;
  }

  /// Registers need no sign: what is made somewhere is one.
  bool is_register(std::string_view word) {
    if (made_.empty()) {
      for (const Instruction& one : instructions_) {
        if (one.operands.empty() || is_memory(one.operands.front())) continue;
        for (const std::string_view name : words_of(one.operands.front())) made_.insert(name);
      }
    }
    return made_.contains(word);
  }

  void make(std::string_view operand, const Value& value) {
    for (const std::string_view word : words_of(operand))
      if (!is_number(word) && word != "_") changed_ = registers_[word].add(value) || changed_;
  }

  /// Notes that what was read from these places decides.
  void steer(std::uint64_t read) {
    changed_ = changed_ || (steering_ | read) != steering_;
    steering_ |= read;
  }

  /// @return what is read there
  Value touch(std::string_view operand, std::string_view space, bool reads, bool writes,
              const Value& written) {
    const std::size_t begin = std::min(operand.find('['), operand.size());
    const std::size_t end = operand.find(']', begin);
    if (end == std::string_view::npos) {
      fail("its code cannot be read");
      return {};
    }
    const Value address = value_of(operand.substr(begin, end - begin));
    steer(address.read & of_places);
    const std::uint64_t bases = address.from & of_places;
    const bool is_block = space == "shared" || space == "local" || (address.from & in_block) != 0;
    Value found;
    if (is_block) {
      if (writes) changed_ = block_.add(written) || changed_;
      found.add(block_);
    }
    if (space != "shared" && space != "local") {
      if (bases == 0 && !is_block && is_complete_) {
        fail(address.read != 0 ? "it finds addresses in memory" : "it uses an address of its own");
      }
      if (bases != 0) {
        auto& [is_read, is_written] = uses_[{bases, address.read != 0}];
        is_read = is_read || reads;
        is_written = is_written || writes;
        found.read |= bases;
      }
    }
    found.read |= address.read;
    return found;
  }

  void find_branches() {
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      Instruction& one = instructions_[i];
      last_use_[one.guard] = i;
      for (const std::string_view operand : one.operands)
        for (const std::string_view word : words_of(operand)) last_use_[word] = i;
      one.target = instructions_.size();
      if (!one.name.starts_with("bra")) continue;
      const auto words = words_of(one.operands.empty() ? "" : one.operands.front());
      const auto label = words.empty() ? labels_.end() : labels_.find(words.front());
      one.target = label == labels_.end() ? 0 : label->second;
      branches_.push_back(i);
    }
  }

  /// Notes a branch that depends on what was read. It does not steer where the thread only leaves
  /// something out that neither waits for others nor is repeated: then the thread ends all the
  /// same, and behind it, only what was made there depends on the branch.
  void branch(std::size_t at, std::uint64_t read) {
    if (read == 0) return;
    std::size_t end = instructions_[at].target;
    for (std::size_t i = at + 1; i < std::min(end, instructions_.size()); ++i)
      if (instructions_[i].name.starts_with("bra")) end = std::max(end, instructions_[i].target);
    // Whoever comes back from behind the end has made something there, or is in a loop.
    bool steers = end <= at || std::any_of(branches_.begin(), branches_.end(), [&](std::size_t i) {
                    return i >= at && instructions_[i].target < (i < end ? at + 1 : end);
                  });
    for (std::size_t i = at + 1; i < end && !steers; ++i) {
      const std::string_view name = instructions_[i].name;
      steers = has_part(name, ".sync") || name.starts_with("bar") || name.starts_with("trap") ||
               name.starts_with("brkpt");
    }
    if (steers) return steer(read);
    for (std::size_t i = at + 1; i < end; ++i) {
      const Instruction& one = instructions_[i];
      if (one.operands.empty()) continue;
      const bool fills = is_memory(one.operands.front());
      const bool is_global = space_of(one.name) == "global" && !one.name.starts_with("cp");
      if ((fills || one.name.starts_with("atom")) && !is_global)
        changed_ = block_.add({0, read}) || changed_;
      if (fills) continue;
      for (const std::string_view made : words_of(one.operands.front()))
        if (last_use_.at(made) >= end) changed_ = registers_[made].add({0, read}) || changed_;
    }
  }

  void trace(std::size_t at) {
    const Instruction& one = instructions_[at];
    const std::string_view base = one.name.substr(0, one.name.find('.'));
    const Value guard = value_of(one.guard);
    const auto& operands = one.operands;
    if (base == "bra" || base == "ret" || base == "exit") return branch(at, guard.read & of_places);
    if (touches_nothing(base) && !has_part(one.name, ".red")) return steer(guard.read & of_places);
    if (base == "ld" || base == "ldu") return load(one, guard);
    if (base == "st") {
      if (operands.size() < 2 || has_part(one.name, ".param")) return fail("it calls functions");
      Value written = value_of(operands[1]);
      written.add(guard);
      (void)touch(operands[0], space_of(one.name), false, true, written);
      return;
    }
    if (base == "atom" || base == "red") return update(one, guard);
    if (base == "ldmatrix" && operands.size() == 2) {
      Value read = touch(operands[1], "shared", true, false, {});
      read.add(guard);
      return make(operands[0], read);
    }
    if (base == "cp") return copy(one, guard);
    const bool any_memory = std::any_of(operands.begin(), operands.end(), is_memory);
    if (!is_arithmetic(base) || any_memory || operands.empty())
      return fail("it has the instruction " + std::string(one.name));
    Value result = guard;
    for (std::size_t i = 1; i < operands.size(); ++i) result.add(value_of(operands[i]));
    // A carry is a register without a name.
    if (is_one_of(base, {"addc", "subc", "madc"})) result.add(registers_["%CC"]);
    if (has_part(one.name, ".cc")) changed_ = registers_["%CC"].add(result) || changed_;
    make(operands[0], result);
  }

  static std::string_view space_of(std::string_view name) {
    for (const std::string_view space : {"global", "shared", "local", "const"}) {
      for (std::size_t at = name.find('.'); at != std::string_view::npos;
           at = name.find('.', at + 1)) {
        if (name.substr(at + 1).starts_with(space)) return space;
      }
    }
    return {};
  }

  void load(const Instruction& one, const Value& guard) {
    const auto& operands = one.operands;
    if (operands.size() < 2) return fail("its code cannot be read");
    if (has_part(one.name, ".param")) {
      const auto words = words_of(operands[1]);
      if (words.empty() || !parameters_.contains(words[0])) return fail("it calls functions");
      std::uint32_t offset = 0;
      if (words.size() == 2 && is_number(words[1])) {
        (void)std::from_chars(words[1].data(), words[1].data() + words[1].size(), offset);
      } else if (words.size() != 1) {
        return fail("it takes the address of a parameter");
      }
      for (const std::string_view word : words_of(operands[0])) {
        const auto slot = place(words[0], offset);
        if (!slot) return;
        make(word, {*slot, 0});
        offset += bytes_of(one.name);
      }
      return;
    }
    const std::string_view space = space_of(one.name);
    if (space == "const") {  // nothing on the device writes there
      Value read = guard;
      read.read |= value_of(operands[1]).read;
      steer(read.read & of_places);
      return make(operands[0], read);
    }
    Value read = touch(operands[1], space, true, false, {});
    read.add(guard);
    make(operands[0], read);
  }

  void update(const Instruction& one, const Value& guard) {
    const auto& operands = one.operands;
    const bool gives = one.name.starts_with("atom");
    const std::size_t at = gives ? 1 : 0;
    if (operands.size() < at + 2 || !is_memory(operands[at]))
      return fail("it has the instruction " + std::string(one.name));
    Value written = guard;
    for (std::size_t i = at + 1; i < operands.size(); ++i) written.add(value_of(operands[i]));
    Value found = touch(operands[at], space_of(one.name), true, true, written);
    found.add(written);
    if (gives) make(operands[0], found);
  }

  /// cp.async copies a few bytes from global memory to shared.
  void copy(const Instruction& one, const Value& guard) {
    if (one.name.starts_with("cp.async.commit_group") || one.name.starts_with("cp.async.wait_"))
      return;
    const bool is_known = (one.name.starts_with("cp.async.ca.shared") ||
                           one.name.starts_with("cp.async.cg.shared")) &&
                          one.operands.size() >= 3 && is_memory(one.operands[0]) &&
                          is_memory(one.operands[1]);
    if (!is_known) return fail("it has the instruction " + std::string(one.name));
    Value read = touch(one.operands[1], "global", true, false, {});
    read.add(guard);
    for (std::size_t i = 2; i < one.operands.size(); ++i) {
      const Value size = value_of(one.operands[i]);  // how much of it, or whether
      read.read |= size.read;
    }
    (void)touch(one.operands[0], "shared", false, true, read);
  }

  const std::map<std::string_view, std::uint32_t> parameters_;
  std::set<std::string_view> block_memory_;
  std::vector<Instruction> instructions_;
  std::map<std::string_view, std::size_t> labels_;    ///< by name: what follows
  std::map<std::string_view, std::size_t> last_use_;  ///< by word
  std::vector<std::size_t> branches_;
  std::set<std::string_view> made_;
  std::map<std::string_view, Value> registers_;
  Value block_;  ///< what is in shared and local memory
  std::vector<KernelAccess::Place> places_;
  /// By bases, and whether anything read is in the address: whether it is read, and written.
  std::map<std::pair<std::uint64_t, bool>, std::pair<bool, bool>> uses_;
  std::uint64_t steering_ = 0;
  bool changed_ = false;
  bool is_complete_ = false;
  std::string unknown_;
};

/// To behind the sign that closes what was opened just before `at`; the end if nothing does.
std::size_t behind(std::string_view text, std::size_t at, char open, char close) {
  for (int depth = 1; at < text.size() && depth > 0; ++at) {
    depth += text[at] == open ? 1 : text[at] == close ? -1 : 0;
  }
  return at;
}

/// ".param .align 8 .b8 name[24], .param .u64 .ptr .global .align 4 other"
std::map<std::string_view, std::uint32_t> parameters_in(std::string_view list) {
  std::map<std::string_view, std::uint32_t> parameters;
  std::uint32_t number = 0;
  for (const std::string_view one : operands_of(list)) {
    const auto words = words_of(one.substr(0, one.find('[')));
    if (!words.empty()) parameters.emplace(words.back(), number++);
  }
  return parameters;
}

}  // namespace

KernelAccesses read_ptx_accesses(std::string_view text) {
  const std::string code = code_of(text);
  const std::string_view all = code;
  KernelAccesses accesses;
  std::set<std::string_view> shared;
  for (std::size_t at = 0; at < all.size();) {
    if (all[at] == '{') {  // a function, or what a variable holds
      at = behind(all, at + 1, '{', '}');
      continue;
    }
    if (!is_word(all[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < all.size() && is_word(all[end])) ++end;
    const std::string_view word = all.substr(at, end - at);
    at = end;
    if (word == ".shared") {
      const std::size_t stop = std::min(all.find(';', at), all.size());
      for (const std::string_view name : words_of(all.substr(at, stop - at)))
        if (name.front() != '.' && !is_number(name)) shared.insert(name);
      at = stop;
    }
    if (word != ".entry") continue;
    const auto names = words_of(all.substr(at, std::min<std::size_t>(all.size() - at, 4096)));
    if (names.empty()) break;
    const std::string symbol(names.front());
    at = static_cast<std::size_t>(names.front().data() - all.data()) + symbol.size();
    std::map<std::string_view, std::uint32_t> parameters;
    const std::size_t next = all.find_first_not_of(" \t\r\n", at);
    if (next != std::string_view::npos && all[next] == '(') {
      at = behind(all, next + 1, '(', ')');
      parameters = parameters_in(all.substr(next + 1, at - next - 2));
    }
    const std::size_t body = all.find_first_of("{;", at);
    if (body == std::string_view::npos) break;
    at = body + 1;
    if (all[body] == ';') continue;
    at = behind(all, body + 1, '{', '}');
    accesses[symbol] =
        Trace(std::move(parameters), shared).run(all.substr(body + 1, at - body - 2));
  }
  return accesses;
}

KernelAccesses read_simulated_accesses(std::string_view text) {
  KernelAccesses accesses;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    std::string symbol;
    if (!(words >> word >> symbol) || word != "access") continue;
    KernelAccess access;
    while (words >> word) {
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string how = word.substr(std::min(equals + 1, word.size()));
      std::uint32_t number = 0;
      const auto parsed = std::from_chars(word.data(), word.data() + equals, number);
      const bool is_number = parsed.ptr == word.data() + equals;
      const bool is_name = !is_number && std::isdigit(static_cast<unsigned char>(word[0])) == 0;
      if ((!is_number && !is_name) || equals == 0 || how.empty() ||
          access.places.size() == KernelAccess::most_places) {
        access.unknown = "its image has '" + word + "' where a parameter should be";
        break;
      }
      const std::uint64_t bit = std::uint64_t{1} << access.places.size();
      access.places.push_back({number, KernelAccess::Place::anywhere, how.find('!') != how.npos,
                               is_name ? word.substr(0, equals) : std::string()});
      access.uses.push_back({bit, how.find('r') != how.npos, how.find('w') != how.npos, false});
    }
    accesses[symbol] = std::move(access);
  }
  return accesses;
}

}  // namespace contextune::gpu

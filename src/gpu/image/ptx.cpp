#include "gpu/image/ptx.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "core/value/stable_hash.hpp"

namespace contextune::gpu {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$' ||
         c == '%';
}

/// Words (names, numbers, directives), strings and single signs, without comments.
class Tokens {
 public:
  explicit Tokens(std::string_view text) noexcept : text_(text) {}

  /// Empty at the end.
  std::string_view next() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ >= text_.size()) return {};
    if (text_[at_] == '"') {
      const std::size_t end = text_.find('"', at_ + 1);
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
    } else if (is_word(text_[at_])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    } else {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  /// Text between two places that next() came to.
  [[nodiscard]] std::size_t place() const noexcept { return at_; }
  [[nodiscard]] std::string_view between(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }

  std::string_view peek() {
    const std::size_t before = at_;
    const std::string_view token = next();
    at_ = before;
    return token;
  }

  /// After an opening sign: to behind the closing one that belongs to it.
  /// @return false: the text ends before
  bool skip_to(std::string_view close) {
    const std::string_view open = close == ")" ? "(" : "{";
    for (int depth = 1; depth > 0;) {
      const std::string_view token = next();
      if (token.empty()) return false;
      depth += token == open ? 1 : token == close ? -1 : 0;
    }
    return true;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// 0: not a number.
std::uint64_t number(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
  }
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  const bool whole = stop == end || (stop + 1 == end && *stop == 'U');
  return error == std::errc() && whole ? value : 0;
}

/// 0 if it does not fit.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? 0 : result;
}

/// The size of a type such as ".u32", ".b8", ".f16x2"; 0: not a type that has a size.
std::uint64_t bytes_of_type(std::string_view type) {
  const std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return 0;
  std::string_view bits = type.substr(digits);
  const std::size_t packed = bits.find('x');
  const std::uint64_t count =
      packed == std::string_view::npos ? 1 : number(bits.substr(packed + 1));
  return product(number(bits.substr(0, packed)) / 8, count);
}

class Ptx {
 public:
  Ptx(std::string_view text, std::string& why) : tokens_(text), why_(why) {}

  std::optional<KernelImage> read() {
    if (tokens_.peek() != ".version") return fails("it does not begin with .version");
    bool is_extern = false;
    for (std::string_view token = tokens_.next(); !token.empty(); token = tokens_.next()) {
      bool whole = true;
      if (token == ".extern") {
        is_extern = true;
        continue;
      }
      if (token == ".visible" || token == ".weak" || token == ".common") continue;
      if (token == ".global") {
        whole = read_variables(VariableKind::Device);
      } else if (token == ".const") {
        whole = read_variables(VariableKind::Constant);
      } else if (token == ".entry") {
        rest_.add(tokens_.between(last_entry_end_, tokens_.place()));
        whole = read_entry();
        last_entry_end_ = tokens_.place();
      } else if (token == ".func") {
        whole = read_function(is_extern);
      } else if (token == "{") {
        whole = tokens_.skip_to("}");
      } else if (token == "(") {
        whole = tokens_.skip_to(")");
      }
      if (!whole) return fails("it is cut off");
      is_extern = false;
    }
    sort_variables();
    rest_.add(tokens_.between(last_entry_end_, tokens_.place()));
    // Any kernel may use what is outside of kernels.
    for (auto& [symbol, hash] : code_.code) {
      StableHash both = rest_;
      both.add(hash);
      hash = both.value();
    }
    return std::move(code_);
  }

 private:
  std::nullopt_t fails(std::string_view what) {
    why_ = "its PTX cannot be read: " + std::string(what);
    return std::nullopt;
  }

  /// Reads what follows ".entry": name, parameters, directives, and the body or, where it is
  /// declared only, ";".
  bool read_entry() {
    const std::string symbol(tokens_.next());
    const std::size_t begin = tokens_.place();
    for (std::string_view token = tokens_.next(); token != ";"; token = tokens_.next()) {
      if (token.empty() || (token == "(" && !tokens_.skip_to(")"))) return false;
      if (token != "{") continue;
      if (!tokens_.skip_to("}")) return false;
      StableHash hash;
      hash.add(tokens_.between(begin, tokens_.place()));
      code_.code[symbol] = hash.value();
      return true;
    }
    return true;
  }

  bool read_function(bool is_extern) {
    while (true) {
      const std::string_view token = tokens_.next();
      if (token.empty()) return false;
      if (token == "(") {  // what it returns
        if (!tokens_.skip_to(")")) return false;
      } else if (token == ".attribute") {
        if (tokens_.next() != "(" || !tokens_.skip_to(")")) return false;
      } else {
        if (is_extern) code_.add_driver_function(token);
        return true;
      }
    }
  }

  /// Reads what follows ".global": ".attribute(.managed) .align 8 .v2 .f32 name[4][2] = {...},
  /// other;"
  bool read_variables(VariableKind kind) {
    std::uint64_t element_bytes = 0;
    while (tokens_.peek().starts_with('.')) {
      const std::string_view token = tokens_.next();
      if (token == ".attribute") {
        if (!read_attributes(kind)) return false;
      } else if (token == ".align") {
        (void)tokens_.next();
      } else if (token.starts_with(".v") && token.size() == 3) {
        vector_ = number(token.substr(2));
      } else {
        element_bytes = product(bytes_of_type(token), std::exchange(vector_, 1));
        is_opaque_ = token == ".texref" || token == ".samplerref" || token == ".surfref";
      }
    }
    while (true) {
      const std::string_view name = tokens_.next();
      if (name.empty()) return false;
      std::uint64_t bytes = element_bytes;
      while (tokens_.peek() == "[") {
        (void)tokens_.next();
        const std::string_view count = tokens_.next();
        bytes = product(bytes, number(count));
        if (count != "]" && tokens_.next() != "]") return false;
      }
      if (!is_opaque_) code_.variables.push_back({std::string(name), bytes, kind});
      std::string_view end = tokens_.next();
      while (end != "," && end != ";") {
        if (end.empty()) return false;
        if ((end == "{" && !tokens_.skip_to("}")) || (end == "(" && !tokens_.skip_to(")"))) {
          return false;
        }
        end = tokens_.next();
      }
      if (end == ";") return true;
    }
  }

  bool read_attributes(VariableKind& kind) {
    if (tokens_.next() != "(") return false;
    for (std::string_view token = tokens_.next(); token != ")"; token = tokens_.next()) {
      if (token.empty()) return false;
      if (token == ".managed") kind = VariableKind::Managed;
      if (token == "(" && !tokens_.skip_to(")")) return false;
    }
    return true;
  }

  /// A variable may be declared and, further down, defined.
  void sort_variables() {
    auto& variables = code_.variables;
    std::stable_sort(variables.begin(), variables.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
    variables.erase(std::unique(variables.begin(), variables.end(),
                                [](const auto& a, const auto& b) { return a.name == b.name; }),
                    variables.end());
  }

  Tokens tokens_;
  std::string& why_;
  std::uint64_t vector_ = 1;
  bool is_opaque_ = false;
  std::size_t last_entry_end_ = 0;
  StableHash rest_;
  KernelImage code_;
};

}  // namespace

std::optional<KernelImage> read_ptx(std::string_view text, std::string& why) {
  return Ptx(text, why).read();
}

}  // namespace contextune::gpu

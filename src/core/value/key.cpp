#include <contextune/key.hpp>

#include <contextune/value.hpp>

namespace contextune {
namespace {

/// FNV-1a over bytes, finished so that nearby keys do not fall into nearby buckets.
class Hash {
 public:
  void byte(unsigned char value) { state_ = (state_ ^ value) * 0x100000001b3U; }
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) byte(static_cast<unsigned char>(value >> shift));
  }
  void text(const std::string& value) {
    number(value.size());  // so that ("ab", "c") and ("a", "bc") differ
    for (const char c : value) byte(static_cast<unsigned char>(c));
  }
  [[nodiscard]] std::uint64_t finish() const {
    std::uint64_t h = state_;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdU;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53U;
    return h ^ (h >> 33);
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace

Key::Key(std::initializer_list<Entry> entries) : entries_(entries) {}

Key& Key::add(std::string name, Part part) {
  entries_.emplace_back(std::move(name), std::move(part));
  return *this;
}

Key& Key::append(const Key& other) {
  // By index: `other` may be this key itself. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0, n = other.entries_.size(); i < n; ++i) {
    Entry entry = other.entries_[i];
    entries_.push_back(std::move(entry));
  }
  return *this;
}

std::string Key::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) {
    if (!text.empty()) text += ' ';
    text += entry.first + '=';
    text += std::visit([](const auto& part) { return contextune::to_string(Value(part)); },
                       entry.second);
  }
  return text;
}

std::uint64_t Key::hash() const noexcept {
  Hash hash;
  for (const Entry& entry : entries_) {
    hash.text(entry.first);
    hash.byte(static_cast<unsigned char>(entry.second.index()));
    if (const auto* whole = std::get_if<std::int64_t>(&entry.second)) {
      hash.number(static_cast<std::uint64_t>(*whole));
    } else {
      hash.text(std::get<std::string>(entry.second));
    }
  }
  return hash.finish();
}

}  // namespace contextune

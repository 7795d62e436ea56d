#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <contextune/export.hpp>

namespace contextune {

/// The key that makes two launches the same problem: named whole numbers and texts, in order. A
/// value type; const use from several threads is safe.
class CONTEXTUNE_EXPORT Key {
 public:
  using Part = std::variant<std::int64_t, std::string>;
  using Entry = std::pair<std::string, Part>;

  Key() = default;
  Key(std::initializer_list<Entry> entries);

  Key& add(std::string name, Part part);
  /// Appends all parts of another key.
  Key& append(const Key& other);

  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

  /// "n=1048576 type=f32"; empty for the empty key.
  [[nodiscard]] std::string to_string() const;

  /// The same in every process and on every machine.
  [[nodiscard]] std::uint64_t hash() const noexcept;

  [[nodiscard]] bool operator==(const Key& other) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace contextune

template <>
struct std::hash<contextune::Key> {
  std::size_t operator()(const contextune::Key& key) const noexcept {
    return static_cast<std::size_t>(key.hash());
  }
};

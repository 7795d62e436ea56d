#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace contextune::store {

/// A value of a JSON document that nobody vouches for, and where in it that is. Every access checks
/// presence, type and range. Refers to the document, and to the place it came from: a local.
/// All members throw Error, whose message begins with the place as a JSON pointer.
class JsonPlace {
 public:
  using Json = nlohmann::ordered_json;

  explicit JsonPlace(const Json& document) : value_(document) {}
  JsonPlace(const JsonPlace&) = delete;
  JsonPlace& operator=(const JsonPlace&) = delete;

  /// That this is an object of exactly these members.
  void expect_members(std::initializer_list<std::string_view> names) const;
  /// A member of an object.
  [[nodiscard]] JsonPlace at(std::string_view name) const;
  /// An element of an array.
  [[nodiscard]] JsonPlace at(std::size_t index) const;
  /// How many elements the array has.
  [[nodiscard]] std::size_t array_size(std::size_t most) const;

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] std::string text() const;
  /// A whole number that fits 64 bits with a sign.
  [[nodiscard]] std::int64_t whole_number() const;
  [[nodiscard]] std::int64_t whole_number(std::int64_t least, std::int64_t most) const;
  /// A number, or "nan", "inf" or "-inf".
  [[nodiscard]] double figure() const;
  /// The same, and not below zero.
  [[nodiscard]] double seconds() const;

  /// The value itself; an object or array where expect_object or array_size have been asked.
  [[nodiscard]] const Json& value() const { return value_; }
  void expect_object() const;

  [[noreturn]] void refuse(std::string_view what) const;

 private:
  JsonPlace(const Json& value, const JsonPlace& parent, std::string_view name, std::size_t index)
      : value_(value), parent_(&parent), name_(name), index_(index) {}

  [[nodiscard]] std::string pointer() const;

  const Json& value_;
  const JsonPlace* parent_ = nullptr;
  std::string_view name_;  // empty data(): an element
  std::size_t index_ = 0;
};

}  // namespace contextune::store

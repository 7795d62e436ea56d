#include "store/json_place.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <contextune/error.hpp>

#include "store/json_text.hpp"

namespace contextune::store {
namespace {

// As a JSON pointer (RFC 6901) spells a name.
std::string pointer_token(std::string_view name) {
  std::string token;
  for (const char c : name) {
    if (c == '~') {
      token += "~0";
    } else if (c == '/') {
      token += "~1";
    } else {
      token += c;
    }
  }
  return token;
}

std::string type_of(const JsonPlace::Json& value) {
  return value.is_number_float() ? "a number with a fraction" : std::string(value.type_name());
}

}  // namespace

std::string JsonPlace::pointer() const {
  if (parent_ == nullptr) return {};
  return parent_->pointer() + '/' +
         (name_.data() == nullptr ? std::to_string(index_) : pointer_token(name_));
}

void JsonPlace::refuse(std::string_view what) const {
  const std::string place = pointer();
  throw Error((place.empty() ? std::string("the document") : place) + ": " + std::string(what));
}

void JsonPlace::expect_object() const {
  if (!value_.is_object()) refuse("must be an object, and is " + type_of(value_));
}

void JsonPlace::expect_members(std::initializer_list<std::string_view> names) const {
  expect_object();
  for (const auto& member : value_.items()) {
    if (std::ranges::find(names, std::string_view(member.key())) == names.end())
      refuse("has a member '" + member.key() + "', which this version of the format does not");
  }
}

JsonPlace JsonPlace::at(std::string_view name) const {
  expect_object();
  const auto member = value_.find(name);
  if (member == value_.end()) refuse("has no member '" + std::string(name) + "'");
  return {*member, *this, name, 0};
}

JsonPlace JsonPlace::at(std::size_t index) const {
  return {value_[index], *this, {}, index};
}

std::size_t JsonPlace::array_size(std::size_t most) const {
  if (!value_.is_array()) refuse("must be an array, and is " + type_of(value_));
  if (value_.size() > most) {
    refuse("has " + std::to_string(value_.size()) + " elements, more than " + std::to_string(most));
  }
  return value_.size();
}

bool JsonPlace::is_null() const {
  return value_.is_null();
}

std::string JsonPlace::text() const {
  if (!value_.is_string()) refuse("must be a text, and is " + type_of(value_));
  auto bytes = from_json_text(value_.get_ref<const std::string&>());
  if (!bytes) refuse("has U+FFFD in a way that stands for no text");
  return *std::move(bytes);
}

std::int64_t JsonPlace::whole_number() const {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  if (!value_.is_number_integer()) refuse("must be a whole number, and is " + type_of(value_));
  if (value_.is_number_unsigned() &&
      value_.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    refuse("is larger than " + std::to_string(most));
  }
  return value_.get<std::int64_t>();
}

std::int64_t JsonPlace::whole_number(std::int64_t least, std::int64_t most) const {
  const std::int64_t number = whole_number();
  if (number < least || number > most) {
    refuse("is " + std::to_string(number) + ", and must be from " + std::to_string(least) + " to " +
           std::to_string(most));
  }
  return number;
}

double JsonPlace::figure() const {
  if (value_.is_number()) return value_.get<double>();
  if (value_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value_ == "inf") return std::numeric_limits<double>::infinity();
  if (value_ == "-inf") return -std::numeric_limits<double>::infinity();
  refuse("must be a number, \"nan\", \"inf\" or \"-inf\"");
}

double JsonPlace::seconds() const {
  const double number = figure();
  if (std::signbit(number) && number != 0 && !std::isnan(number))
    refuse("is a time, and must not be below 0");
  return number;
}

}  // namespace contextune::store

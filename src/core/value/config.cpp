#include <contextune/config.hpp>

#include <algorithm>

#include <contextune/error.hpp>

namespace contextune {
namespace {

const char* type_name(const Value& value) {
  constexpr const char* names[] = {"a whole number", "a number", "true or false", "a text"};
  return names[value.index()];
}

[[noreturn]] void wrong_type(std::string_view name, const Value& value, const char* wanted) {
  throw Error("config parameter '" + std::string(name) + "' is " + to_string(value) +
              ", which is " + type_name(value) + ", not " + wanted +
              "; read it as what it was declared");
}

}  // namespace

Config::Config(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) set(entry.first, entry.second);
}

Config& Config::set(std::string name, Value value) {
  for (Entry& entry : entries_) {
    if (entry.first == name) {
      entry.second = std::move(value);
      return *this;
    }
  }
  entries_.emplace_back(std::move(name), std::move(value));
  return *this;
}

const Value* Config::find(std::string_view name) const noexcept {
  for (const Entry& entry : entries_)
    if (entry.first == name) return &entry.second;
  return nullptr;
}

const Value& Config::at(std::string_view name) const {
  if (const Value* value = find(name)) return *value;
  throw Error("config '" + to_string() + "' has no parameter '" + std::string(name) +
              "'; declare it in the config space, or use find()");
}

std::int64_t Config::get_int(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  wrong_type(name, value, "a whole number");
}

double Config::get_double(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  wrong_type(name, value, "a number");
}

bool Config::get_bool(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  wrong_type(name, value, "true or false");
}

const std::string& Config::get_string(std::string_view name) const {
  const Value& value = at(name);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  wrong_type(name, value, "a text");
}

std::string Config::to_string() const {
  if (entries_.empty()) return "default";
  std::string text;
  for (const Entry& entry : entries_) {
    if (!text.empty()) text += ' ';
    text += entry.first + '=' + contextune::to_string(entry.second);
  }
  return text;
}

bool Config::operator==(const Config& other) const {
  return entries_.size() == other.entries_.size() &&
         std::all_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
           const Value* value = other.find(entry.first);
           return value != nullptr && *value == entry.second;
         });
}

}  // namespace contextune

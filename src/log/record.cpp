#include "log/record.hpp"

#include <array>

#include "core/value/parse_number.hpp"

namespace contextune::log {
namespace {

constexpr std::string_view time_form = "0000-00-00T00:00:00.000Z";

bool is_level(std::string_view word) {
  return word == "debug" || word == "info" || word == "warn";
}

bool is_time(std::string_view text) {
  if (text.size() != time_form.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (time_form[i] == '0' ? !digit : text[i] != time_form[i]) return false;
  }
  return true;
}

// Puts one of the five fields that every line begins with where it belongs.
bool set_header(Record& record, std::size_t place, const std::string& value) {
  switch (place) {
    case 0:
      record.run = value;
      return true;
    case 1: {
      const auto pid = parse_number<std::int64_t>(value);
      record.pid = pid.value_or(0);
      return pid.has_value() && *pid >= 0;
    }
    case 2: {
      const auto rank = parse_number<int>(value);
      record.rank = rank.value_or(0);
      return rank.has_value() && *rank >= 0;
    }
    case 3:
      return is_level(value);
    default:
      record.event = value;
      return true;
  }
}

}  // namespace

const std::string* Record::find(std::string_view name) const {
  for (const ParsedField& field : fields) {
    if (field.name == name) return &field.value;
  }
  return nullptr;
}

std::string_view Record::text(std::string_view name) const {
  const std::string* value = find(name);
  return value != nullptr ? std::string_view(*value) : std::string_view();
}

std::optional<double> Record::number(std::string_view name) const {
  const std::string* value = find(name);
  return value != nullptr ? parse_number<double>(*value) : std::nullopt;
}

std::optional<std::uint64_t> Record::count(std::string_view name, std::uint64_t most) const {
  const std::string* value = find(name);
  const auto number = value != nullptr ? parse_number<std::uint64_t>(*value) : std::nullopt;
  return number.has_value() && *number <= most ? number : std::nullopt;
}

std::variant<Record, std::string> parse_record(std::string_view line) {
  Record record;
  const std::string_view time = line.substr(0, line.find(' '));
  if (!is_time(time)) return "does not begin with a time like 2026-11-20T20:33:53.120Z";
  record.time = time;
  std::string_view rest = line.substr(time.size());
  std::string why;
  constexpr std::array<std::string_view, 5> header = {"run", "pid", "rank", "level", "event"};
  for (std::size_t place = 0; place < header.size(); ++place) {
    ParsedField field;
    const std::string name(header[place]);
    if (!take_field(rest, field, why)) return "field " + name + ": " + why;
    if (field.name != name) return "has field " + field.name + " where " + name + " should be";
    if (!set_header(record, place, field.value)) return name + "=" + field.value + " is not valid";
  }
  while (!rest.empty()) {
    ParsedField field;
    if (!take_field(rest, field, why)) return why;
    record.fields.push_back(std::move(field));
  }
  return record;
}

}  // namespace contextune::log

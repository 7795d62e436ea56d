#include "fault.hpp"

#include <strings.h>

#include <charconv>
#include <cstdlib>
#include <map>

#include "settings.hpp"

namespace simnccl {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (auto at = text.find(separator); at != std::string_view::npos; at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + 1);
  }
  parts.push_back(text);
  return parts;
}

bool same(std::string_view a, const char* b) {
  return strcasecmp(std::string(a).c_str(), b) == 0;
}

bool set_field(Fault& fault, std::string_view field) {
  const auto equals = field.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = field.substr(0, equals);
  const std::string value(field.substr(equals + 1));
  if (name == "factor") {
    char* end = nullptr;
    fault.factor = std::strtod(value.c_str(), &end);
    return !value.empty() && *end == '\0' && fault.factor > 0;
  }
  unsigned long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return false;
  if (name == "rank")
    fault.rank = number;
  else if (name == "channels")
    fault.channels = number;
  else if (name == "bytes")
    fault.bytes = number;
  else if (name == "min_bytes")
    fault.min_bytes = number;
  else if (name == "memory")
    fault.memory = number;
  else
    return false;
  return true;
}

std::optional<Fault> parse_one(std::string_view text) {
  static const std::map<std::string_view, Fault::Kind> kinds{
      {"slow", Fault::Kind::slow},
      {"illegal", Fault::Kind::illegal},
      {"connect_fail", Fault::Kind::connect_fail},
      {"connect_memory", Fault::Kind::connect_memory},
      {"wrong_result", Fault::Kind::wrong_result}};
  const auto parts = split(text, ':');
  const auto kind = kinds.find(parts[0]);
  if (kind == kinds.end() || parts.size() < 2 || parts.size() > 3) return {};
  Fault fault;
  fault.kind = kind->second;
  if (parts[1] != "*") {
    const auto target = split(parts[1], '/');
    fault.algorithm = algorithm_of(target[0]);
    if (fault.algorithm < 0 || target.size() > 2) return {};
    if (target.size() == 2) {
      fault.protocol = protocol_of(target[1]);
      if (fault.protocol < 0) return {};
    }
  }
  if (parts.size() == 3)
    for (const std::string_view field : split(parts[2], ','))
      if (!set_field(fault, field)) return {};
  return fault;
}

}  // namespace

std::optional<Faults> Faults::parse(std::string_view text) {
  Faults faults;
  for (const std::string_view part : split(text, ';')) {
    if (part.empty()) continue;
    const auto fault = parse_one(part);
    if (!fault) return {};
    faults.faults_.push_back(*fault);
  }
  return faults;
}

const Fault* Faults::find(Fault::Kind kind, int rank, const Choice& choice) const {
  for (const Fault& fault : faults_) {
    if (fault.kind != kind) continue;
    if (fault.algorithm >= 0 && fault.algorithm != choice.algorithm) continue;
    if (fault.protocol >= 0 && choice.protocol >= 0 && fault.protocol != choice.protocol) continue;
    if (fault.rank && *fault.rank != static_cast<unsigned long>(rank)) continue;
    if (fault.channels && *fault.channels != static_cast<unsigned long>(choice.channels)) continue;
    if (fault.bytes && *fault.bytes != choice.bytes) continue;
    if (choice.bytes < fault.min_bytes) continue;
    return &fault;
  }
  return nullptr;
}

int algorithm_of(std::string_view name) {
  for (int i = 0; i < algorithm_count; ++i)
    if (same(name, name_of_algorithm(i))) return i;
  return -1;
}

int protocol_of(std::string_view name) {
  for (int i = 0; i < protocol_count; ++i)
    if (same(name, name_of_protocol(i))) return i;
  return -1;
}

}  // namespace simnccl

#include "fault.hpp"

#include <charconv>
#include <map>

namespace simcuda {

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

bool set_field(Fault& fault, std::string_view field) {
  const auto equals = field.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = field.substr(0, equals);
  const std::string_view digits = field.substr(equals + 1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return false;
  if (name == "block")
    fault.block = value;
  else if (name == "grid")
    fault.grid = value;
  else if (name == "shared")
    fault.shared = value;
  else if (name == "after")
    fault.after = value;
  else if (name == "times")
    fault.times = value;
  else if (name == "error")
    fault.error = static_cast<CUresult>(value);
  else
    return false;
  return true;
}

std::optional<Fault> parse_one(std::string_view text) {
  static const std::map<std::string_view, Fault::Kind> kinds{
      {"launch_fail", Fault::Kind::launch_fail},
      {"wrong_result", Fault::Kind::wrong_result},
      {"sticky", Fault::Kind::sticky},
      {"hang", Fault::Kind::hang},
      {"no_device", Fault::Kind::no_device}};
  const auto colon = text.find(':');
  const auto kind = kinds.find(text.substr(0, colon));
  if (kind == kinds.end()) return {};
  Fault fault;
  fault.kind = kind->second;
  if (fault.kind == Fault::Kind::sticky) fault.error = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (fault.kind == Fault::Kind::no_device) return fault;
  if (colon == std::string_view::npos) return {};
  std::string_view kernel = text.substr(colon + 1);
  // The name itself may hold colons: "space::kernel".
  const auto last = kernel.rfind(':');
  if (last != std::string_view::npos && kernel.find('=', last) != std::string_view::npos) {
    for (const std::string_view field : split(kernel.substr(last + 1), ','))
      if (!set_field(fault, field)) return {};
    kernel = kernel.substr(0, last);
  }
  if (kernel.empty()) return {};
  fault.kernel = kernel;
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

bool Faults::no_device() const {
  for (const Fault& fault : faults_)
    if (fault.kind == Fault::Kind::no_device) return true;
  return false;
}

const Fault* Faults::hit(std::string_view kernel, unsigned block, unsigned grid,
                         unsigned shared_bytes) {
  for (Fault& fault : faults_) {
    if (fault.kind == Fault::Kind::no_device) continue;
    if (fault.kernel != "*" && fault.kernel != kernel) continue;
    if (fault.block && *fault.block != block) continue;
    if (fault.grid && *fault.grid != grid) continue;
    if (fault.shared && *fault.shared != shared_bytes) continue;
    if (fault.after > 0) {
      --fault.after;
      continue;
    }
    if (fault.times) {
      if (*fault.times == 0) continue;
      --*fault.times;
    }
    return &fault;
  }
  return nullptr;
}

}  // namespace simcuda

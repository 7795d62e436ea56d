#include "fault.hpp"

#include <algorithm>
#include <array>
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
  else if (name == "graph")
    fault.graph = value;
  else if (name == "bytes")
    fault.bytes = value;
  else if (name == "min_bytes")
    fault.min_bytes = value;
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

bool is_copy(Fault::Kind kind) {
  return kind == Fault::Kind::copy_fail || kind == Fault::Kind::copy_wrong ||
         kind == Fault::Kind::copy_late;
}
bool is_allocation(Fault::Kind kind) {
  return kind == Fault::Kind::alloc_fail || kind == Fault::Kind::host_alloc_fail;
}

// A kernel may have any name; what else there is to name is known.
bool known_target(Fault::Kind kind, std::string_view target) {
  if (target == "*") return true;
  if (is_allocation(kind)) return false;
  constexpr std::array<std::string_view, 5> directions{"HtoD", "DtoH", "DtoD", "HtoH", "set"};
  return !is_copy(kind) ||
         std::find(directions.begin(), directions.end(), target) != directions.end();
}

// Counts a call that a fault is meant for. True when it hits this one.
bool strikes(Fault& fault) {
  if (fault.after > 0) {
    --fault.after;
    return false;
  }
  if (!fault.times) return true;
  if (*fault.times == 0) return false;
  --*fault.times;
  return true;
}

bool meant_for(const Fault& fault, std::size_t bytes) {
  return bytes >= fault.min_bytes && (!fault.bytes || *fault.bytes == bytes);
}

std::optional<Fault> parse_one(std::string_view text) {
  static const std::map<std::string_view, Fault::Kind> kinds{
      {"launch_fail", Fault::Kind::launch_fail},
      {"wrong_result", Fault::Kind::wrong_result},
      {"sticky", Fault::Kind::sticky},
      {"hang", Fault::Kind::hang},
      {"abort", Fault::Kind::abort},
      {"no_device", Fault::Kind::no_device},
      {"copy_fail", Fault::Kind::copy_fail},
      {"copy_wrong", Fault::Kind::copy_wrong},
      {"copy_late", Fault::Kind::copy_late},
      {"alloc_fail", Fault::Kind::alloc_fail},
      {"host_alloc_fail", Fault::Kind::host_alloc_fail}};
  const auto colon = text.find(':');
  const auto kind = kinds.find(text.substr(0, colon));
  if (kind == kinds.end()) return {};
  Fault fault;
  fault.kind = kind->second;
  if (fault.kind == Fault::Kind::sticky) fault.error = CUDA_ERROR_ILLEGAL_ADDRESS;
  if (fault.kind == Fault::Kind::copy_fail) fault.error = CUDA_ERROR_INVALID_VALUE;
  if (is_allocation(fault.kind)) fault.error = CUDA_ERROR_OUT_OF_MEMORY;
  if (fault.kind == Fault::Kind::no_device) return fault;
  if (colon == std::string_view::npos) return {};
  std::string_view target = text.substr(colon + 1);
  // The name itself may hold colons: "space::kernel".
  const auto last = target.rfind(':');
  if (last != std::string_view::npos && target.find('=', last) != std::string_view::npos) {
    for (const std::string_view field : split(target.substr(last + 1), ','))
      if (!set_field(fault, field)) return {};
    target = target.substr(0, last);
  }
  if (target.empty() || !known_target(fault.kind, target)) return {};
  fault.target = target;
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
                         unsigned shared_bytes, bool by_graph) {
  for (Fault& fault : faults_) {
    if (fault.kind == Fault::Kind::no_device || is_copy(fault.kind) || is_allocation(fault.kind))
      continue;
    if (fault.target != "*" && fault.target != kernel) continue;
    if (fault.block && *fault.block != block) continue;
    if (fault.grid && *fault.grid != grid) continue;
    if (fault.shared && *fault.shared != shared_bytes) continue;
    if (fault.graph && (*fault.graph != 0) != by_graph) continue;
    if (strikes(fault)) return &fault;
  }
  return nullptr;
}

const Fault* Faults::hit_copy(std::string_view direction, std::size_t bytes) {
  return hit_copy(false, direction, bytes);
}

bool Faults::delays_copy(std::string_view direction, std::size_t bytes) {
  return hit_copy(true, direction, bytes) != nullptr;
}

const Fault* Faults::hit_copy(bool is_late, std::string_view direction, std::size_t bytes) {
  for (Fault& fault : faults_) {
    if (!is_copy(fault.kind) || !meant_for(fault, bytes)) continue;
    if ((fault.kind == Fault::Kind::copy_late) != is_late) continue;
    if (fault.target != "*" && fault.target != direction) continue;
    if (strikes(fault)) return &fault;
  }
  return nullptr;
}

const Fault* Faults::hit_allocation(Fault::Kind kind, std::size_t bytes) {
  for (Fault& fault : faults_)
    if (fault.kind == kind && meant_for(fault, bytes) && strikes(fault)) return &fault;
  return nullptr;
}

}  // namespace simcuda

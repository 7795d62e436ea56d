#include "intercept/marks/region_mark.hpp"

#include <contextune/error.hpp>

#include <array>
#include <optional>
#include <utility>

namespace contextune::intercept {
namespace {

constexpr std::string_view what_is_allowed =
    "use nvtx:NAME, nvtx:DOMAIN@NAME, profiler, kernel:REGEX, graph, process or auto";

// Marks that are one word.
constexpr std::array<std::pair<std::string_view, RegionMark::Kind>, 4> whole_marks = {
    {{"auto", RegionMark::Kind::Auto},
     {"graph", RegionMark::Kind::Graph},
     {"process", RegionMark::Kind::Process},
     {"profiler", RegionMark::Kind::Profiler}}};
constexpr std::array<std::string_view, 2> begun_marks = {"nvtx:", "kernel:"};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::string quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::optional<RegionMark> parse_mark(std::string_view text, std::string& fault) {
  RegionMark mark;
  mark.text = mark.name = std::string(text);
  const auto colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  for (const auto& [word, whole] : whole_marks) {
    if (text != word) continue;
    mark.kind = whole;
    return mark;
  }
  if (kind == "nvtx" && !rest.empty()) {
    mark.kind = RegionMark::Kind::Nvtx;
    const auto at = rest.find('@');
    mark.name = std::string(rest);
    if (at != std::string_view::npos) {
      mark.any_domain = false;
      mark.domain = std::string(rest.substr(0, at));
      mark.name = std::string(rest.substr(at + 1));
    }
    if (!mark.name.empty()) return mark;
    fault = "region " + quoted(text) + " has no range name after the '@'; " +
            std::string(what_is_allowed);
    return std::nullopt;
  }
  if (kind == "kernel" && !rest.empty()) {
    mark.kind = RegionMark::Kind::Kernel;
    try {
      mark.kernel.emplace(std::string(rest));
    } catch (const Error& error) {
      fault = "region " + quoted(text) + ": " + error.what();
      return std::nullopt;
    }
    return mark;
  }
  fault = "region " + quoted(text) + " is no mark; " + std::string(what_is_allowed);
  return std::nullopt;
}

}  // namespace

std::vector<RegionMark> parse_region_marks(std::string_view text,
                                           std::vector<std::string>& faults) {
  std::vector<RegionMark> marks;
  while (true) {
    const auto end = text.find(';');
    const std::string_view part = trimmed(text.substr(0, end));
    if (!part.empty()) {
      std::string fault;
      if (auto mark = parse_mark(part, fault)) {
        marks.push_back(std::move(*mark));
      } else {
        faults.push_back(std::move(fault));
      }
    }
    if (end == std::string_view::npos) return marks;
    text.remove_prefix(end + 1);
  }
}

std::span<const std::string_view> region_mark_words() {
  static const auto words = [] {
    std::array<std::string_view, whole_marks.size() + begun_marks.size()> all;
    std::size_t count = 0;
    for (const auto& [word, kind] : whole_marks) all[count++] = word;
    for (const std::string_view word : begun_marks) all[count++] = word;
    return all;
  }();
  return words;
}

}  // namespace contextune::intercept

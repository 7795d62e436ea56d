#include "cli/page/page.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "cli/page/page_template.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view beginning_of_pages = "<!doctype html>\n<!-- contextune report -->\n";
static_assert(beginning_of_pages.size() <= page_mark_bytes);

}  // namespace

std::string page_of(std::string_view data, std::uint64_t version) {
  const bool live = version > 0;
  const std::string number = live ? std::to_string(version) : std::string();
  // In their order in the page.
  const std::array<std::pair<std::string_view, std::string_view>, 3> places{
      {{"CONTEXTUNE_VERSION", number},
       {"CONTEXTUNE_CONNECT", live ? "'self'" : "'none'"},
       {"CONTEXTUNE_DATA", data}}};
  std::string_view rest = page_template();
  std::string page;
  page.reserve(rest.size() + data.size());
  for (const auto& [name, text] : places) {
    const std::size_t place = rest.find(name);
    if (place == std::string_view::npos)
      throw std::logic_error("the page has no " + std::string(name));
    page.append(rest.substr(0, place)).append(text);
    rest.remove_prefix(place + name.size());
  }
  return page.append(rest);
}

bool is_page(std::string_view beginning) {
  return beginning.starts_with(beginning_of_pages);
}

}  // namespace contextune::cli

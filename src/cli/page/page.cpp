#include "cli/page/page.hpp"

#include <stdexcept>

#include "cli/page/page_template.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view place_of_data = "CONTEXTUNE_DATA";
constexpr std::string_view beginning_of_pages = "<!doctype html>\n<!-- contextune report -->\n";
static_assert(beginning_of_pages.size() <= page_mark_bytes);

}  // namespace

std::string page_of(std::string_view data) {
  const std::string_view text = page_template();
  const std::size_t place = text.find(place_of_data);
  if (place == std::string_view::npos) throw std::logic_error("the page has no place for its data");
  std::string page;
  page.reserve(text.size() + data.size());
  return page.append(text.substr(0, place))
      .append(data)
      .append(text.substr(place + place_of_data.size()));
}

bool is_page(std::string_view beginning) {
  return beginning.starts_with(beginning_of_pages);
}

}  // namespace contextune::cli

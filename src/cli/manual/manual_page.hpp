#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/words/help_page.hpp"

/// Pages for man(1), in roff.
namespace contextune::cli {

struct ManualPage {
  std::string name;     ///< "contextune-run"
  std::string purpose;  ///< "start a program with contextune in it"
  HelpPage help;
  std::vector<std::string> see_also;  ///< names of other pages
};

[[nodiscard]] std::string roff_of(const ManualPage& page, std::string_view version);

}  // namespace contextune::cli

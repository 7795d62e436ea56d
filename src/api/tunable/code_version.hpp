#pragma once

#include <string>
#include <string_view>

namespace contextune::api {

/// A version that an author gave to code, as a word of StoredSite::declaration; empty for none.
/// @param of tells it from versions of other code of the same site
[[nodiscard]] std::string declaration_of(std::string_view version, std::string_view of = {});

}  // namespace contextune::api

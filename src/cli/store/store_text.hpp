#pragma once

#include <string>
#include <vector>

#include "store/listing.hpp"

/// The output of `contextune store`, for people and for programs.
namespace contextune::cli {

/// A line for each good file, with a head.
[[nodiscard]] std::string store_list_text(const store::Listing& listing);
[[nodiscard]] std::string store_list_json(const std::string& folder, const store::Listing& listing);

/// The content of one file.
[[nodiscard]] std::string entry_text(const store::ListedFile& file, bool history);
/// The files as they are, each with its place.
[[nodiscard]] std::string entries_json(const std::vector<const store::ListedFile*>& files);

/// The faults of a store, a line each; empty: there are none.
[[nodiscard]] std::vector<std::string> problems_of(const store::Listing& listing);
[[nodiscard]] std::string check_json(const std::string& folder, const store::Listing& listing);

/// "decode/0123456789abcdef.json (region 'decode' on NVIDIA H200, 3 sites)".
[[nodiscard]] std::string stored_title(const store::ListedFile& file);

}  // namespace contextune::cli

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "store/listing.hpp"

namespace contextune::cli {

/// A difference between two stores.
struct StoreDifference {
  std::string entry;  ///< "region 'decode' on ..."; empty where two files are compared
  std::string site;   ///< empty: the whole entry
  std::string key;
  std::string winner_a;  ///< empty: it is not in A
  std::string winner_b;  ///< empty: it is not in B
};

struct StoreComparison {
  std::size_t same = 0;  ///< sites with the same winner
  std::vector<StoreDifference> differences;
};

/// Two entries, of whatever hardware.
void compare_entries(const store::Entry& a, const store::Entry& b, const std::string& title,
                     StoreComparison& comparison);

/// Two stores, folder by folder. Files that are not good count as not there.
[[nodiscard]] StoreComparison compare_stores(const store::Listing& a, const store::Listing& b);

[[nodiscard]] std::string comparison_text(const StoreComparison& comparison);
[[nodiscard]] std::string comparison_json(const StoreComparison& comparison);

}  // namespace contextune::cli

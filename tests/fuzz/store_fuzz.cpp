// Any bytes are an entry of the store or an error that says where; an entry that was read is
// written as a text that gives the same entry, and merging it with itself changes nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <contextune/error.hpp>

#include "store/entry_json.hpp"
#include "store/lease.hpp"
#include "store/merge.hpp"

using namespace contextune;
using namespace contextune::store;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void use(const Entry& entry) {
  const std::string text = to_text(entry);
  Entry again = parse_entry(text);
  check(to_text(again) == text);
  const MergeCount count = merge_entry(again, entry);
  check(count.added == 0 && count.replaced == 0 && count.older == 0);
  check(count.same == entry.sites.size());
  std::vector<StoredSite> sites;
  for (const EntrySite& site : entry.sites) sites.push_back(site.site);
  add_tuning(again, {{"driver", "1"}}, sites, std::nullopt, "2026-11-20T20:33:53Z");
  check(again.sites.size() == entry.sites.size());
  static_cast<void>(parse_entry(to_text(again)));
  // What has failed is no winner any more, and does not come back.
  for (StoredSite& site : sites) {
    site.trials = {{site.winner, TrialStatus::Crashed, 0, 0, 0, 0}};
    site.reason = WinnerReason::NoSamples;
    site.winner = {};
  }
  add_tuning(again, {{"driver", "1"}}, sites, std::nullopt, "2027-11-20T20:33:53Z");
  static_cast<void>(merge_entry(again, parse_entry(to_text(again))));
  check(again.sites.size() == entry.sites.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto lease = Lease::parse(text)) {
    check(Lease::parse(lease->to_text()).has_value());
    check(lease->temporary.find('/') == std::string::npos);
  }
  Entry entry;
  try {
    entry = parse_entry(text);
  } catch (const Error& error) {
    const std::string_view what = error.what();
    check(what.starts_with('/') || what.starts_with("line ") || what.starts_with("the document"));
    return 0;
  }
  use(entry);
  return 0;
}

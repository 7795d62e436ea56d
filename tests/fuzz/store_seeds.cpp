// Where the search of the store's fuzz target begins: entries with all that there may be, and a
// lease.
#include "fuzz_target.hpp"
#include "store/lease.hpp"
#include "tests/unit/store/store_fixture.hpp"

FuzzInputs fuzz_inputs() {
  using namespace contextune::store;
  FuzzInputs inputs;
  const Entry full = test::full_entry();
  Entry empty;
  empty.name = "decode";
  Entry choice;
  choice.kind = contextune::StoredKind::Choice;
  choice.name = "layer \"end\"\n";
  add_tuning(choice, {}, {test::site()}, std::nullopt, "2026-11-20T20:33:53Z");
  Entry seen = full;
  StoredSite note = test::site();
  note.reason = contextune::WinnerReason::NoSamples;
  note.trials[0].status = contextune::TrialStatus::Untried;
  note.trials[1].status = contextune::TrialStatus::Crashed;
  add_tuning(seen, {}, {note, test::site("seen")}, std::nullopt, "2026-12-20T20:33:53Z");
  Lease lease;
  lease.temporary = ".1.tmp";
  inputs.seeds = {to_text(full), to_text(empty), to_text(choice), to_text(seen), lease.to_text()};
  const std::string& text = inputs.seeds.front();
  for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at)) {
    const std::size_t end = text.find('"', at + 1);
    if (end == std::string::npos) break;
    inputs.words.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  for (const char* word : {"null", "true", "[]", "{}", ",", ":", "1e999", "-0.0", "\"NaN\"",
                           "\"Infinity\"", "18446744073709551616", "\\ud800", "\\u0000", "[[[["})
    inputs.words.emplace_back(word);
  return inputs;
}

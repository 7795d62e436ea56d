// Any bytes are the state of a search for submissions or none; one that is has just this text, and
// a search goes on from it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/submission/submission_search.hpp"
#include "core/submission/submission_stored.hpp"
#include "core/submission/submission_text.hpp"

using namespace contextune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto state = submission_state_of(text);
  if (!state) return 0;
  if (text_of(*state) != text) std::abort();
  if (submission_of(stored_submission(*state, "launches", {}, "")) != state) std::abort();
  SubmissionSearch search(state->choices, {}, *state);
  for (std::uint64_t block = 0; block < 64; ++block) {
    if (!state->choices.allow(search.plan(block))) std::abort();
    search.measured(block, 1e-3, 1);
    search.elapsed(1e-3);
  }
  if (text_of(search.state()).empty()) std::abort();
  return 0;
}

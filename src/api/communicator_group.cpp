#include "api/communicator_group.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "api/last_error.hpp"
#include "api/process.hpp"
#include "core/agreement/rank_list.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/nccl/collective_calls.hpp"

namespace contextune::api {
namespace {

using intercept::RankGroup;
using intercept::Runtime;

constexpr double join_seconds = 30;

/// As far as NCCL was seen to make it.
std::uint32_t ranks_of(const void* communicator) {
  const auto known = intercept::collective_calls().find(communicator);
  return known && known->ranks > 0 ? static_cast<std::uint32_t>(known->ranks) : 0;
}

}  // namespace

RankGroup group_of(Runtime& runtime, void* communicator) {
  const std::uint32_t ranks = ranks_of(communicator);
  RankGroup found = runtime.ranks().members(communicator, ranks);
  if (found.knows_job || runtime.options().distributed == Distributed::Off) return found;
  if (ranks == 1) {
    found = {};
    found.is_whole_job = true;
    return found;
  }
  std::string why = runtime.ranks().join(communicator, join_seconds);
  found = {};
  // They are the job, or part of one that all of them know.
  if (why.empty() && ranks != 0) return runtime.ranks().members(communicator, ranks);
  found.is_whole_job = why.empty();
  found.why = std::move(why);
  return found;
}

int communicator_ranks(void* communicator, char* text, std::size_t size) noexcept {
  if (text != nullptr && size != 0) *text = '\0';
  if (communicator == nullptr) return fail("there is no communicator whose ranks could be found");
  Runtime* const now = runtime();
  if (now == nullptr) return 0;
  const intercept::Uncancelled uncancelled;
  try {
    const RankGroup found = group_of(*now, communicator);
    if (!found.is_whole_job && found.ranks.empty()) {
      now->log().fallback(found.reason, {}, {},
                          "The ranks of a communicator run the default of what they do together: " +
                              found.why + ".");
      return fail("the ranks of the communicator do not tune together: " + found.why);
    }
    const std::string ranks = found.is_whole_job ? "" : text_of_ranks(found.ranks);
    if (text == nullptr || size == 0) return 0;
    const std::size_t length = std::min(ranks.size(), size - 1);
    std::memcpy(text, ranks.data(), length);
    text[length] = '\0';
    return 0;
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace contextune::api

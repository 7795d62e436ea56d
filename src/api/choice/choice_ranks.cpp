#include "api/choice/choice_ranks.hpp"

#include <exception>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/value/byte_stream.hpp"

namespace contextune::api {
namespace {

/// Each of several choices of one name that the same ranks make has meetings of its own. The ranks
/// make the first calls of these choices in the same order.
std::string name_of_meetings(const std::string& choice, const std::vector<std::uint32_t>& ranks) {
  static auto* const mutex = new std::mutex;
  static auto* const counts =
      new std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t>;
  const std::lock_guard lock(*mutex);
  return "choice " + choice + "#" + std::to_string(++(*counts)[{choice, ranks}]);
}

}  // namespace

bool ChoiceRanks::are_alike(std::uint64_t what, const char* in_what) {
  if (!choice_.is_shared()) return true;
  if (choice_.is_apart.load(std::memory_order_acquire)) return false;
  if (choice_.ranks == nullptr && !find()) return false;
  Payload said;
  ByteWriter(said).number(what);
  const auto all = meet(std::move(said));
  if (!all) return false;
  for (std::size_t i = 0; i < all->size(); ++i) {
    ByteReader from((*all)[i]);
    if (from.number<std::uint64_t>() == what && !from.failed()) continue;
    runtime_.log().fallback(FallbackReason::RanksDiffer, {}, {},
                            "'" + problem_.label + "' runs its default on all ranks: rank " +
                                std::to_string(choice_.ranks->ranks()[i]) + " has another " +
                                in_what + ".");
    return false;
  }
  // Others, in groups that overlap with this one, may have come to theirs already.
  runtime_.ranks().announce_communicators();
  choice_.ranks->engage(engagement_, "searches '" + problem_.label + "' with other ranks");
  return true;
}

bool ChoiceRanks::find() {
  intercept::RankGroup found =
      choice_.named_ranks.empty()
          ? runtime_.ranks().members(choice_.options.communicator,
                                     static_cast<std::uint32_t>(choice_.options.ranks))
          : runtime_.ranks().named(choice_.named_ranks);
  if (found.ranks.empty()) {
    part(found.reason, found.why);
    return false;
  }
  std::string why;
  choice_.meetings = name_of_meetings(choice_.name, found.ranks);
  choice_.ranks = runtime_.ranks().lockstep(choice_.meetings, found, why);
  choice_.group = std::move(found);
  if (choice_.ranks == nullptr) part(FallbackReason::NoRendezvous, why);
  return choice_.ranks != nullptr;
}

std::optional<ChoiceRanks::Outcome> ChoiceRanks::compare(Outcome own) {
  if (!choice_.is_shared()) return own;
  Payload said;
  ByteWriter to(said);
  to.number(static_cast<std::uint8_t>(own.ran));
  to.number(static_cast<std::uint8_t>(own.right));
  const auto all = meet(std::move(said));
  if (!all) return std::nullopt;
  for (const Payload& one : *all) {
    ByteReader from(one);
    own.ran = from.number<std::uint8_t>() != 0 && own.ran;
    own.right = from.number<std::uint8_t>() != 0 && own.right;
  }
  return own;
}

std::optional<std::vector<bool>> ChoiceRanks::named_by_any(std::vector<bool> own) {
  if (!choice_.is_shared()) return own;
  Payload said;
  ByteWriter to(said);
  for (const bool named : own) to.number(static_cast<std::uint8_t>(named));
  const auto all = meet(std::move(said));
  if (!all) return std::nullopt;
  for (const Payload& one : *all) {
    ByteReader from(one);
    for (auto&& named : own) named = from.number<std::uint8_t>() != 0 || named;
  }
  return own;
}

void ChoiceRanks::occupied(double seconds) {
  if (choice_.is_shared() && choice_.ranks != nullptr)
    choice_.ranks->occupied(seconds, "tries an implementation of '" + choice_.name + "'");
}

void ChoiceRanks::leave(const std::string& why) {
  if (!choice_.is_shared()) return;
  if (choice_.ranks != nullptr) choice_.ranks->leave(why);
  part(FallbackReason::NoAgreement, why);
}

void ChoiceRanks::thread_ends() noexcept {
  try {
    leave("the thread of one of them has ended in an implementation");
  } catch (const std::exception&) {
    // No memory: the others wait for presync_timeout.
  }
}

std::optional<std::vector<Payload>> ChoiceRanks::meet(Payload said) {
  auto all = choice_.ranks->meet(std::move(said));
  if (!all) part(FallbackReason::NoAgreement, choice_.ranks->why());
  return all;
}

void ChoiceRanks::part(FallbackReason reason, const std::string& why) {
  choice_.is_apart.store(true, std::memory_order_release);
  runtime_.log().fallback(reason, {}, {},
                          "'" + choice_.name +
                              "' runs its default on all ranks, but where a winner was "
                              "agreed on before: " +
                              why + ".");
}

}  // namespace contextune::api

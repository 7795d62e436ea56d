#include "core/submission/submission.hpp"

#include <charconv>
#include <contextune/error.hpp>
#include <utility>

#include "core/value/stable_hash.hpp"

namespace contextune {
namespace {

constexpr std::string_view as_written_word = "as written";
constexpr std::string_view chained_word = "chained";
constexpr std::string_view ordinary_word = " but=";
constexpr std::string_view gathered_word = "gathered=";
constexpr std::string_view in_turns_words = " in turns";

}  // namespace

std::string text_of(const Submission& submission) {
  if (submission.is_as_written()) return std::string(as_written_word);
  std::string text(submission.chained ? chained_word : "");
  std::string_view between = ordinary_word;
  for (unsigned i = 0; i < 32; ++i) {
    if ((submission.ordinary >> i & 1U) == 0) continue;
    text.append(std::exchange(between, ",")).append(std::to_string(i));
  }
  if (submission.gathered == 0) return text;
  if (!text.empty()) text += ' ';
  return text + std::string(gathered_word) + std::to_string(submission.gathered);
}

std::uint64_t hash_of_kernel(std::string_view symbol) {
  StableHash hash;
  hash.add(symbol);
  return hash.value();
}

std::optional<Submission> submission_of(std::string_view text) {
  if (text == as_written_word) return Submission{};
  Submission submission;
  const auto word = [&text](std::string_view expected) {
    if (!text.starts_with(expected)) return false;
    text.remove_prefix(expected.size());
    return true;
  };
  const auto number = [&text](std::uint32_t& read) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc()) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  submission.chained = word(chained_word);
  if (submission.chained && word(ordinary_word)) {
    do {
      std::uint32_t kernel = 0;
      if (!number(kernel) || kernel >= 32) return std::nullopt;
      submission.ordinary |= 1U << kernel;
    } while (word(","));
  }
  if (submission.chained && text.empty()) return submission;
  if (submission.chained && !word(" ")) return std::nullopt;
  if (!word(gathered_word) || !number(submission.gathered) || !text.empty() ||
      submission.gathered == 0)
    return std::nullopt;
  return submission;
}

PinnedLaunches pinned_launches_of(std::string_view text) {
  PinnedLaunches pinned;
  std::string_view way = text;
  if (way.ends_with(in_turns_words)) {
    way.remove_suffix(in_turns_words.size());
    pinned.in_turns = true;
  }
  const auto submission = submission_of(way);
  if (!submission || submission->ordinary != 0 ||
      (pinned.in_turns && submission->is_as_written())) {
    throw Error(
        "launches are pinned to \"as written\", or to \"chained\", \"gathered=16\" or \"chained "
        "gathered=16\", behind which \" in turns\" may stand, not to \"" +
        std::string(text) + '"');
  }
  pinned.submission = *submission;
  return pinned;
}

}  // namespace contextune

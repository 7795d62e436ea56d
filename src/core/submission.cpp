#include "core/submission.hpp"

#include <charconv>

namespace contextune {
namespace {

constexpr std::string_view as_written_word = "as written";
constexpr std::string_view chained_word = "chained";
constexpr std::string_view gathered_word = "gathered=";

}  // namespace

std::string text_of(const Submission& submission) {
  if (submission.is_as_written()) return std::string(as_written_word);
  std::string text(submission.chained ? chained_word : "");
  if (submission.gathered == 0) return text;
  if (!text.empty()) text += ' ';
  return text + std::string(gathered_word) + std::to_string(submission.gathered);
}

std::optional<Submission> submission_of(std::string_view text) {
  if (text == as_written_word) return Submission{};
  Submission submission;
  if (text.starts_with(chained_word)) {
    submission.chained = true;
    text.remove_prefix(chained_word.size());
    if (text.empty()) return submission;
    if (!text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
  }
  if (!text.starts_with(gathered_word)) return std::nullopt;
  text.remove_prefix(gathered_word.size());
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), submission.gathered);
  if (error != std::errc() || end != text.data() + text.size() || submission.gathered == 0)
    return std::nullopt;
  return submission;
}

}  // namespace contextune

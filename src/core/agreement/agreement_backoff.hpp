#pragma once

#include <cstdint>
#include <string>

namespace contextune {

/// When a rank asks the others again, and in how many entries it expects their answer: more after
/// each refusal, fewer where answers come at once.
class AgreementBackoff {
 public:
  /// Seconds that a rank may be kept waiting for the others.
  explicit AgreementBackoff(double patience_seconds) : patience_seconds_(patience_seconds) {}

  /// Entries in which an answer is expected.
  [[nodiscard]] std::uint64_t margin() const { return margin_; }
  /// Whether to ask in that entry.
  [[nodiscard]] bool may_ask(std::uint64_t entry) const { return entry >= pause_until_; }
  void ask(std::uint64_t entry) { asked_entry_ = entry; }
  /// The answer has come in that entry.
  void agree(std::uint64_t entry);
  /// The answer was a batch in that entry: after one without passes, asking pauses.
  void pace(bool has_passes, std::uint64_t entry);
  /// There is nothing to run: the next entry asks again, not this one.
  [[nodiscard]] bool rests() const { return rests_; }
  void wake() { rests_ = false; }

  /// Counts a refusal.
  /// @param is_overtaken this rank came to its next entry before all had spoken
  /// @param is_late there are winners, and what comes after them may be this rank's alone
  /// @return whether the question is asked again
  [[nodiscard]] bool refuse(bool is_overtaken, bool is_late, double now);
  /// The question is asked again after that refusal.
  void back_off(const std::string& why);
  /// Says once why ranks have not agreed since they last did, a clause. Empty: nothing to say.
  [[nodiscard]] std::string explain();

 private:
  const double patience_seconds_;
  std::uint64_t margin_ = 4;
  std::uint64_t asked_entry_ = 0;
  int refusals_ = 0;          ///< since the last agreement
  double refused_since_ = 0;  ///< time of the first of them
  std::string last_refusal_;
  std::uint64_t pause_entries_ = 0;  ///< after batches without passes, before asking again
  std::uint64_t pause_until_ = 0;
  bool rests_ = false;
  bool explained_ = false;
};

}  // namespace contextune

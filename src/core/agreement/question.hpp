#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/agreement/batch.hpp"
#include "core/coordination/coordinator.hpp"

namespace contextune {

/// The question that the ranks of a region decide next. It is open from this rank's part until its
/// answer is taken; then comes the next one. An answer that has come is kept until it is taken:
/// where there is no memory to take it in, it is still there.
///
/// Threads as RegionTuning says. The coordinator must outlive it.
class Question {
 public:
  /// Why a rank takes its word back.
  static constexpr const char* entered_again = "the region was entered again before all had spoken";

  /// @param kind of the coordinator's deciders
  /// @param patience_seconds that a rank may be kept waiting for the others
  Question(Coordinator& coordinator, Topic topic, std::uint32_t kind, double patience_seconds);

  [[nodiscard]] const Topic& topic() const { return topic_; }
  /// Other ranks are asked. Before the first question.
  void narrow(std::uint64_t group, const std::vector<std::uint32_t>& ranks);

  /// @param bounded the program makes the entries, and is not kept waiting for the answer
  /// @return false: this rank has said that it pauses, and says nothing else
  [[nodiscard]] bool open(bool bounded);
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] bool is_bounded() const { return bounded_; }
  void say(BatchReport part);
  [[nodiscard]] const BatchReport& said() const { return said_; }
  /// It was refused, and is asked again. The very same is said then: the planner may have taken it
  /// in.
  void repeat() { is_repeated_ = true; }
  [[nodiscard]] bool is_repeated() const { return is_repeated_; }
  /// Whether this rank's part was its pause.
  [[nodiscard]] bool is_pausing() const { return pausing_; }

  /// See TuningRanks.
  void occupied(double seconds, const std::string& why);
  void pause(const BatchReport& notice);
  void leave(const BatchReport& notice);

  /// await() is the next call: what it hears is not there yet.
  void expect_await(bool is_next) { awaiting_ = is_next; }
  /// Waits for the answer. Other threads may make other calls meanwhile.
  /// @param is_holding decisions wait for it
  void await(const std::function<bool()>& interrupted, bool is_holding);
  /// Whether the answer has come.
  /// @param is_overtaken this rank takes its word back
  [[nodiscard]] bool has_answer(bool is_overtaken);
  /// Takes this rank's word back, or waits for the verdict where that is too late.
  /// @return false: the answer has not come; ask again in a moment
  [[nodiscard]] bool settle(const char* why, double now);
  /// Once it has come.
  [[nodiscard]] const Agreement& answer() const { return *answer_; }
  /// The answer is taken: this question is closed.
  [[nodiscard]] Agreement take_answer();

 private:
  [[nodiscard]] Agreement await_verdict(const std::function<bool()>& interrupted, bool is_holding);
  /// The verdict was waited for so long.
  static void leave_unknown(Agreement& agreement, double seconds);

  Coordinator& coordinator_;
  const std::uint32_t kind_;
  const double patience_seconds_;
  Topic topic_;
  bool open_ = false;
  bool bounded_ = false;
  std::atomic<bool> awaiting_{false};  ///< await() is the next call, or under way
  BatchReport said_;
  bool is_repeated_ = false;
  std::optional<Agreement> answer_;
  double settling_since_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<std::uint64_t> pause_said_;  ///< as the part of that question
  bool pausing_ = false;                     ///< the answer is to that
  bool left_ = false;
};

}  // namespace contextune

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/choice/choice_record.hpp"
#include "core/coordination/engagement.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::api {

/// The ranks that do a choice together. An implementation waits for the same one on all ranks, so
/// each is run by all of them or by none. Where there is but one rank, it agrees with itself. Waits
/// for the others, with a deadline; by whoever has the choice's search_mutex.
class ChoiceRanks {
 public:
  ChoiceRanks(contextune_choice& choice, const ChoiceProblem& problem, intercept::Runtime& runtime)
      : choice_(choice), problem_(problem), runtime_(runtime) {}

  /// Whether all are at this, with the very same before them. Where they are not, it is said why,
  /// and the problem keeps its default on all of them.
  [[nodiscard]] bool are_alike(std::uint64_t what, const char* in_what);

  /// The outcome of one run on all ranks.
  struct Outcome {
    bool ran = false;    ///< on all of them
    bool right = false;  ///< on all of them
  };
  /// After a run. Absent: they have lost one another.
  [[nodiscard]] std::optional<Outcome> compare(Outcome own);

  /// Which of the problem's candidates some rank names. Absent: they have lost one another.
  [[nodiscard]] std::optional<std::vector<bool>> named_by_any(std::vector<bool> own);

  /// The next step occupies this rank for up to so many seconds.
  void occupied(double seconds);
  /// This rank does not go on, for that reason, a clause.
  void leave(const std::string& why);
  /// As leave(), where this thread ends in an implementation.
  void thread_ends() noexcept;

 private:
  /// Finds them, and begins to meet them. False: they run their default.
  [[nodiscard]] bool find();
  /// All run the default from now on.
  void part(FallbackReason reason, const std::string& why);
  [[nodiscard]] std::optional<std::vector<Payload>> meet(Payload said);

  contextune_choice& choice_;
  const ChoiceProblem& problem_;
  Engagement engagement_;  ///< from the first time on that all are alike
  intercept::Runtime& runtime_;
};

}  // namespace contextune::api

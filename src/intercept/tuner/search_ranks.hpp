#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/trials/decision_port.hpp"
#include "intercept/measuring/pass_barrier.hpp"
#include "intercept/site/region_ranks.hpp"

namespace contextune::intercept {

class Search;

/// The dealings of one search with other ranks, under its lock: TuningRanks says what each call
/// means. Any thread.
class SearchRanks {
 public:
  explicit SearchRanks(Search& search) noexcept : search_(search) {}

  /// After begin_waiting: keeps a pass until what comes before it is done and, where several ranks
  /// make it, all of them have come to it.
  /// @param is_ready waits for what comes before it; false: it has not ended in time
  /// @param patience seconds that this may take, and the pass
  /// @return false: it is not made, by any of them; begin_waiting says what comes instead
  [[nodiscard]] bool begin_together(const std::function<bool()>& is_ready, double patience);
  /// As RegionRanks::ask says, of ranks that are several.
  [[nodiscard]] RegionRanks::Answer ask(const std::function<bool()>& is_ready, double patience,
                                        std::string& why);
  /// The body was left: nobody waits for this rank before a pass. By the thread that makes them.
  void leave_passes(const std::string& why);
  void pause();
  void occupied(double seconds, const std::string& why);
  void repeat_together(std::span<const std::uint32_t> ranks);
  void limit_to(std::span<const std::uint32_t> ranks);
  /// None have agreed, for that reason, a sentence.
  void say_untuned(FallbackReason reason, const std::string& text);
  /// As RegionRanks says.
  [[nodiscard]] std::string why_untuned() const;
  /// Something came that they may have to agree on after they had winners.
  void reopen();
  [[nodiscard]] bool keep_in_step(DecisionPort& port);
  /// A decision is due that the port's hold() forbids.
  [[nodiscard]] bool settle(double now);

 private:
  Search& search_;
  std::unique_ptr<PassBarrier> barrier_;  ///< once ranks have waited before a pass
};

}  // namespace contextune::intercept

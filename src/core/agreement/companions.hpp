#pragma once

#include <cstdint>
#include <span>

#include <contextune/options.hpp>

#include "core/agreement/shared_tuning.hpp"
#include "core/trials/decision_port.hpp"

namespace contextune {

/// With whom a region is tuned, as far as that is known.
struct Companions {
  enum class State {
    Alone,   ///< nobody, for now
    Sought,  ///< not known yet
    Known
  };

  State state = State::Alone;
  Coordinator* coordinator = nullptr;  ///< if they are known; outlives the tuning
  SharedTuningSettings settings;       ///< the same
  Scope scope = Scope::Auto;           ///< the same
};

/// Finds companions for one region; a port. Called under the region's lock, and waits for nobody
/// where nothing else is said.
class CompanionSource {
 public:
  virtual ~CompanionSource() = default;

  /// Whether this process may have any at all: then the first entry of a region only shows whether
  /// it needs them.
  [[nodiscard]] virtual bool may_be_any() = 0;

  /// Whether it has them even in a region without collectives.
  [[nodiscard]] virtual bool are_certain() = 0;

  /// It is known from elsewhere that these ranks of the job make its entries, and nobody else does.
  virtual void limit_to(std::span<const std::uint32_t> /*ranks*/) {}

  /// Asks; at each entry, until they are known.
  /// @param used    where the process stands in the streams of decisions of the region
  /// @param entries since it was asked first
  /// @param bounded the program makes the entries; see RegionTuning::begin_pass. Else companions
  ///                are not sought. A rank that makes entries for the search makes as many as all
  ///                of the job, whether they come or not. The ranks that it takes for the others
  ///                do not count for that.
  [[nodiscard]] virtual Companions find(std::span<const DecisionStanding> used,
                                        std::uint64_t entries, bool bounded, double now) = 0;

  /// In place of find(), once: this process is not tuned any more in the region, and whoever looks
  /// for it is told. Waits for a moment, or it would not be known who has found it already.
  /// @return those; they have to be told by the tuning that they share
  [[nodiscard]] virtual Companions leave(std::span<const DecisionStanding> used, bool bounded) = 0;
};

}  // namespace contextune

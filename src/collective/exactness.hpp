#pragma once

#include <optional>
#include <string_view>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// How far from the default's result a config of a collective may lead.
enum class Exactness {
  Exact,          ///< the same bits, by construction
  SameAlgorithm,  ///< other roundings, but those of the algorithm that NCCL takes by itself
  Any,            ///< any rounding
};

/// "exact", "same-algorithm" or "any". @throws Error for another text
[[nodiscard]] Exactness parse_exactness(std::string_view text);
[[nodiscard]] std::string_view name_of(Exactness exactness) noexcept;

/// What the user allows. Without allow_rounding everything is exact, whatever `exactness` says;
/// with it, `exact` is not enough to mean anything, so same-algorithm is the least.
struct RoundingOptions {
  Exactness exactness = Exactness::Exact;
  bool allow_rounding = false;
};

/// Which algorithms may run for one collective, and why.
struct Permission {
  enum class Algorithms {
    None,     ///< nothing but the default
    Default,  ///< the one that NCCL takes by itself
    BySms,    ///< those that let the SMs add up, and no switch
    All,
  };
  Algorithms algorithms = Algorithms::None;
  bool is_exact = true;  ///< what may run gives the default's bits
  std::string_view reason;

  /// Whether a cell of `algorithm` may run, with any protocol and number of channels.
  [[nodiscard]] bool allows(Algorithm algorithm,
                            std::optional<Algorithm> default_algorithm) const noexcept;
};

/// Which candidates may run in place of the default. A pure function of what all ranks share.
/// @param op                absent where the number that the program gave is not known
/// @param default_algorithm what NCCL takes by itself; absent where ranks differ in it
[[nodiscard]] Permission permission_for(Function function, std::optional<Datatype> datatype,
                                        std::optional<Operator> op, int ranks,
                                        std::optional<Algorithm> default_algorithm,
                                        RoundingOptions options) noexcept;

}  // namespace contextune::collective

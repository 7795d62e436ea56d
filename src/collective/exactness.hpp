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
/// allow_rounding alone stands for same-algorithm, the least that makes a difference.
struct RoundingOptions {
  Exactness exactness = Exactness::Exact;
  bool allow_rounding = false;
};

/// Which cells may run in place of the default, and why.
struct Permission {
  CellSet cells;
  bool is_exact = true;  ///< all of them give the default's bits
  std::string_view reason;
};

/// Which candidates may run in place of the default. A pure function of what all ranks share.
/// @param op                absent where the number that the program gave is not known
/// @param default_algorithm what NCCL takes by itself; absent where ranks differ in it
[[nodiscard]] Permission permission_for(Function function, std::optional<Datatype> datatype,
                                        std::optional<Operator> op, int ranks,
                                        std::optional<Algorithm> default_algorithm,
                                        RoundingOptions options) noexcept;

/// What two collectives permit that cannot be told apart where it is decided.
[[nodiscard]] Permission both(const Permission& one, const Permission& other) noexcept;

}  // namespace contextune::collective

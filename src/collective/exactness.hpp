#pragma once

#include <optional>
#include <string_view>

#include <contextune/options.hpp>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// The rounding that the user allows. Without allow_rounding everything is exact, whatever
/// `exactness` says.
struct RoundingOptions {
  Exactness exactness = Exactness::SameAlgorithm;
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

/// Whether a cell that was chosen for many sizes may take the place of NCCL's own choice at one of
/// them. Exactness depends on that choice, and NCCL does not choose alike for all sizes. The answer
/// is the same on all ranks, since a program whose ranks' own choices differ hangs in NCCL anyway.
[[nodiscard]] bool may_replace(std::optional<Cell> default_cell, Cell cell, Function function,
                               Datatype datatype, Operator op, int ranks,
                               RoundingOptions options) noexcept;

}  // namespace contextune::collective

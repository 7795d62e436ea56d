#pragma once

#include <optional>
#include <string_view>

#include <contextune/options.hpp>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// What the user allows. Without allow_rounding everything is exact, whatever `exactness` says.
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

/// What two collectives permit that cannot be told apart where it is decided.
[[nodiscard]] Permission both(const Permission& one, const Permission& other) noexcept;

}  // namespace contextune::collective

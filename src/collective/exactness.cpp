#include "collective/exactness.hpp"

#include <contextune/error.hpp>

#include "collective/all_to_all.hpp"

namespace contextune::collective {
namespace {

constexpr CellSet no_cells;
constexpr CellSet all_algorithms(~0U);

template <typename Predicate>
CellSet cells_where(Predicate may_run) noexcept {
  CellSet set;
  for (const Cell& cell : all_cells()) {
    if (may_run(cell.algorithm)) set.add(cell);
  }
  return set;
}

CellSet cells_of(Algorithm algorithm) noexcept {
  return cells_where([&](Algorithm other) { return other == algorithm; });
}

CellSet cells_of_sms() noexcept {
  return cells_where([](Algorithm algorithm) { return !reduces_in_switch(algorithm); });
}

// Why the order of addition depends on more than the algorithm. An element's place in the buffer
// says in which channel and in which chunk of it the element is. The number of channels moves the
// borders of channels; the protocol, whose buffers are of another size, moves those of chunks.
// - Ring: a chunk starts at the rank that its number says and takes up the others in the order of
//   the ring. Another chunk: the same cyclic order, begun elsewhere, so other partial sums.
//   Channels may have rings of another order, too.
// - Tree: a double tree. Half of the channels use a tree in which the other half's leaves are inner
//   nodes; and within a node ranks are a chain. Another channel: other partners.
// - PAT: like a tree, with as many steps at a time as fit a buffer, so the protocol counts.
// - NVLS, CollNet: the order is the switch's, and is not stated to be the same from call to call.
// The way the error can grow stays: with the ranks in a ring, with their logarithm in a tree.
constexpr std::string_view adds_in_another_order =
    "sums and products of floating-point numbers of more than two ranks depend on the order, which "
    "channels, protocols and algorithms change; tuning them needs --allow-rounding";
constexpr std::string_view keeps_algorithm =
    "NCCL's own algorithm, so rounding errors grow with the ranks as they did. The bits are not "
    "promised, because other channels and protocols put an element into another chunk, whose sum "
    "starts at another rank or goes up another tree";
constexpr std::string_view any_rounding =
    "any algorithm: neither the bits nor how rounding errors grow with the ranks are promised";

// Two ranks add once, and a + b is b + a, whoever adds. That holds for halves and smaller types
// as well: some SMs add them as such and others in the next larger type. The larger type has more
// than twice the digits and two to spare, so rounding twice gives what rounding once does. (Where
// both numbers are NaN, whose payload is kept is not stated.)
constexpr std::string_view one_addition = "two ranks add once, and the order of two does not count";
constexpr std::string_view in_default_switch =
    "the switch adds or compares, and what it makes of subnormal numbers, NaN and the sign of zero "
    "is not stated, so only the same algorithm gives the same";

// Scaling rounds each rank's number once more, but not that of a rank that scales and adds in one
// fused step. The chunk decides which rank adds. With two ranks, where an average halves, only
// subnormal numbers show it, which are everyday ones among halves.
constexpr std::string_view scales_first =
    "an average or a scaled sum of floating-point numbers rounds before it adds, but not at a rank "
    "that does both in one step. Channels, protocols and algorithms change which rank that is; "
    "tuning it needs --allow-rounding";

Permission only_exact(CellSet cells, std::string_view reason) noexcept {
  return {cells, true, reason};
}

/// For what has the same result wherever SMs combine the numbers.
Permission outside_of_switches(std::optional<Algorithm> default_algorithm,
                               std::string_view reason) noexcept {
  if (!default_algorithm) return only_exact(no_cells, "ranks differ in NCCL's own choice");
  if (reduces_in_switch(*default_algorithm)) {
    return only_exact(cells_of(*default_algorithm), in_default_switch);
  }
  return only_exact(cells_of_sms(), reason);
}

/// For what has the default's bits in the default only.
Permission with_rounding(std::optional<Algorithm> default_algorithm, RoundingOptions options,
                         std::string_view why_not_exact) noexcept {
  if (!options.allow_rounding || options.exactness == Exactness::Exact)
    return only_exact(no_cells, why_not_exact);
  if (options.exactness == Exactness::Any) return {all_algorithms, false, any_rounding};
  if (!default_algorithm) return only_exact(no_cells, "ranks differ in NCCL's own choice");
  return {cells_of(*default_algorithm), false, keeps_algorithm};
}

}  // namespace

Permission permission_for(Function function, std::optional<Datatype> datatype,
                          std::optional<Operator> op, int ranks,
                          std::optional<Algorithm> default_algorithm,
                          RoundingOptions options) noexcept {
  if (ranks <= 1) return only_exact(no_cells, "NCCL copies for one rank and asks no tuner");
  if (function == Function::AllToAll) return only_exact(no_cells, all_to_all_untunable);
  if (!is_reduction(function)) {
    return only_exact(all_algorithms, "data movement: every config copies the same bytes");
  }
  if (!datatype || !op) {
    return only_exact(no_cells, "a datatype or an operator that is not known here");
  }
  if (!is_floating(*datatype)) {
    // Sums and products wrap; an average divides the whole sum, once.
    return only_exact(all_algorithms, "integers come out the same in any order");
  }

  const bool compares = *op == Operator::Min || *op == Operator::Max;
  const bool scales = *op == Operator::Avg || *op == Operator::PreMulSum;
  if (scales) return with_rounding(default_algorithm, options, scales_first);
  if (!compares && ranks > 2) {
    return with_rounding(default_algorithm, options, adds_in_another_order);
  }
  if (options.allow_rounding && options.exactness == Exactness::Any) {
    return {all_algorithms, false, any_rounding};
  }
  return outside_of_switches(
      default_algorithm,
      compares ? "the smallest and the largest number have no order" : one_addition);
}

bool may_replace(std::optional<Cell> default_cell, Cell cell, Function function, Datatype datatype,
                 Operator op, int ranks, RoundingOptions options) noexcept {
  std::optional<Algorithm> algorithm;
  if (default_cell) algorithm = default_cell->algorithm;
  return permission_for(function, datatype, op, ranks, algorithm, options).cells.has(cell);
}

}  // namespace contextune::collective

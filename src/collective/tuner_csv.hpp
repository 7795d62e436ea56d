#pragma once

#include <optional>
#include <span>
#include <string>

#include <contextune/buckets.hpp>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// A winner as NCCL's example tuner plugin can use it. An absent member holds for any value.
struct TunerRow {
  Function function = Function::AllReduce;  ///< not AllToAll
  SizeBucket sizes;
  Cell cell;
  int channels = 0;  ///< 0: as NCCL chooses
  std::optional<int> nodes;
  std::optional<int> ranks;
  std::optional<int> operations;  ///< in the group
  std::optional<bool> registered_buffers;
};

/// The rows in the CSV format of that plugin, which takes the first row that a call fits. So later
/// rows for the same calls become comments: the plugin knows neither datatype, operator nor in
/// place. It gives one channel to calls that no row fits: write rows for defaults, too. Channels
/// that NCCL is to choose are 0, which is what NCCL has there: -1 would leave that one channel.
[[nodiscard]] std::string to_tuner_csv(std::span<const TunerRow> rows);

}  // namespace contextune::collective

#pragma once

#include <cstdint>
#include <memory>

#include "cost_model.hpp"
#include "tuner_plugin.hpp"

namespace simnccl {

/// How a collective is to be done.
struct Decision {
  int algorithm = ring;
  int protocol = simple;
  int wanted_channels = 0;  // 0: the library's default
  float microseconds = 0;   // what the table promises
};

/// The tuner plugin, as one communicator knows it. Made and asked exactly as NCCL does.
class Tuner {
 public:
  /// Calls the plugin's init, if there is a plugin. @throws Error when that fails
  Tuner(std::uint64_t communicator, int ranks);
  ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  /// Asks about `aggregated` collectives that are done as one, and takes the cheapest cell.
  /// @throws Error when the plugin fails or no cell is legal
  [[nodiscard]] Decision decide(int rank, const Workload& work, int aggregated) const;

 private:
  TunerPlugin plugin_;
  void* context_ = nullptr;
};

}  // namespace simnccl

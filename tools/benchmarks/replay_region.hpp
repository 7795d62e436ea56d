#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <contextune/restore.hpp>

namespace replay_bench {

/// Row length of the state that the region works on.
inline constexpr int columns = 1024;

/// The region that is tuned, as an ordinary program has it: it relaxes each value of a state
/// towards another one, then scales each row by its largest magnitude, both in place. The result
/// does not depend on the launch shapes, by not a single bit; another run on top of the first
/// changes it.
class Region {
 public:
  virtual ~Region() = default;

  /// Makes the context and the data, and launches the region once, so that no loading of code is
  /// measured later. Returns the GPU's name. @throws std::runtime_error if there is none
  virtual std::string prepare(int rows) = 0;
  [[nodiscard]] virtual bool simulated() const = 0;
  [[nodiscard]] virtual int usual_mib() const = 0;  ///< size of the state

  virtual void launch() = 0;
  virtual void synchronise() = 0;
  /// What the region writes.
  [[nodiscard]] virtual std::vector<contextune::DeviceSpan> written() const = 0;
  /// The state, on an idle GPU.
  [[nodiscard]] virtual std::vector<float> state() const = 0;
};

/// The whole program.
int run(int argc, char** argv, Region& region);

}  // namespace replay_bench

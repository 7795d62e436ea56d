#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_api.hpp"

namespace simcuda {

/// One fault that a test asked for.
struct Fault {
  enum class Kind { launch_fail, wrong_result, sticky, hang, no_device };
  Kind kind = Kind::launch_fail;
  std::string kernel;              // "*" for any
  std::optional<unsigned> block;   // threads of a block
  std::optional<unsigned> grid;    // blocks of the grid
  std::optional<unsigned> shared;  // dynamic shared bytes
  unsigned after = 0;              // matching launches that go well first
  std::optional<unsigned> times;   // matching launches that fail, then no more
  CUresult error = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
};

/// The faults of a process, by `KIND[:KERNEL[:FIELD=VALUE[,FIELD=VALUE...]]]`, several with `;`.
/// Not thread-safe.
class Faults {
 public:
  /// Nothing when the text is not understood.
  static std::optional<Faults> parse(std::string_view text);

  [[nodiscard]] bool no_device() const;
  /// The first fault that hits this launch; counts it.
  const Fault* hit(std::string_view kernel, unsigned block, unsigned grid, unsigned shared_bytes);

 private:
  std::vector<Fault> faults_;
};

}  // namespace simcuda

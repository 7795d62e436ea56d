#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_api.hpp"

namespace simcuda {

/// One fault that a test asked for.
struct Fault {
  enum class Kind {
    launch_fail,
    wrong_result,
    sticky,
    hang,
    abort,
    no_device,
    copy_fail,
    copy_wrong,
    copy_late,
    alloc_fail,
    host_alloc_fail
  };
  Kind kind = Kind::launch_fail;
  std::string target;              // a kernel, or the direction of a copy; "*" for any
  std::optional<unsigned> block;   // threads of a block
  std::optional<unsigned> grid;    // blocks of the grid
  std::optional<unsigned> shared;  // dynamic shared bytes
  std::optional<unsigned> graph;   // 1: launches by a graph; 0: others
  std::optional<unsigned> bytes;   // of a copy or an allocation
  unsigned min_bytes = 0;          // of a copy or an allocation
  unsigned after = 0;              // matching calls that go well first
  std::optional<unsigned> times;   // matching calls that fail, then no more
  CUresult error = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
};

/// The faults of a process, by `KIND[:TARGET[:FIELD=VALUE[,FIELD=VALUE...]]]`, several with `;`.
/// Not thread-safe.
class Faults {
 public:
  /// Nothing when the text is not understood.
  static std::optional<Faults> parse(std::string_view text);

  [[nodiscard]] bool no_device() const;
  /// The first fault that hits this launch; counts it.
  const Fault* hit(std::string_view kernel, unsigned block, unsigned grid, unsigned shared_bytes,
                   bool by_graph);
  /// The same for a copy or memset; `direction` is HtoD, DtoH, DtoD, HtoH or set.
  const Fault* hit_copy(std::string_view direction, std::size_t bytes);
  /// The same for an allocation: `kind` is alloc_fail or host_alloc_fail.
  const Fault* hit_allocation(Fault::Kind kind, std::size_t bytes);
  /// Whether the caller of this copy comes back late; counts it.
  bool delays_copy(std::string_view direction, std::size_t bytes);

 private:
  const Fault* hit_copy(bool is_late, std::string_view direction, std::size_t bytes);

  std::vector<Fault> faults_;
};

}  // namespace simcuda

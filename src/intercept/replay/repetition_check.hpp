#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <contextune/error.hpp>

#include "gpu/memory/block_hash.hpp"
#include "gpu/memory/block_store.hpp"
#include "gpu/memory/footprint.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// Checks whether work leaves the same however often it is run, where nobody has said so. All
/// memory of the program is copied after the first run, on each device, and compared after a second
/// one. A copy that differs is put back, so that the program goes on from its first run. Used by
/// one thread, which runs the work; waits for the GPU, with a deadline.
class RepetitionCheck {
 public:
  /// It cannot be found out; the text is a clause.
  class Impossible : public Error {
   public:
    using Error::Error;
  };

  /// @param options of the process: the room for copies, and how long work may take
  RepetitionCheck(const RegionServices& services, const Options& options);
  ~RepetitionCheck();
  RepetitionCheck(const RepetitionCheck&) = delete;
  RepetitionCheck& operator=(const RepetitionCheck&) = delete;

  /// After the first run. @throws Impossible, or Error: nothing was changed
  void begin();
  /// After the second. Where it has left something else, that is put back.
  /// @return a clause on what it has left; empty: the same
  /// @throws Error if it cannot be told or put back: what the second run left stays
  [[nodiscard]] std::string find_change();

 private:
  /// The memory of one device, of which the program has one context.
  struct Part {
    CUcontext context = nullptr;
    int device = -1;
    gpu::Footprint footprint{};
    std::vector<std::uint64_t> hashes{};
    std::unique_ptr<gpu::BlockHasher> hasher{};
    std::unique_ptr<gpu::BlockStore> copies{};
  };

  [[nodiscard]] std::vector<Part> find_parts() const;
  [[nodiscard]] std::vector<gpu::MemoryRange> memory_of(const Part& part) const;
  void wait_until_idle(const char* when) const;

  const RegionServices& services_;
  const Options& options_;
  std::vector<Part> parts_;
  bool claimed_ = false;
};

}  // namespace contextune::intercept

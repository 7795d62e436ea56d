// What a pass of a replay finds: the caches as one entry of the program leaves them to the next.
#include "intercept/region_replay.hpp"

namespace contextune::intercept {

void RegionReplay::follow_itself(Replayer& replayer) {
  // A lease counts the collectives of the passes, and of nothing else.
  if (together_) return;
  // Comparing what the pass before left, and putting it back, has gone through the caches. What is
  // put back now leaves them as they are, as far as it can.
  replayer.run([](const Site& site) { return site.planned(); });
  ++replays_;
  memory_->restore_initial();
}

}  // namespace contextune::intercept

#include "core/coordination/rank_set.hpp"

#include <algorithm>
#include <limits>

namespace contextune {

RankSet RankSet::all_of(std::uint32_t num_ranks) {
  RankSet all;
  if (num_ranks > 0)
    static_cast<void>(all.push_back(Run{0, num_ranks > 1 ? 1U : 0U, num_ranks, 0}));
  return all;
}

void RankSet::push_back(std::uint32_t rank) {
  const auto before = static_cast<std::uint32_t>(size_++);
  if (!runs_.empty()) {
    Run& run = runs_.back();
    if (run.count == 1 && rank > run.first) {
      run.distance = rank - run.first;
      run.count = 2;
      return;
    }
    if (run.count > 1 && rank == run.last() + run.distance) {
      ++run.count;
      return;
    }
  }
  runs_.push_back({rank, 0, 1, before});
}

bool RankSet::push_back(Run run) {
  if (run.count == 0 || (run.distance == 0) != (run.count == 1) ||
      run.last() > std::numeric_limits<std::uint32_t>::max())
    return false;
  if (!runs_.empty()) {
    const Run& before = runs_.back();
    if (before.count == 1 || run.first <= before.last() ||
        run.first == before.last() + before.distance)
      return false;
  }
  run.before = static_cast<std::uint32_t>(size_);
  runs_.push_back(run);
  size_ += run.count;
  return true;
}

bool RankSet::ascends() const noexcept {
  // Within a run they do.
  return std::adjacent_find(runs_.begin(), runs_.end(), [](const Run& before, const Run& after) {
           return after.first <= before.last();
         }) == runs_.end();
}

std::size_t RankSet::place_of(std::uint32_t rank) const noexcept {
  const auto behind =
      std::upper_bound(runs_.begin(), runs_.end(), rank,
                       [](std::uint32_t wanted, const Run& run) { return wanted < run.first; });
  if (behind == runs_.begin()) return no_place;
  const Run& run = *(behind - 1);
  if (rank > run.last()) return no_place;
  const std::uint32_t distance = rank - run.first;
  if (distance == 0) return run.before;
  return distance % run.distance == 0 ? run.before + distance / run.distance : no_place;
}

void RankSet::write_to(ByteWriter& writer) const {
  writer.number(static_cast<std::uint32_t>(runs_.size()));
  for (const Run& run : runs_) {
    writer.number(run.first);
    writer.number(run.distance);
    writer.number(run.count);
  }
}

bool RankSet::read_from(ByteReader& reader) {
  const auto count = reader.number<std::uint32_t>();
  ByteReader runs(reader.raw(std::size_t{count} * 3 * sizeof(std::uint32_t)));
  while (runs.left() != 0) {
    Run run;
    run.first = runs.number<std::uint32_t>();
    run.distance = runs.number<std::uint32_t>();
    run.count = runs.number<std::uint32_t>();
    if (!push_back(run)) return false;
  }
  return true;
}

}  // namespace contextune

#include "cost_model.hpp"

#include <algorithm>
#include <cmath>

namespace simcuda {

namespace {

double or_default(double value, double fallback) {
  return value > 0 ? value : fallback;
}

double cube(double value) {
  return value * value * value;
}

// Launches with equal layouts give the same bytes to the same SMs.
std::uint64_t layout_of(const LaunchShape& shape, unsigned element_bytes) {
  const std::uint64_t tile =
      std::uint64_t{shape.demand.threads} * (element_bytes == 0 ? 4 : element_bytes);
  return tile * 0x9E3779B97F4A7C15ULL ^ static_cast<std::uint64_t>(shape.blocks);
}

}  // namespace

LaunchCost CostModel::launch(const LaunchShape& shape, const simcuda_work& work) {
  LaunchCost cost;
  cost.shared_configuration_bytes =
      shared_configuration(profile_, shape.demand, shape.carveout_percent);
  const unsigned resident =
      std::max(1U, blocks_per_sm(profile_, shape.demand, cost.shared_configuration_bytes));
  const std::size_t l1 =
      profile_.l1_bytes - std::min(profile_.l1_bytes, cost.shared_configuration_bytes);
  const Traffic memory = traffic(shape, work, resident, l1);

  const double slots = static_cast<double>(resident) * profile_.num_sms;
  const double full_waves = std::floor(shape.blocks / slots);
  const double tail = shape.blocks - full_waves * slots;
  double seconds = profile_.kernel_base + profile_.block_start;
  if (full_waves > 0) seconds += full_waves * wave(slots, shape, work, memory);
  if (tail > 0) seconds += wave(tail, shape, work, memory);
  if (cost.shared_configuration_bytes != shared_configuration_) {
    seconds += profile_.carveout_switch;
    shared_configuration_ = cost.shared_configuration_bytes;
  }
  cost.seconds = seconds;
  cost.utilisation = std::min(1.0, shape.blocks / slots);
  return cost;
}

CostModel::Traffic CostModel::traffic(const LaunchShape& shape, const simcuda_work& work,
                                      unsigned resident, std::size_t l1_bytes) {
  Traffic sum;
  double footprint = 0;
  for (unsigned i = 0; i < work.access_count; ++i)
    footprint += static_cast<double>(work.accesses[i].bytes);
  const double pressure =
      std::min(1.0, static_cast<double>(cache_.capacity_bytes()) / std::max(footprint, 1.0));

  double waiting = 0;
  for (unsigned i = 0; i < work.access_count; ++i) {
    const simcuda_access& access = work.accesses[i];
    const auto bytes = static_cast<double>(access.bytes);
    if (bytes <= 0) continue;
    // The first pass comes from L2 or DRAM.
    const CacheModel::Hits hits =
        cache_.touch({reinterpret_cast<std::uintptr_t>(access.address), access.bytes,
                      layout_of(shape, access.element_bytes),
                      (access.flags & SIMCUDA_STREAMING) == 0, pressure});
    // Later passes hit in L1 as far as the tiles of all resident blocks fit there.
    const double again = (or_default(access.passes, 1.0) - 1.0) * bytes;
    const double held = static_cast<double>(access.tile_bytes) * resident;
    const double in_l1 =
        held > 0 ? std::min(1.0, static_cast<double>(l1_bytes) / held) * again : 0.0;
    const double second_level = std::max(0.0, again - in_l1);
    const double far = hits.far_bytes + second_level / 2;
    const double near = hits.near_bytes + second_level / 2;
    // A write leaves for L2 without anybody waiting; DRAM sees it when it is evicted.
    const bool write_only = (access.flags & SIMCUDA_READ) == 0;
    const bool to_dram = (access.flags & SIMCUDA_STREAMING) != 0 || !write_only;
    const double dram = to_dram ? hits.miss_bytes : 0.0;
    const double absorbed = to_dram ? 0.0 : hits.miss_bytes;
    // What is read and written goes over twice; it is written back to where it was just read.
    const double written_back =
        (access.flags & (SIMCUDA_READ | SIMCUDA_WRITE)) == (SIMCUDA_READ | SIMCUDA_WRITE) ? bytes
                                                                                          : 0.0;
    sum.bytes += far + near + hits.miss_bytes + written_back;
    sum.repeated_bytes += in_l1;
    sum.device_time += (near + written_back) / profile_.l2_near_bandwidth +
                       dram / profile_.dram_bandwidth +
                       (far + absorbed) / profile_.l2_far_bandwidth;
    if (!write_only)
      waiting += near * profile_.l2_near_latency + far * profile_.l2_far_latency +
                 dram * profile_.dram_latency;
  }
  sum.latency = sum.bytes > 0 ? waiting / sum.bytes : 0.0;
  return sum;
}

double CostModel::wave(double active_blocks, const LaunchShape& shape, const simcuda_work& work,
                       const Traffic& memory) const {
  const double share = active_blocks / std::max(shape.blocks, 1.0);
  const double on_busiest = std::ceil(active_blocks / profile_.num_sms);
  const double of_busiest = on_busiest / std::max(shape.blocks, 1.0);
  const double warps_per_block =
      std::ceil(static_cast<double>(shape.demand.threads) / profile_.warp_size);
  const double lanes = warps_per_block * profile_.warp_size / std::max(1U, shape.demand.threads);
  const double cycle = 1.0 / profile_.sm_clock;

  // A loop that the threads share runs as long as its longest thread.
  const double threads = std::max(1.0, shape.blocks * shape.demand.threads);
  const double items = work.items > 0 ? work.items : threads;
  const double rounds = std::ceil(items / threads - 1e-9);
  const double imbalance = rounds * threads / items;

  // Four schedulers with four cycles between dependent instructions need 16 independent ones.
  const double independent =
      on_busiest * warps_per_block * or_default(work.instruction_parallelism, 2.0);
  const double issue = std::min(1.0, independent / 16.0);
  const double arithmetic = work.flops * of_busiest * lanes * std::min(imbalance, 2.0) /
                            (profile_.flops_per_cycle_and_sm * issue) * cycle;
  const double sm_memory = (memory.bytes + memory.repeated_bytes) * of_busiest /
                           profile_.l1_bytes_per_cycle_and_sm * cycle;
  const double throughput = std::max(memory.device_time * share, sm_memory);

  const double waits = std::max(
      1.0, std::ceil(memory.bytes / items / or_default(work.bytes_in_flight, 16.0) - 1e-9));
  // Several rounds of one item are in flight together as far as the thread's requests allow.
  const double overlapped = std::max(1.0, std::floor(or_default(work.bytes_in_flight, 16.0) *
                                                     items / std::max(memory.bytes, 1.0)));
  const double chain =
      std::ceil(rounds / overlapped) * waits * memory.latency + work.block_cycles * cycle;
  const double dispatch = active_blocks * profile_.block_dispatch;

  // Nothing overlaps perfectly: what takes nearly as long as the longest is felt, too.
  const double longest =
      std::cbrt(cube(arithmetic) + cube(throughput) + cube(chain) + cube(dispatch));
  // The last blocks of a wave leave room that nobody uses; the fewer there are, the more.
  const double resident = std::max(1.0, on_busiest);
  return longest * (1.0 + profile_.drain_share / resident);
}

void CostModel::take_in(const void* address, std::size_t bytes) {
  cache_.touch({reinterpret_cast<std::uintptr_t>(address), bytes, 0, true, 1.0});
}

}  // namespace simcuda

#include "intercept/ranks/communicator_join.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "environment/variables.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/ranks/communicator_gather.hpp"

namespace contextune::intercept {
namespace {

constexpr double most_seconds = 1e8;  // of what a clock holds

/// Whatever the configurations of communicators say.
bool all_share_with_splits() noexcept {
  const char* value = variable("NCCL_COMM_SPLIT_SHARE_RESOURCES");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

bool learn(const NcclLibrary& nccl, CommunicatorFacts& facts, int& device) {
  return nccl.get_rank(facts.communicator, &facts.rank) == nccl_success &&
         nccl.get_count(facts.communicator, &facts.ranks) == nccl_success &&
         nccl.get_device(facts.communicator, &device) == nccl_success && facts.rank >= 0 &&
         facts.rank < facts.ranks;
}

/// The current one if it is on that device, else the one that NCCL itself uses.
CUcontext context_on(const gpu::Driver& driver, CUdevice device) {
  CUcontext context = nullptr;
  CUdevice current = -1;
  if (driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr &&
      driver.cuCtxGetDevice(&current) == CUDA_SUCCESS && current == device)
    return context;
  // Kept for good: the communicator keeps it as well.
  return driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS ? context : nullptr;
}

std::string gather_and_meet(const gpu::Driver& driver, const JoinedCommunicator& joined,
                            double seconds, const rank::Standing& standing, rank::Rendezvous& met) {
  std::string error;
  if (joined.handle == nullptr) return "there is no communicator";
  if (!(seconds > 0)) return "the time to wait for the others is a positive number of seconds";
  NcclLibrary nccl;
  if (!find_nccl(joined.library, nccl, error)) return error;
  CommunicatorFacts facts;
  facts.communicator = joined.handle;
  facts.shares_with_splits = joined.shares_with_splits || all_share_with_splits();
  int device = -1;
  if (!learn(nccl, facts, device)) return "NCCL does not know the communicator, or it is not ready";
  facts.context = context_on(driver, device);
  if (facts.context == nullptr) return "the communicator's device has no context";
  rank::GatheredRendezvous meeting(static_cast<std::uint32_t>(facts.rank),
                                   static_cast<std::uint32_t>(facts.ranks), standing);
  std::vector<std::byte> blocks(meeting.block().begin(), meeting.block().end());
  if (facts.ranks > 1)
    blocks = gather_blocks(nccl, driver, facts, blocks, std::min(seconds, most_seconds), error);
  if (blocks.empty()) return error;
  met = meeting.read(blocks);
  return met.error;
}

}  // namespace

rank::Rendezvous meet_over(const gpu::Driver& driver, const JoinedCommunicator& joined,
                           double seconds, const rank::Standing& standing) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  rank::Rendezvous met;
  try {
    met.error = gather_and_meet(driver, joined, seconds, standing, met);
  } catch (const std::exception& error) {
    met.error = error.what();
  }
  return met;
}

}  // namespace contextune::intercept

#include "collective/lease.hpp"

#include "collective/lockstep_digest.hpp"

namespace contextune::collective {
std::uint64_t length_of(const Lease& lease) noexcept {
  std::uint64_t length = 0;
  for (const LeaseSpan& span : lease.spans) length += span.decisions;
  return length;
}

std::uint64_t lockstep_hash(std::span<const Lease> leases) noexcept {
  LockstepDigest hash;
  for (const Lease& lease : leases) {
    hash.add(static_cast<std::uint64_t>(lease.key.function));
    hash.add(lease.key.kind);
    hash.add(lease.key.bytes);
    hash.add(lease.key.operations);
    hash.add(lease.epoch);
    hash.add(lease.first_decision);
    hash.add(lease.spans.size());  // so that no span is taken for the start of the next lease
    for (const LeaseSpan& span : lease.spans) {
      hash.add(span.decision);
      hash.add(span.config);
      hash.add(span.decisions);
    }
    hash.add(lease.afterwards);
    hash.add(lease.config_afterwards);
  }
  return hash.value();
}

}  // namespace contextune::collective

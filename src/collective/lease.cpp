#include "collective/lease.hpp"

namespace contextune::collective {
namespace {

/// FNV-1a over numbers, byte by byte.
class NumberHash {
 public:
  void add(std::uint64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) {
      state_ = (state_ ^ (number >> shift & 0xffU)) * 0x100000001b3U;
    }
  }
  void add(const Decision& decision) noexcept {
    add(decision.is_default() ? 0 : 1 + decision.cell.index());
    add(decision.channels);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace

std::uint64_t length_of(const Lease& lease) noexcept {
  std::uint64_t length = 0;
  for (const LeaseSpan& span : lease.spans) length += span.decisions;
  return length;
}

std::uint64_t lockstep_hash(std::span<const Lease> leases) noexcept {
  NumberHash hash;
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

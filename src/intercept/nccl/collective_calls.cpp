#include "intercept/nccl/collective_calls.hpp"

#include <cstddef>
#include <new>

namespace contextune::intercept {

collective::CollectiveCalls& collective_calls() noexcept {
  alignas(collective::CollectiveCalls) static std::byte place[sizeof(collective::CollectiveCalls)];
  static auto* const calls = new (place) collective::CollectiveCalls();
  return *calls;
}

}  // namespace contextune::intercept

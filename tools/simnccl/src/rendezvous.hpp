#pragma once

#include "nccl_api.hpp"

namespace simnccl {

/// Makes an id and starts a thread of this process that hands the shared memory of its communicator
/// to all who ask for it by that id, over a Unix socket in the abstract namespace. The process has
/// to live until all ranks have asked, as with the real library. @throws Error
[[nodiscard]] ncclUniqueId make_unique_id();

/// The file of the communicator of an id; the first rank that asks makes it. Waits for a while
/// until somebody listens. @throws Error
[[nodiscard]] int fetch_shared_file(const ncclUniqueId& id, int ranks);

}  // namespace simnccl

#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "communicator.hpp"

namespace simnccl {

/// One ncclSend or ncclRecv.
struct Message {
  bool sends = false;
  const void* from = nullptr;  // of a send
  void* to = nullptr;          // of a receive
  std::size_t bytes = 0;
  int peer = 0;
  CUstream stream = nullptr;
};

/// Puts messages that go on at the same time, those of one group, on a stream. The work is over
/// when all peers have come with the same numbers of bytes, else never. @throws Error
void enqueue_messages(const std::shared_ptr<Communicator>& comm,
                      const std::vector<Message>& messages, CUstream stream);

}  // namespace simnccl

#pragma once

#include <contextune/contextune.h>

namespace contextune {

/// Tunes the regions of this process together with those of the other ranks of an NCCL
/// communicator. All of them must call it, before their first region. See contextune_join() for
/// what NCCL demands meanwhile.
/// @param communicator an ncclComm_t
/// @param seconds for which the others are waited for
/// @return false: they do not meet; contextune_error() and the rank log say why. The program goes
///         on untuned.
inline bool join(void* communicator, double seconds = 30) noexcept {
  return contextune_join(communicator, seconds) == 0;
}

}  // namespace contextune

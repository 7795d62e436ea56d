#pragma once

#include <cstdint>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

// The frontend's calls about NCCL: see preload/contextune_abi.h.
void on_nccl_before(const contextune_nccl_call* call) noexcept;
void on_nccl_after(const contextune_nccl_call* call) noexcept;
std::int64_t on_tuner_begin(const contextune_tuner_comm* comm) noexcept;
int on_tuner_decide(std::int64_t comm, int function, std::uint64_t bytes, int num_pipelined,
                    float* table, int num_algorithms, int num_protocols, int registered,
                    int* num_channels) noexcept;
void on_tuner_end(std::int64_t comm) noexcept;

}  // namespace contextune::intercept

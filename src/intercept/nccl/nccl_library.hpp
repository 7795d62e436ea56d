#pragma once

#include <cstddef>
#include <string>

namespace contextune::intercept {

/// The answers of NCCL's functions, as far as callers tell them apart.
inline constexpr int nccl_success = 0;
inline constexpr int nccl_in_progress = 7;

/// Operators from there on are made by the program, and numbered by each rank for itself.
inline constexpr int num_nccl_operators = 5;

/// The functions of one copy of NCCL under the names of its profiling interface, behind which no
/// tool stands, not even we. Nothing of NCCL is linked. Communicators are its ncclComm_t.
struct NcclLibrary {
  int (*get_rank)(const void* communicator, int* rank) = nullptr;
  int (*get_count)(const void* communicator, int* ranks) = nullptr;
  int (*get_device)(const void* communicator, int* device) = nullptr;
  int (*get_async_error)(void* communicator, int* error) = nullptr;
  int (*split)(void* communicator, int color, int key, void** child, const void* config) = nullptr;
  int (*all_gather)(const void* send, void* receive, std::size_t count, int type,
                    void* communicator, void* stream) = nullptr;
  int (*finalize)(void* communicator) = nullptr;
  int (*destroy)(void* communicator) = nullptr;
  int (*abort)(void* communicator) = nullptr;
  const char* (*text)(int result) = nullptr;
};

/// The copy with that handle; without one, the only copy that this process has loaded.
/// @param library null: it is not known which
/// @param error   a sentence, where it returns false
[[nodiscard]] bool find_nccl(void* library, NcclLibrary& nccl, std::string& error);

}  // namespace contextune::intercept

// Counts what a thread allocates, libraries with a C++ runtime of their own included: the
// program's malloc goes before the C library's. Include it in one file of a program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

inline constinit thread_local std::uint64_t allocations = 0;

}  // namespace bench

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* pointer, std::size_t bytes);

__attribute__((visibility("default"), used)) void* malloc(std::size_t bytes) {
  ++bench::allocations;
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"), used)) void* calloc(std::size_t count, std::size_t bytes) {
  ++bench::allocations;
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"), used)) void* realloc(void* pointer, std::size_t bytes) {
  ++bench::allocations;
  return __libc_realloc(pointer, bytes);
}
}

// The kernels of submission_programs.cu. All arithmetic is on integers, so that a result depends on
// nothing but the order of dependent launches.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

constexpr unsigned num_lanes = 2;  // of one host thread each
constexpr unsigned num_constants = 1024;
constexpr unsigned num_globals = 256;

__constant__ unsigned constants_of_lane_0[num_constants];
__constant__ unsigned constants_of_lane_1[num_constants];
__device__ unsigned globals_of_lanes[num_lanes][num_globals];

/// Of the blocks that are through, and the sum of what they found. One set for each lane and
/// stream.
struct Ticket {
  unsigned through;
  unsigned sum;
};

/// When a kernel's slow blocks are slow: before they read, and before they write.
struct Delays {
  unsigned short before;
  unsigned short after;
  unsigned char every;  // of so many blocks one is slow
};

__device__ __forceinline__ unsigned mixed(unsigned value, unsigned salt) {
  value = (value ^ salt) * 0x9e3779b1u;
  value ^= value >> 15;
  value *= 0x85ebca77u;
  return value ^ (value >> 13);
}

/// The same by a call, which has a return address and needs no stack.
__device__ __noinline__ unsigned mixed_by_call(unsigned value, unsigned salt) {
  return mixed(value, salt);
}

__device__ __forceinline__ void spin(unsigned rounds, unsigned every) {
  if (rounds == 0 || blockIdx.x % every != every - 1) return;
  unsigned value = rounds;
  for (unsigned i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
  asm volatile("" ::"r"(value));
}

__device__ __forceinline__ unsigned through_ca(const unsigned* at) {
  unsigned value;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

template <int lane>
__device__ __forceinline__ unsigned constant(unsigned i) {
  return lane == 0 ? constants_of_lane_0[i % num_constants]
                   : constants_of_lane_1[i % num_constants];
}

/// Whether this block is the last one to come here. Leaves the ticket as it was.
__device__ __forceinline__ bool is_last_block(Ticket* ticket, unsigned part, unsigned* sum) {
  __shared__ unsigned shared_part, shared_sum;
  __shared__ bool last;
  if (threadIdx.x == 0) shared_part = 0;
  __syncthreads();
  atomicAdd(&shared_part, part);
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&ticket->sum, shared_part);
    __threadfence();
    last = atomicAdd(&ticket->through, 1u) == gridDim.x - 1;
    if (last) {
      __threadfence();
      shared_sum = atomicExch(&ticket->sum, 0u);
      atomicExch(&ticket->through, 0u);
    }
  }
  __syncthreads();
  *sum = shared_sum;
  return last;
}

#define FIRST (blockIdx.x * blockDim.x + threadIdx.x)
#define STEP (gridDim.x * blockDim.x)

/// Neighbours at a distance, so that what one block writes is read by another block.
__global__ void mix_ca(const unsigned* in, unsigned* out, unsigned n, unsigned salt,
                       Delays delays) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = through_ca(in + (i + salt % n) % n);
    if (i == FIRST) spin(delays.after, delays.every);
    out[i] = mixed(value, salt) ^ (out[i] * 3u);
  }
}

__global__ void mix_nc(Delays delays, unsigned* __restrict__ out, const unsigned* __restrict__ in,
                       unsigned n, unsigned salt) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = __ldg(in + (i * 5u + salt) % n);
    if (i == FIRST) spin(delays.after, delays.every);
    out[i] = mixed_by_call(value, salt + i);
  }
}

__global__ void mix_texture(unsigned char bits, cudaTextureObject_t in, unsigned* out, unsigned n,
                            unsigned salt, Delays delays) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = tex1Dfetch<unsigned>(in, static_cast<int>((i + (salt >> bits)) % n));
    if (i == FIRST) spin(delays.after, delays.every);
    out[i] = mixed(value, salt) + out[i];
  }
}

template <int lane>
__global__ void mix_constants(unsigned* data, unsigned n, unsigned salt, Delays delays) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = constant<lane>(salt) + constant<lane>(i + (salt >> 7));
    if (i == FIRST) spin(delays.after, delays.every);
    data[i] = mixed(data[i], value);
  }
}

/// All blocks read constants, and the last one writes them through their address.
template <int lane>
__global__ void write_constants(unsigned* constants, const unsigned* in, unsigned salt,
                                Ticket* ticket, Delays delays) {
  spin(delays.before, delays.every);
  unsigned sum = 0;
  if (!is_last_block(ticket, constant<lane>(FIRST), &sum)) return;
  spin(delays.after, 1);
  for (unsigned i = threadIdx.x; i < num_constants; i += blockDim.x) {
    constants[i] = mixed(in[i], sum + salt + i);
  }
}

/// All blocks read a buffer, and the last one writes it.
__global__ void read_all_write_last(unsigned* data, cudaTextureObject_t texture, unsigned n,
                                    unsigned way, unsigned salt, Ticket* ticket, Delays delays) {
  spin(delays.before, delays.every);
  unsigned part = 0;
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = way == 0   ? through_ca(data + i)
                           : way == 1 ? __ldg(data + i)
                                      : tex1Dfetch<unsigned>(texture, static_cast<int>(i));
    part += mixed(value, i);
  }
  unsigned sum = 0;
  if (!is_last_block(ticket, part, &sum)) return;
  spin(delays.after, 1);
  const unsigned some = n < 8192 ? n : 8192;
  for (unsigned i = threadIdx.x; i < some; i += blockDim.x) data[i] = mixed(sum + i, salt);
}

__global__ void histogram(const unsigned* in, unsigned n, unsigned* bins, unsigned num_bins,
                          Delays delays) {
  __shared__ unsigned counts[256];
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) counts[i] = 0;
  __syncthreads();
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) atomicAdd(&counts[in[i] % 256], i | 1u);
  __syncthreads();
  spin(delays.after, delays.every);
  for (unsigned i = threadIdx.x; i < 256 && i < num_bins; i += blockDim.x) {
    if (counts[i] != 0) atomicAdd(&bins[i], counts[i]);
  }
}

__device__ __noinline__ unsigned on_the_stack(unsigned value, unsigned salt) {
  volatile unsigned places[48];
  for (unsigned i = 0; i < 48; ++i) places[i] = value + i * salt;
  unsigned sum = 0;
  for (unsigned i = 0; i < 12; ++i) {
    const unsigned place = (value >> (i & 15u)) % 48u;
    sum += places[place];
    places[(place + i) % 48u] = sum;
  }
  return sum;
}

__global__ void mix_stack(const unsigned* in, unsigned* out, unsigned n, unsigned salt,
                          Delays delays) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = on_the_stack(in[n - 1 - i], salt);
    if (i == FIRST) spin(delays.after, delays.every);
    out[i] = value;
  }
}

__global__ void read_globals(unsigned lane, unsigned* data, unsigned n, unsigned salt,
                             Delays delays) {
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = globals_of_lanes[lane][(i + salt) % num_globals];
    if (i == FIRST) spin(delays.after, delays.every);
    data[i] += value;
  }
}

__global__ void write_globals(const unsigned* in, unsigned lane, unsigned salt, Delays delays) {
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < num_globals; i += STEP) {
    const unsigned value = in[i];
    if (i == FIRST) spin(delays.after, delays.every);
    globals_of_lanes[lane][i] = mixed(value, salt + i);
  }
}

/// Blocks are turned round in dynamic shared memory.
__global__ void turn_tiles(const unsigned* in, unsigned* out, unsigned n, Delays delays) {
  extern __shared__ unsigned tile[];
  spin(delays.before, delays.every);
  const unsigned num_tiles = (n + blockDim.x - 1) / blockDim.x;
  for (unsigned which = blockIdx.x; which < num_tiles; which += gridDim.x) {
    const unsigned i = which * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? in[i] : 0u;
    __syncthreads();
    const unsigned to = (num_tiles - 1 - which) * blockDim.x + threadIdx.x;
    if (which == blockIdx.x) spin(delays.after, delays.every);
    if (to < n) out[to] = tile[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
  }
}

__global__ void two_phases(unsigned* first, unsigned* second, unsigned n, unsigned salt,
                           Delays delays) {
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) second[i] = mixed(first[(i + salt) % n], salt);
  cooperative_groups::this_grid().sync();
  spin(delays.after, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) first[i] = second[(i + 1) % n] ^ first[i];
}

/// The author's own trigger, and no wait: whoever follows without an attribute waits for its end.
__global__ void triggers_early(const unsigned* in, unsigned* out, unsigned n, unsigned salt,
                               Delays delays) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) {
    const unsigned value = in[(i + salt) % n];
    if (i == FIRST) spin(delays.after, delays.every);
    out[i] = mixed(value, salt);
  }
}

/// The author's own wait, which all threads execute before anything else.
__global__ void waits_itself(unsigned* data, unsigned n, unsigned salt, Delays delays) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (FIRST >= n) return;
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) data[i] = mixed(data[i], salt + i);
}

/// Data for the host, and then a flag in mapped memory that the host polls.
__global__ void publish(const unsigned* in, unsigned* mapped, unsigned n, unsigned salt,
                        volatile unsigned* flag, unsigned value, Ticket* ticket, Delays delays) {
  spin(delays.before, delays.every);
  for (unsigned i = FIRST; i < n; i += STEP) mapped[i] = mixed(in[i], salt);
  __threadfence_system();
  unsigned sum = 0;
  if (!is_last_block(ticket, 0, &sum)) return;
  if (threadIdx.x == 0) {
    __threadfence_system();
    *flag = value;
  }
}

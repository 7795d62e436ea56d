// Works in place on state as large as wanted, so that nothing can be repeated without being put
// back first: cells in chunks that are reached through a table on the device, a linked list of
// nodes whose pointers lie in device memory, and __device__ variables that are changed with
// atomics. All of it is in integers: the result does not depend on who comes first.
//   in_place [--mib N] [--steps N] [--sync N]
// Prints the GPU's own checksum of the state, the list and the variables.
#include <algorithm>
#include <vector>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"

using Word = unsigned long long;

struct Chunk {
  ulonglong2* cells;
  Word num_cells;
};

/// One of a list; its cell lies somewhere in the chunks.
struct Node {
  Node* next;
  ulonglong2* cell;
  Word visits;
};

__device__ Word total;
__device__ Word largest;
__device__ unsigned histogram[256];

__device__ Word mix(Word x) {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185ull;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44dull;
  return x ^ (x >> 33);
}

__global__ void fill(const Chunk* chunks, int num_chunks) {
  const Word stride = static_cast<Word>(gridDim.x) * blockDim.x;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    for (Word i = blockIdx.x * blockDim.x + threadIdx.x; i < chunks[chunk].num_cells; i += stride) {
      chunks[chunk].cells[i] = make_ulonglong2(mix(i + chunk), i * 3 + 1);
    }
  }
}

// The work: every cell becomes a function of itself, a few of them are counted.
__global__ void advance_cells(const Chunk* chunks, int num_chunks, Word step) {
  const Word stride = static_cast<Word>(gridDim.x) * blockDim.x;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    ulonglong2* cells = chunks[chunk].cells;
    for (Word i = blockIdx.x * blockDim.x + threadIdx.x; i < chunks[chunk].num_cells; i += stride) {
      ulonglong2 cell = cells[i];
      cell.x = cell.x * 6364136223846793005ull + cell.y + step;
      cell.y ^= cell.x >> 29;
      cells[i] = cell;
      if ((cell.x >> 52) == 0) {
        atomicAdd(&total, cell.x);
        atomicMax(&largest, cell.x ^ cell.y);
        atomicAdd(&histogram[cell.x >> 44 & 255], 1u);
      }
    }
  }
}

// One thread a list: follows the pointers and changes what they lead to.
__global__ void follow(Node* const* heads, int num_lists, Word step) {
  const int list = blockIdx.x * blockDim.x + threadIdx.x;
  if (list >= num_lists) return;
  for (Node* node = heads[list]; node != nullptr; node = node->next) {
    node->visits += 1;
    node->cell->y += node->visits * step + list;
  }
}

// Each list is turned around, so the pointers themselves are part of what changes.
__global__ void reverse(Node** heads, int num_lists) {
  const int list = blockIdx.x * blockDim.x + threadIdx.x;
  if (list >= num_lists) return;
  Node* turned = nullptr;
  for (Node* node = heads[list]; node != nullptr;) {
    Node* const next = node->next;
    node->next = turned;
    turned = node;
    node = next;
  }
  heads[list] = turned;
}

// Sums of mixed values: the same in any order.
__global__ void add_up(const Chunk* chunks, int num_chunks, Node* const* heads, int num_lists,
                       Word* sum) {
  const Word first = blockIdx.x * blockDim.x + threadIdx.x;
  const Word stride = static_cast<Word>(gridDim.x) * blockDim.x;
  Word mine = 0;
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    for (Word i = first; i < chunks[chunk].num_cells; i += stride) {
      const ulonglong2 cell = chunks[chunk].cells[i];
      mine += mix(cell.x + 31 * i + chunk) + mix(cell.y ^ i);
    }
  }
  for (Word list = first; list < num_lists; list += stride) {
    Word place = 0;
    for (const Node* node = heads[list]; node != nullptr; node = node->next) {
      mine += mix(node->visits + 17 * ++place + list) + mix(node->cell->y + place);
    }
  }
  if (first < 256) mine += mix(histogram[first] + first);
  if (first == 0) mine += mix(total) + mix(largest);
  atomicAdd(sum, mine);
}

int main(int argc, char** argv) {
  const long mib = option(argc, argv, "--mib", 64L);
  const long steps = option(argc, argv, "--steps", 1L);
  const long sync = option(argc, argv, "--sync", 8L);
  constexpr std::size_t largest_chunk = std::size_t{1} << 30;
  constexpr int num_lists = 512;
  constexpr int nodes_a_list = 32;

  std::vector<Chunk> chunks;
  for (std::size_t left = static_cast<std::size_t>(mib) << 20; left > 0;) {
    const std::size_t bytes = std::min(left, largest_chunk);
    Chunk chunk{nullptr, bytes / sizeof(ulonglong2)};
    CUDA_CHECK(cudaMalloc(&chunk.cells, bytes));
    chunks.push_back(chunk);
    left -= bytes;
  }
  const int num_chunks = static_cast<int>(chunks.size());
  Chunk* table = nullptr;
  CUDA_CHECK(cudaMalloc(&table, num_chunks * sizeof(Chunk)));
  CUDA_CHECK(cudaMemcpy(table, chunks.data(), num_chunks * sizeof(Chunk), cudaMemcpyHostToDevice));

  Node* nodes = nullptr;
  Node** heads = nullptr;
  Word* sum = nullptr;
  CUDA_CHECK(cudaMalloc(&nodes, num_lists * nodes_a_list * sizeof(Node)));
  CUDA_CHECK(cudaMalloc(&heads, num_lists * sizeof(Node*)));
  CUDA_CHECK(cudaMalloc(&sum, sizeof(Word)));
  CUDA_CHECK(cudaMemset(sum, 0, sizeof(Word)));
  std::vector<Node> host_nodes(num_lists * nodes_a_list);
  std::vector<Node*> host_heads(num_lists);
  for (int list = 0; list < num_lists; ++list) {
    host_heads[list] = nodes + list;
    for (int i = 0; i < nodes_a_list; ++i) {
      const int at = i * num_lists + list;
      const Chunk& chunk = chunks[at % num_chunks];
      // A cell of its own for every node.
      const Word distance = chunk.num_cells / host_nodes.size();
      host_nodes[at] = {i + 1 < nodes_a_list ? nodes + at + num_lists : nullptr,
                        chunk.cells + at * distance, 0};
    }
  }
  CUDA_CHECK(cudaMemcpy(nodes, host_nodes.data(), host_nodes.size() * sizeof(Node),
                        cudaMemcpyHostToDevice));
  CUDA_CHECK(
      cudaMemcpy(heads, host_heads.data(), num_lists * sizeof(Node*), cudaMemcpyHostToDevice));
  fill<<<1024, 256>>>(table, num_chunks);
  CUDA_CHECK(cudaDeviceSynchronize());

  for (long step = 1; step <= steps; ++step) {
    nvtxRangePushA("step");
    advance_cells<<<132, 128>>>(table, num_chunks, step);
    follow<<<num_lists / 128, 128>>>(heads, num_lists, step);
    reverse<<<num_lists / 128, 128>>>(heads, num_lists);
    nvtxRangePop();
    CUDA_CHECK(cudaGetLastError());
    if (sync > 0 && step % sync == 0) CUDA_CHECK(cudaDeviceSynchronize());
  }
  add_up<<<1024, 256>>>(table, num_chunks, heads, num_lists, sum);
  Word result = 0;
  CUDA_CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
  std::printf("in_place %ld MiB, %ld steps: %016llx\n", mib, steps, result);
  return 0;
}

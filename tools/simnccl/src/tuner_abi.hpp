#pragma once
// The binary interface of NCCL's tuner plugins, versions 3 to 6, in our own words. nccl.h does not
// contain it.

#include <cstddef>
#include <cstdint>

#include "nccl_api.hpp"

namespace simnccl {

constexpr int algorithm_count = 7;
constexpr int protocol_count = 3;

enum Algorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum Protocol { ll, ll128, simple };
/// NCCL's numbers of what can be tuned; Send and Recv never are.
enum Function { broadcast, reduce, all_gather, reduce_scatter, all_reduce };

/// float[algorithm][protocol] in microseconds; handed over as float**, but no array of pointers.
using CostTable = float[algorithm_count][protocol_count];
constexpr float illegal_cost = -1.0F;

using TunerLog = void (*)(int level, unsigned long flags, const char* file, int line,
                          const char* format, ...);

struct TunerV3 {
  const char* name;
  ncclResult_t (*init)(std::size_t ranks, std::size_t nodes, TunerLog log, void** context);
  ncclResult_t (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                                float** table, int algorithms, int protocols, int* channels);
  ncclResult_t (*destroy)(void* context);
};

struct TunerV4 {
  const char* name;
  ncclResult_t (*init)(std::size_t ranks, std::size_t nodes, TunerLog log, void** context);
  ncclResult_t (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                                float** table, int algorithms, int protocols, int registered,
                                int* channels);
  ncclResult_t (*destroy)(void* context);
};

struct NvlDomainInfo {
  int domains, min_ranks_per_domain, max_ranks_per_domain;
};
/// The constants of NCCL's own model. Zeros here: the simulated model has others.
struct TunerConstants {
  double values[512];
};

struct TunerV5 {
  const char* name;
  ncclResult_t (*init)(void** context, std::uint64_t comm, std::size_t ranks, std::size_t nodes,
                       TunerLog log, NvlDomainInfo* domains, TunerConstants* constants);
  ncclResult_t (*get_coll_info)(void* context, int function, std::size_t bytes, int pipelined,
                                float** table, int algorithms, int protocols, int registered,
                                int* channels);
  ncclResult_t (*finalize)(void* context);
};

/// As version 5, with one more function at its end, which may be null and is never called here.
struct TunerV6 : TunerV5 {
  ncclResult_t (*get_chunk_size)(void* context, int function, std::size_t bytes, int algorithm,
                                 int protocol, int channels, std::size_t* chunk);
};

}  // namespace simnccl

// A program whose collectives come in shapes that are hard to tune: collective_shapes SHAPE
// [--steps N] [--meet PATH]. Each step is the NVTX range "step". On standard output each rank has a
// hash of all that it received, which is the same however the collectives are done.
#include <cuda.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "rank_meeting.hpp"

namespace {

constexpr std::size_t most_elements = 4096;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "collective_shapes: %s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "collective_shapes: %s failed: %s\n", what, ncclGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

class Buffer {
 public:
  Buffer() { CHECK(cuMemAlloc(&memory_, most_elements * sizeof(std::uint32_t))); }
  [[nodiscard]] CUdeviceptr at() const { return memory_; }
  [[nodiscard]] void* pointer() const { return reinterpret_cast<void*>(memory_); }

 private:
  CUdeviceptr memory_ = 0;
};

/// One rank: what it sends, what it gets, and the hash of that.
struct Rank {
  Place place;
  ncclComm_t world = nullptr;
  CUstream stream = nullptr;
  Buffer sent, got;
  std::uint64_t hash = 14695981039346656037ULL;

  explicit Rank(Place where) : place(where) {
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }

  void fill(int step) const {
    const auto value = static_cast<unsigned>(1 + step * place.ranks + place.rank);
    CHECK(cuMemsetD32Async(sent.at(), value, most_elements, stream));
  }
  /// Of one communicator, `count` elements of each rank; the sum is what was got.
  void sum(ncclComm_t comm, std::size_t count, ncclDataType_t type = ncclUint32) const {
    CHECK(ncclAllReduce(sent.pointer(), got.pointer(), count, type, ncclSum, comm, stream));
  }
  void add(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ULL;
  }
  void look() {
    std::array<std::uint32_t, 64> values{};
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(values.data(), got.at(), sizeof values));
    add(values.data(), sizeof values);
  }
};

using Shape = void (*)(Rank&, int);
constexpr std::size_t usual = 1024;

class Step {
 public:
  Step() { nvtxRangePushA("step"); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() { nvtxRangePop(); }
};

ncclComm_t split(const Rank& rank, int color) {
  ncclComm_t part = nullptr;
  CHECK(ncclCommSplit(rank.world, color, rank.place.rank, &part, nullptr));
  return part;
}

// All, each half, and even and odd ranks: every rank is in three communicators.
void overlapping(Rank& rank, int steps) {
  ncclComm_t half = split(rank, 2 * rank.place.rank / rank.place.ranks);
  ncclComm_t other = split(rank, rank.place.rank % 2);
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    for (ncclComm_t comm : {rank.world, half, other}) {
      rank.sum(comm, usual);
      rank.look();
    }
  }
  CHECK(ncclCommDestroy(half));
  CHECK(ncclCommDestroy(other));
}

// Those of the first half enter a region; the second half has the same collectives outside.
void some_enter(Rank& rank, int steps) {
  const bool enters = 2 * rank.place.rank < rank.place.ranks;
  ncclComm_t half = split(rank, enters ? 0 : 1);
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    if (enters) nvtxRangePushA("step");
    rank.sum(half, usual);
    rank.look();
    if (enters) nvtxRangePop();
    rank.sum(rank.world, usual);
    rank.look();
  }
  CHECK(ncclCommDestroy(half));
}

// Only some ranks mark what all of them do together.
void some_mark(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const bool marks = rank.place.rank > 0 && number % 3 != rank.place.rank % 3;
    if (marks) nvtxRangePushA("step");
    rank.sum(rank.world, usual);
    rank.look();
    if (marks) nvtxRangePop();
  }
}

void group_of_one(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    CHECK(ncclGroupStart());
    rank.sum(rank.world, usual);
    CHECK(ncclGroupEnd());
    rank.look();
  }
}

// Of one type and of several, of one size and of several, and now and then more of them.
void groups(Rank& rank, int steps) {
  const Buffer second, third, all;
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    CHECK(ncclGroupStart());
    rank.sum(rank.world, usual);
    for (int more = 0; more < 1 + (number % 50 == 49 ? 1 : 0); ++more)
      CHECK(ncclAllReduce(rank.sent.pointer(), second.pointer(), usual, ncclUint32, ncclSum,
                          rank.world, rank.stream));
    CHECK(ncclAllReduce(rank.sent.pointer(), third.pointer(), usual, ncclInt32, ncclMax, rank.world,
                        rank.stream));
    CHECK(ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, rank.world,
                        rank.stream));
    CHECK(ncclGroupEnd());
    rank.look();
  }
}

void outside(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    for (int before = 0; before < number % 3; ++before) rank.sum(rank.world, usual);
    {
      const Step step;
      rank.sum(rank.world, usual);
    }
    rank.sum(rank.world, usual);
    rank.look();
  }
}

void sizes(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    const auto wanders = static_cast<unsigned>(number) * 2654435761U >> 8;
    rank.sum(rank.world, 1 + wanders % most_elements);
    if (number % 7 < 3) rank.sum(rank.world, usual);
    rank.look();
  }
}

// The host is many steps ahead of the device.
void ahead(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    {
      const Step step;
      for (int i = 0; i < 3; ++i) rank.sum(rank.world, usual);
    }
    if (number % 64 == 63) rank.look();
  }
  rank.look();
}

// Some steps as they are, then a graph of one, launched in place of it; and both in turn.
void captured(Rank& rank, int steps) {
  CUgraphExec executable = nullptr;
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    const bool captures = number % 100 == 20;
    if (captures) CHECK(cuStreamBeginCapture(rank.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    if (captures || executable == nullptr || number % 2 == 0) rank.sum(rank.world, usual);
    if (captures) {
      CUgraph graph = nullptr;
      CHECK(cuStreamEndCapture(rank.stream, &graph));
      if (executable != nullptr) CHECK(cuGraphExecDestroy(executable));
      CHECK(cuGraphInstantiate(&executable, graph, 0));
      CHECK(cuGraphDestroy(graph));
    }
    if (captures || (executable != nullptr && number % 2 == 1))
      CHECK(cuGraphLaunch(executable, rank.stream));
    rank.look();
  }
  CHECK(cuGraphExecDestroy(executable));
}

// Communicators end and begin anew between the steps, and ranks come back to the same numbers.
void anew(Rank& rank, int steps) {
  ncclComm_t comm = nullptr;
  for (int number = 0; number < steps; ++number) {
    if (number % 60 == 0) {
      if (comm != nullptr) CHECK(ncclCommDestroy(comm));
      comm = split(rank, number % 120 == 0 ? 0 : rank.place.rank % 2);
    }
    rank.fill(number);
    const Step step;
    rank.sum(comm, usual);
    rank.look();
  }
  CHECK(ncclCommDestroy(comm));
}

// Two threads, each with a communicator of its own, in steps of their own.
void threads(Rank& rank, int steps) {
  Rank other(rank.place);
  other.world = split(rank, 0);
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context));
  std::thread beside([&] {
    CHECK(cuCtxSetCurrent(context));
    group_of_one(other, steps);
  });
  group_of_one(rank, steps);
  beside.join();
  rank.add(&other.hash, sizeof other.hash);
  CHECK(ncclCommDestroy(other.world));
}

const std::map<std::string, Shape> shapes = {
    {"overlapping", &overlapping},   {"some_enter", &some_enter}, {"some_mark", &some_mark},
    {"group_of_one", &group_of_one}, {"groups", &groups},         {"outside", &outside},
    {"sizes", &sizes},               {"ahead", &ahead},           {"captured", &captured},
    {"anew", &anew},                 {"threads", &threads}};

void use_device(int number) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  int devices = 0;
  CHECK(cuDeviceGetCount(&devices));
  CHECK(cuDeviceGet(&device, number % devices));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
}

// Not a rank of several processes but all ranks in this one, a device each.
std::uint64_t devices_of_one_process(int ranks, int steps) {
  std::vector<ncclComm_t> comms(static_cast<std::size_t>(ranks));
  CHECK(ncclCommInitAll(comms.data(), ranks, nullptr));
  std::vector<Rank> all;
  for (int r = 0; r < ranks; ++r) {
    use_device(r);
    all.emplace_back(Place{r, ranks, r});
    all.back().world = comms[static_cast<std::size_t>(r)];
  }
  for (int number = 0; number < steps; ++number) {
    const Step step;
    for (const Rank& rank : all) use_device(rank.place.rank), rank.fill(number);
    CHECK(ncclGroupStart());
    for (const Rank& rank : all) rank.sum(rank.world, usual);
    CHECK(ncclGroupEnd());
    for (Rank& rank : all) use_device(rank.place.rank), rank.look();
  }
  for (ncclComm_t comm : comms) CHECK(ncclCommDestroy(comm));
  for (const Rank& rank : all) all.front().add(&rank.hash, sizeof rank.hash);
  return all.front().hash;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  std::string meet;
  int steps = 300;
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--meet") meet = argv[i + 1];
    if (std::string(argv[i]) == "--steps") steps = std::atoi(argv[i + 1]);
  }
  CHECK(cuInit(0));
  std::uint64_t hash = 0;
  const Place place = place_of_this_process();
  if (name == "devices") {
    hash = devices_of_one_process(2, steps);
  } else if (const auto shape = shapes.find(name); shape != shapes.end()) {
    use_device(place.on_this_host);
    Rank rank(place);
    ncclUniqueId id{};
    if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
    share_id(place, meet, id);
    CHECK(ncclCommInitRank(&rank.world, place.ranks, id, place.rank));
    shape->second(rank, steps);
    CHECK(ncclCommDestroy(rank.world));
    hash = rank.hash;
  } else {
    std::fputs("usage: collective_shapes SHAPE [--steps N] [--meet PATH]\n", stderr);
    return 2;
  }
  std::printf("rank %d: %s, %d steps, %016llx\n", place.rank, name.c_str(), steps,
              static_cast<unsigned long long>(hash));
  return 0;
}

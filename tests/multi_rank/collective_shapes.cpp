// A program whose collectives come in shapes that are hard to tune. Each of its steps is the NVTX
// range "step". Ranks meet at PATH, and each prints a hash of what it received, which is the same
// however that was done.
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "collective_rank.hpp"
#include "group_shapes.hpp"

namespace {

// All, each half, and even and odd ranks: every rank is in three communicators.
void overlapping(Rank& rank, int steps) {
  ncclComm_t half = split(rank, 2 * rank.place.rank / rank.place.ranks);
  ncclComm_t other = split(rank, rank.place.rank % 2);
  in_steps(rank, steps, [&](int) {
    for (ncclComm_t comm : {rank.world, half, other}) {
      rank.sum(comm, usual);
      rank.look();
    }
  });
  CHECK(ncclCommDestroy(half));
  CHECK(ncclCommDestroy(other));
}

// All, and each half.
void halves(Rank& rank, int steps) {
  ncclComm_t half = split(rank, 2 * rank.place.rank / rank.place.ranks);
  in_steps(rank, steps, [&](int) {
    for (ncclComm_t comm : {rank.world, half}) {
      rank.sum(comm, usual);
      rank.look();
    }
  });
  CHECK(ncclCommDestroy(half));
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

// The first half's communicator and that of all are used in a region which the others never enter.
void some_stay_out(Rank& rank, int steps) {
  const bool enters = 2 * rank.place.rank < rank.place.ranks;
  ncclComm_t half = split(rank, enters ? 0 : 1);
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    if (enters) nvtxRangePushA("step");
    rank.sum(half, usual);
    rank.look();
    rank.sum(rank.world, usual);
    rank.look();
    if (enters) nvtxRangePop();
  }
  CHECK(ncclCommDestroy(half));
}

// Pipelines of two stages: each pair of ranks begins some time after the one before, on its own.
void stages(Rank& rank, int steps) {
  ncclComm_t pair = split(rank, rank.place.rank / 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(100 * (rank.place.rank / 2)));
  in_steps(rank, steps, [&](int) { rank.sum(pair, usual); });
  CHECK(ncclCommDestroy(pair));
}

// What all pairs of ranks have in the region, and what only one of them has.
void different_sites(Rank& rank, int steps) {
  ncclComm_t pair = split(rank, rank.place.rank / 2);
  const Buffer all;
  in_steps(rank, steps, [&](int) {
    rank.sum(pair, usual);
    if (rank.place.rank < 2)
      CHECK(ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, pair, rank.stream));
    else
      rank.sum(pair, 16);
  });
  CHECK(ncclCommDestroy(pair));
}

// Ranks mark different ones of the steps that they do together.
void some_mark(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const bool marks = number % 2 == rank.place.rank % 2;
    if (marks) nvtxRangePushA("step");
    rank.sum(rank.world, usual);
    rank.look();
    if (marks) nvtxRangePop();
  }
}

// The same between the steps, not equally often.
void outside(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    for (int before = 0; before < number % 3; ++before) rank.sum(rank.world, usual);
    nvtxRangePushA("step");
    rank.sum(rank.world, usual);
    nvtxRangePop();
    rank.look();
  }
}

void sizes(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int number) {
    const auto wanders = static_cast<unsigned>(number) * 2654435761U >> 8;
    rank.sum(rank.world, 1 + wanders % most_elements);
    if (number % 7 < 3) rank.sum(rank.world, usual);
  });
}

// Of one bucket, but NCCL itself chooses another algorithm for the large one.
void own_choices(Rank& rank, int steps) {
  constexpr std::size_t large = std::size_t{1} << 18U;
  const Buffer sent(large), got(large);
  in_steps(rank, steps, [&](int number) {
    const auto value = static_cast<unsigned>(1 + number * rank.place.ranks + rank.place.rank);
    CHECK(cuMemsetD32Async(sent.at(), value, large, rank.stream));
    for (const std::size_t count : {std::size_t{64}, large}) {
      CHECK(ncclAllReduce(sent.pointer(), got.pointer(), count, ncclFloat32, ncclMax, rank.world,
                          rank.stream));
    }
    CHECK(cuMemcpyDtoDAsync(rank.got.at(), got.at(), 64 * sizeof(std::uint32_t), rank.stream));
  });
}

// Exchanges of all ranks: as such, as a group of messages with and without that to itself, and in a
// group with an all-reduce; and messages that are none.
void exchanges(Rank& rank, int steps) {
  constexpr std::size_t part = 64;
  const auto at = [&](const Buffer& buffer, int peer) {
    return static_cast<std::uint32_t*>(buffer.pointer()) + static_cast<std::size_t>(peer) * part;
  };
  const auto messages = [&](int count, bool itself) {
    CHECK(ncclGroupStart());
    for (int peer = 0; peer < count; ++peer) {
      if (peer == rank.place.rank && !itself) continue;
      CHECK(ncclSend(at(rank.sent, peer), part, ncclUint32, peer, rank.world, rank.stream));
      CHECK(ncclRecv(at(rank.got, peer), part, ncclUint32, peer, rank.world, rank.stream));
    }
    CHECK(ncclGroupEnd());
  };
  in_steps(rank, steps, [&](int) {
    rank.sum(rank.world, usual);
    CHECK(ncclAlltoAll(rank.sent.pointer(), rank.got.pointer(), part / 2, ncclUint32, rank.world,
                       rank.stream));
    messages(rank.place.ranks, true);
    messages(rank.place.ranks, false);
    if (rank.place.rank < 2) messages(2, false);
  });
}

// Later on, between the steps, sizes that no step has.
void later_sizes(Rank& rank, int steps) {
  constexpr std::size_t large = std::size_t{1} << 17U;
  const Buffer sent(4 * large), got(4 * large);
  const auto sum = [&](std::size_t count) {
    CHECK(ncclAllReduce(sent.pointer(), got.pointer(), count, ncclUint32, ncclSum, rank.world,
                        rank.stream));
  };
  in_steps(rank, steps, [&](int number) {
    CHECK(cuMemsetD32Async(sent.at(), static_cast<unsigned>(number), 4 * large, rank.stream));
    sum(large);
    CHECK(cuMemcpyDtoDAsync(rank.got.at(), got.at(), 64 * sizeof(std::uint32_t), rank.stream));
    if (number < steps - 8) return;
    nvtxRangePop();
    sum(large / 2);
    sum(2 * large);
    sum(large / 64);
    nvtxRangePushA("step");
  });
}

// The same collective in two regions, which are tuned apart from each other.
void two_regions(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int) {
    rank.sum(rank.world, usual);
    nvtxRangePop();
    nvtxRangePushA("other");
    rank.sum(rank.world, usual);
  });
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

// Some steps as they are, then in turn with the launch of a graph, which is captured anew at times.
void captured(Rank& rank, int steps) {
  CUgraphExec executable = nullptr;
  in_steps(rank, steps, [&](int number) {
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
  });
  CHECK(cuGraphExecDestroy(executable));
}

// Communicators end and begin anew between the steps, of all ranks and of some in turn.
void anew(Rank& rank, int steps) {
  for (int done = 0; done < steps; done += 60) {
    ncclComm_t comm = split(rank, done % 120 == 0 ? 0 : rank.place.rank % 2);
    in_steps(rank, 60, [&](int) { rank.sum(comm, usual); });
    CHECK(ncclCommDestroy(comm));
  }
}

/// What comes of a call that may only have begun.
ncclResult_t settled(ncclComm_t comm, ncclResult_t result) {
  while (result == ncclInProgress) {
    std::this_thread::yield();
    CHECK(ncclCommGetAsyncError(comm, &result));
  }
  return result;
}

// Beside the collectives of a communicator that does not block, alone and in a group.
void without_blocking(Rank& rank, int steps) {
  const Buffer all, id_of_first;
  ncclUniqueId id{};
  if (rank.place.rank == 0) CHECK(ncclGetUniqueId(&id));
  CHECK(cuMemcpyHtoD(id_of_first.at(), &id, sizeof id));
  CHECK(ncclBroadcast(id_of_first.pointer(), id_of_first.pointer(), sizeof id, ncclUint8, 0,
                      rank.world, rank.stream));
  CHECK(cuStreamSynchronize(rank.stream));
  CHECK(cuMemcpyDtoH(&id, id_of_first.at(), sizeof id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t own = nullptr;
  const auto begun = ncclCommInitRankConfig(&own, rank.place.ranks, id, rank.place.rank, &config);
  CHECK(settled(own, begun));
  const auto gather = [&] {
    return ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, own, rank.stream);
  };
  in_steps(rank, steps, [&](int) {
    CHECK(settled(own, gather()));
    CHECK(ncclGroupStart());
    CHECK(settled(own, gather()));
    CHECK(settled(own, ncclGroupEnd()));
    rank.sum(rank.world, usual);
  });
  CHECK(settled(own, ncclCommFinalize(own)));
  CHECK(ncclCommDestroy(own));
}

// Each step has a communicator of its own beside that of all steps.
void one_for_each_step(Rank& rank, int steps) {
  for (int number = 0; number < steps; ++number) {
    ncclComm_t own = split(rank, 0);
    rank.fill(number);
    {
      const Step step;
      rank.sum(rank.world, usual);
      rank.sum(own, usual);
      rank.look();
    }
    CHECK(ncclCommDestroy(own));
  }
}

// With the last of more communicators than are told apart.
void many(Rank& rank, int steps) {
  std::vector<ncclComm_t> all(1100);
  for (ncclComm_t& comm : all) comm = split(rank, 0);
  in_steps(rank, steps, [&](int) { rank.sum(all.back(), usual); });
  for (ncclComm_t comm : all) CHECK(ncclCommDestroy(comm));
}

// In the end another communicator of all ranks, in steps of its own.
void made_later(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int) { rank.sum(rank.world, usual); });
  ncclComm_t later = split(rank, 0);
  in_steps(rank, 600, [&](int) { rank.sum(later, usual - 1); });
  CHECK(ncclCommDestroy(later));
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

// All ranks are devices of this process.
void devices(Rank& first, int steps) {
  std::array<ncclComm_t, 2> comms{};
  CHECK(ncclCommInitAll(comms.data(), comms.size(), nullptr));
  std::vector<Rank> all;
  for (int device = 0; device < 2; ++device) {
    use_device(device);
    all.emplace_back(Place{device, 2, device});
    all.back().world = comms[static_cast<std::size_t>(device)];
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
  for (const Rank& rank : all) first.add(&rank.hash, sizeof rank.hash);
}

// A communicator begins inside the region, after some steps without any.
void late(Rank& rank, int steps) {
  ncclComm_t own = nullptr;
  in_steps(rank, steps, [&](int number) {
    if (number == 3) own = split(rank, 0);
    if (number >= 3) rank.sum(own, usual);
  });
  CHECK(ncclCommDestroy(own));
}

const Shapes shapes = {{"overlapping", &overlapping},
                       {"late", &late},
                       {"halves", &halves},
                       {"some_stay_out", &some_stay_out},
                       {"stages", &stages},
                       {"different_sites", &different_sites},
                       {"some_enter", &some_enter},
                       {"some_mark", &some_mark},
                       {"group_of_one", &group_of_one},
                       {"groups", &groups},
                       {"several_in_a_group", &several_in_a_group},
                       {"outside", &outside},
                       {"own_choices", &own_choices},
                       {"later_sizes", &later_sizes},
                       {"exchanges", &exchanges},
                       {"sizes", &sizes},
                       {"ahead", &ahead},
                       {"captured", &captured},
                       {"anew", &anew},
                       {"without_blocking", &without_blocking},
                       {"one_for_each_step", &one_for_each_step},
                       {"many", &many},
                       {"made_later", &made_later},
                       {"threads", &threads},
                       {"devices", &devices},
                       {"two_regions", &two_regions},
                       {"before_groups", &before_groups},
                       {"long_group", &long_group},
                       {"large_group", &large_group},
                       {"large_group_on_one", &large_group_on_one}};

}  // namespace

int main(int argc, char** argv) {
  return run_shape(argc, argv, shapes);
}

#include "group_shapes.hpp"

#include <nccl.h>

void group_of_one(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int) {
    CHECK(ncclGroupStart());
    rank.sum(rank.world, usual);
    CHECK(ncclGroupEnd());
  });
}

void groups(Rank& rank, int steps) {
  const Buffer most, all;
  in_steps(rank, steps, [&](int number) {
    CHECK(ncclGroupStart());
    for (int i = 0; i < (number % 50 == 49 ? 4 : 3); ++i) rank.sum(rank.world, usual);
    CHECK(ncclGroupEnd());
    rank.look();
    CHECK(ncclGroupStart());
    rank.sum(rank.world, usual, ncclInt32);
    CHECK(ncclAllReduce(rank.sent.pointer(), most.pointer(), usual, ncclUint32, ncclMax, rank.world,
                        rank.stream));
    CHECK(
        ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, rank.world, rank.stream));
    CHECK(ncclGroupEnd());
  });
}

void several_in_a_group(Rank& rank, int steps) {
  const Buffer all;
  in_steps(rank, steps, [&](int) {
    CHECK(ncclGroupStart());
    rank.sum(rank.world, usual);
    CHECK(
        ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, rank.world, rank.stream));
    CHECK(ncclGroupEnd());
    rank.look();
  });
}

void before_groups(Rank& rank, int steps) {
  const Buffer most;
  in_steps(rank, steps, [&](int) {
    CHECK(ncclAllReduce(rank.sent.pointer(), most.pointer(), usual, ncclInt32, ncclMax, rank.world,
                        rank.stream));
    CHECK(ncclGroupStart());
    for (int i = 0; i < 3; ++i) rank.sum(rank.world, usual);
    CHECK(ncclGroupEnd());
  });
}

void long_group(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int) {
    CHECK(ncclGroupStart());
    for (int i = 0; i < 70; ++i) rank.sum(rank.world, usual / 64);
    CHECK(ncclGroupEnd());
    rank.sum(rank.world, usual);
  });
}

void large_group(Rank& rank, int steps) {
  const Buffer other;
  in_steps(rank, steps, [&](int) {
    CHECK(ncclGroupStart());
    for (int i = 0; i < 70; ++i) rank.sum(rank.world, usual / 64);
    CHECK(ncclAllReduce(rank.sent.pointer(), other.pointer(), usual, ncclInt32, ncclMax, rank.world,
                        rank.stream));
    CHECK(ncclGroupEnd());
  });
}

void large_group_on_one(Rank& rank, int steps) {
  const Buffer other, all;
  ncclComm_t own = split(rank, rank.place.rank);
  const auto reduce = [&](ncclDataType_t type, ncclRedOp_t op) {
    void* const from = rank.sent.pointer();
    CHECK(ncclAllReduce(from, other.pointer(), 64, type, op, own, rank.stream));
    CHECK(ncclReduce(from, other.pointer(), 64, type, op, 0, own, rank.stream));
    CHECK(ncclReduceScatter(from, other.pointer(), 64, type, op, own, rank.stream));
  };
  in_steps(rank, steps, [&](int) {
    CHECK(ncclGroupStart());
    // 72 that are told apart.
    for (const auto type : {ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64})
      for (const auto op : {ncclSum, ncclProd, ncclMax, ncclMin})
        if (rank.place.rank == 0) reduce(type, op);
    rank.sum(rank.world, usual);
    CHECK(
        ncclAllGather(rank.sent.pointer(), all.pointer(), 64, ncclUint32, rank.world, rank.stream));
    CHECK(ncclGroupEnd());
  });
  CHECK(ncclCommDestroy(own));
}

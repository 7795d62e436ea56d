// A course of operations that a seed draws: several communicators and streams, groups, graphs.
#include <algorithm>
#include <memory>
#include <random>

#include "rank.hpp"

namespace {

enum class Kind { sum, largest, gather, scatter, spread, pass_on };

/// One operation, drawn alike on all ranks. Its memory is its own, so that all can be checked at
/// the end.
struct Drawn {
  Kind kind = Kind::sum;
  std::size_t comm = 0, stream = 0;
  std::size_t size = 1;
  int root = 0;
  int number = 0;
};

struct Team {
  ncclComm_t comm = nullptr;
  int rank = 0, ranks = 0;
};

/// What a rank of a team brings to an operation at a place.
int value(int number, int rank, std::size_t place) {
  return number * 7 + rank * 31 + static_cast<int>(place % 13);
}

class Course {
 public:
  Course(Rank& rank, unsigned seed) : random_(seed) {
    rank.join();
    ncclComm_t twin = nullptr, half = nullptr;
    EXPECT(ncclCommSplit(rank.comm, 0, rank.rank, &twin, nullptr) == ncclSuccess);
    EXPECT(ncclCommSplit(rank.comm, rank.rank % 2, rank.rank, &half, nullptr) == ncclSuccess);
    for (ncclComm_t const comm : {rank.comm, twin, half}) {
      Team team{comm, 0, 0};
      EXPECT(ncclCommUserRank(comm, &team.rank) == ncclSuccess);
      EXPECT(ncclCommCount(comm, &team.ranks) == ncclSuccess);
      teams_.push_back(team);
    }
    for (CUstream& stream : streams_)
      EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  }

  void go_on() {
    std::vector<Drawn> some(1 + draw(3));
    for (Drawn& one : some) {
      one.kind = static_cast<Kind>(draw(6));
      one.comm = draw(teams_.size());
      one.stream = draw(2);
      one.size = draw(4) == 0 ? 1 + draw(20000) : 1 + draw(500);
      one.root = static_cast<int>(draw(2));
      one.number = static_cast<int>(memory_.size());
      bring(one);
    }
    const std::size_t manner = draw(8);
    if (manner == 0) return capture(some);
    const bool grouped = manner < 4;
    if (grouped) EXPECT(ncclGroupStart() == ncclSuccess);
    for (const Drawn& one : some) call(one, streams_[one.stream]);
    if (grouped) EXPECT(ncclGroupEnd() == ncclSuccess);
    if (draw(5) == 0) wait();
  }

  void check() {
    wait();
    for (const Drawn& one : done_) check(one);
    for (const Team& team : teams_) EXPECT(ncclCommDestroy(team.comm) == ncclSuccess);
  }

 private:
  struct Memory {
    std::unique_ptr<Buffer<int>> from, to;
  };

  std::size_t draw(std::size_t below) { return random_() % below; }

  void wait() const {
    for (CUstream const stream : streams_) EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  }

  void bring(const Drawn& one) {
    const Team& team = teams_[one.comm];
    const std::size_t places = one.size * static_cast<std::size_t>(team.ranks);
    Memory memory{std::make_unique<Buffer<int>>(places), std::make_unique<Buffer<int>>(places)};
    std::vector<int> mine(places);
    for (std::size_t i = 0; i < places; ++i) mine[i] = value(one.number, team.rank, i);
    memory.from->write(mine);
    memory_.push_back(std::move(memory));
    done_.push_back(one);
  }

  void capture(const std::vector<Drawn>& some) {
    EXPECT(cuStreamBeginCapture(streams_[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == CUDA_SUCCESS);
    for (const Drawn& one : some) call(one, streams_[0]);
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    EXPECT(cuStreamEndCapture(streams_[0], &graph) == CUDA_SUCCESS);
    EXPECT(cuGraphInstantiate(&executable, graph, 0) == CUDA_SUCCESS);
    for (const std::size_t stream : {draw(2), draw(2)})
      EXPECT(cuGraphLaunch(executable, streams_[stream]) == CUDA_SUCCESS);
  }

  void call(const Drawn& one, CUstream stream) {
    const Team& team = teams_[one.comm];
    const int* const from = memory_[static_cast<std::size_t>(one.number)].from->data();
    int* const to = memory_[static_cast<std::size_t>(one.number)].to->data();
    const auto well = [](ncclResult_t result) { EXPECT(result == ncclSuccess); };
    switch (one.kind) {
      case Kind::sum:
        return well(ncclAllReduce(from, to, one.size, ncclInt32, ncclSum, team.comm, stream));
      case Kind::largest:
        return well(ncclAllReduce(from, to, one.size, ncclInt32, ncclMax, team.comm, stream));
      case Kind::gather:
        return well(ncclAllGather(from, to, one.size, ncclInt32, team.comm, stream));
      case Kind::scatter:
        return well(ncclReduceScatter(from, to, one.size, ncclInt32, ncclSum, team.comm, stream));
      case Kind::spread:
        return well(ncclBroadcast(from, to, one.size, ncclInt32, one.root, team.comm, stream));
      case Kind::pass_on:
        well(ncclGroupStart());
        well(ncclSend(from, one.size, ncclInt32, (team.rank + 1) % team.ranks, team.comm, stream));
        well(ncclRecv(to, one.size, ncclInt32, (team.rank + team.ranks - 1) % team.ranks, team.comm,
                      stream));
        return well(ncclGroupEnd());
    }
  }

  [[nodiscard]] int expected(const Drawn& one, std::size_t place) const {
    const Team& team = teams_[one.comm];
    const auto of = [&](int rank, std::size_t at) { return value(one.number, rank, at); };
    const auto sum = [&](std::size_t at) {
      int total = 0;
      for (int rank = 0; rank < team.ranks; ++rank) total += of(rank, at);
      return total;
    };
    switch (one.kind) {
      case Kind::sum:
        return sum(place);
      case Kind::largest:
        return of(team.ranks - 1, place);
      case Kind::gather:
        return of(static_cast<int>(place / one.size), place % one.size);
      case Kind::scatter:
        return sum(static_cast<std::size_t>(team.rank) * one.size + place);
      case Kind::spread:
        return of(one.root, place);
      default:
        return of((team.rank + team.ranks - 1) % team.ranks, place);
    }
  }

  void check(const Drawn& one) const {
    const Team& team = teams_[one.comm];
    const std::size_t places =
        one.kind == Kind::gather ? one.size * static_cast<std::size_t>(team.ranks) : one.size;
    const auto result = memory_[static_cast<std::size_t>(one.number)].to->read();
    for (std::size_t i = 0; i < places; ++i) EXPECT(result[i] == expected(one, i));
    EXPECT(places == result.size() || result[places] == 0);
  }

  std::mt19937 random_;
  std::vector<Team> teams_;
  CUstream streams_[2] = {};
  std::vector<Memory> memory_;
  std::vector<Drawn> done_;
};

}  // namespace

void random_course(Rank& rank) {
  const char* const seed = std::getenv("TEST_SEED");
  EXPECT(seed != nullptr);
  Course course(rank, static_cast<unsigned>(std::atoi(seed)));
  for (int i = 0; i < 60; ++i) course.go_on();
  course.check();
}

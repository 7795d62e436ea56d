// Random programs from a seed, for comparing the ways in which launches reach the GPU. Each program
// is chains of short dependent launches in some streams, with copies, memsets, events, captures and
// polls between them; afterwards everything that it could write is hashed. A program does the same
// in every run, whatever the timing: operations of different streams or threads that touch the same
// memory are ordered by events, by waits of the host, or by the rules of the default stream.
//   submission_programs --seed S --count N [--first N] [--print-hashes FILE] [--describe 1]
// Prints a line for each program: its number and its hash. Program I of a seed is the same whatever
// the count: `--first I --count 1 --describe 1` tells what it does, on stderr.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "program.hpp"
#include "submission_kernels.cuh"

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned small_words = 4096, middle_words = 65536, large_words = 262144;
enum Resource {
  // Buffers 0 to 7 are device memory with a texture, the mapped one is memory of the host.
  first_large = 6,
  num_device_buffers = 8,
  mapped = num_device_buffers,
  pinned,  // copied to and read by functions of the host only
  constants,
  globals,
  num_resources
};
constexpr unsigned words_of[num_resources] = {
    small_words, small_words, small_words, small_words, middle_words,  middle_words,
    large_words, large_words, small_words, small_words, num_constants, num_globals};

enum StreamKind { legacy, blocking, non_blocking, high_priority, per_thread, num_streams };
constexpr const char* stream_names[] = {"legacy", "blocking", "non-blocking", "priority",
                                        "per-thread"};
bool follows_legacy(unsigned stream) {
  return stream == blocking || stream == per_thread;
}

enum class Kind {
  MixCa,
  MixNc,
  MixTexture,
  MixConstants,
  WriteConstants,
  ReadAllWriteLast,
  Histogram,
  MixStack,
  ReadGlobals,
  WriteGlobals,
  TurnTiles,
  TwoPhases,
  TriggersEarly,
  WaitsItself,
  Publish,
  // Not kernels:
  Memset,
  CopyDevice,
  CopyToDevice,
  CopyPageable,
  CopyBlocking,
  CopyToPinned,
  CopyFromPinned,
  CopyToSymbol,
  HostFunction,
  PollEvent,
  PollStream,
  QueryOnce,
  WaitStream,
  Temporary,
  BadLaunch,
  EndOfList
};
constexpr Kind last_kernel = Kind::Publish;
constexpr const char* kind_names[] = {"mix_ca",           "mix_nc",           "mix_texture",
                                      "mix_constants",    "write_constants",  "read_all_write_last",
                                      "histogram",        "mix_stack",        "read_globals",
                                      "write_globals",    "turn_tiles",       "two_phases",
                                      "triggers_early",   "waits_itself",     "publish",
                                      "memset",           "copy device",      "copy to device",
                                      "copy pageable",    "copy blocking",    "copy to pinned",
                                      "copy from pinned", "copy to symbol",   "host function",
                                      "poll event",       "poll stream",      "query once",
                                      "wait for stream",  "temporary memory", "bad launch"};
static_assert(sizeof(kind_names) / sizeof(*kind_names) ==
              static_cast<std::size_t>(Kind::EndOfList));

/// Of a launch: as <<<>>> does, by cudaLaunchKernelExC without attributes, and with one.
enum class How { Plain, NoAttributes, Priority, Cluster, SyncDomain, Programmatic };

struct Operation {
  Kind kind = Kind::MixCa;
  unsigned stream = 0;
  unsigned in = 0;  // resources
  unsigned out = 0;
  unsigned n = 0;  // words
  unsigned grid = 1, block = 32;
  unsigned salt = 0;
  unsigned way = 0;
  Delays delays{0, 0, 1};
  How how = How::Plain;
  unsigned captured = 0;   // at the first of some operations: how many are captured together
  unsigned repeats = 1;    // of that graph
  bool elsewhere = false;  // launched by the other thread, while this one waits for it
  std::vector<unsigned> waits_for;  // streams whose work so far has to be done before
};

struct Program {
  std::vector<Operation> operations;
  std::array<bool, num_resources> used{};
  std::array<bool, num_streams> streams{};
};

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t program)
      : engine_(seed * 0x9e3779b97f4a7c15u + program) {
    for (int i = 0; i < 4; ++i) engine_();
  }
  unsigned below(unsigned limit) { return static_cast<unsigned>(engine_() % limit); }
  bool in(unsigned hundred) { return below(100) < hundred; }
  unsigned bits() { return static_cast<unsigned>(engine_() >> 32); }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<unsigned>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Which streams have to wait for which: what each of them has done, and knows to be done.
class Order {
 public:
  /// An operation of this stream reads or writes. Returns the streams that it has to wait for.
  /// @param is_work false: the stream is only asked, so that the default stream's rules say nothing
  std::vector<unsigned> add(unsigned stream, bool is_work, const std::vector<unsigned>& reads,
                            const std::vector<unsigned>& writes) {
    if (is_work) begins(stream);
    std::array<Places, num_rules> needed{};
    const auto need = [&](unsigned resource, const Places& places) {
      // Host functions write this. A copy in a stream that follows the legacy one by its rules
      // alone may read what a host function of the latter has not written yet (driver 580, H100).
      Places& of = needed[resource == pinned ? said : implied];
      for (unsigned s = 0; s < num_streams; ++s) of[s] = std::max(of[s], places[s]);
    };
    for (unsigned r : reads) need(r, writers_[r]);
    for (unsigned r : writes) need(r, writers_[r]), need(r, readers_[r]);
    std::vector<unsigned> waits;
    for (unsigned other = 0; other < num_streams; ++other) {
      if (other == stream || (needed[said][other] <= known_[said][stream][other] &&
                              needed[implied][other] <= known_[implied][stream][other])) {
        continue;
      }
      waits.push_back(other);
      ++done_[other];
      learn(said, stream, other);
      learn(implied, stream, other);
    }
    ++done_[stream];
    for (auto& known : known_) known[stream][stream] = done_[stream];
    for (unsigned r : reads) readers_[r][stream] = done_[stream];
    for (unsigned r : writes) writers_[r][stream] = done_[stream];
    return waits;
  }

  /// The host waits for this stream: whatever is launched from now on comes later.
  void host_waits(unsigned stream) {
    for (unsigned other = 0; other < num_streams; ++other) {
      learn(said, other, stream);
      learn(implied, other, stream);
    }
  }

 private:
  /// By events and waits of the host, and by the default stream's rules as well.
  enum Rules { said, implied, num_rules };
  using Places = std::array<unsigned, num_streams>;

  void begins(unsigned stream) {
    if (stream == legacy) {
      for (unsigned other = 0; other < num_streams; ++other) {
        if (follows_legacy(other)) learn(implied, legacy, other);
      }
    } else if (follows_legacy(stream)) {
      learn(implied, stream, legacy);
    }
  }
  void learn(Rules rules, unsigned stream, unsigned other) {
    auto& known = known_[rules];
    known[other][other] = done_[other];
    for (unsigned s = 0; s < num_streams; ++s) {
      known[stream][s] = std::max(known[stream][s], known[other][s]);
    }
  }

  Places done_{};
  std::array<std::array<Places, num_streams>, num_rules> known_{};
  std::array<Places, num_resources> writers_{}, readers_{};
};

void uses(const Operation& one, std::vector<unsigned>& reads, std::vector<unsigned>& writes) {
  switch (one.kind) {
    case Kind::MixConstants:
      reads = {constants};
      writes = {one.out};
      break;
    case Kind::WriteConstants:
      reads = {one.in};
      writes = {constants};
      break;
    case Kind::ReadAllWriteLast:
    case Kind::WaitsItself:
    case Kind::Memset:
    case Kind::CopyToDevice:
    case Kind::CopyPageable:
      writes = {one.out};
      break;
    case Kind::ReadGlobals:
      reads = {globals};
      writes = {one.out};
      break;
    case Kind::WriteGlobals:
      reads = {one.in};
      writes = {globals};
      break;
    case Kind::TwoPhases:
      writes = {one.in, one.out};
      break;
    case Kind::CopyToPinned:
      reads = {one.in};
      writes = {pinned};
      break;
    case Kind::CopyFromPinned:
      reads = {pinned};
      writes = {one.out};
      break;
    case Kind::CopyToSymbol:
      writes = {constants};
      break;
    case Kind::HostFunction:
      writes = {pinned};
      break;
    case Kind::PollEvent:
    case Kind::PollStream:
    case Kind::QueryOnce:
    case Kind::WaitStream:
    case Kind::BadLaunch:
      break;
    default:
      reads = {one.in};
      writes = {one.out};
      break;
  }
}

bool is_work(Kind kind) {
  return kind != Kind::PollEvent && kind != Kind::PollStream && kind != Kind::QueryOnce &&
         kind != Kind::WaitStream && kind != Kind::BadLaunch;
}

bool may_be_captured(Kind kind) {
  return kind != Kind::Publish && kind != Kind::TwoPhases && kind != Kind::WaitsItself &&
         (kind <= last_kernel || kind == Kind::Memset || kind == Kind::CopyDevice ||
          kind == Kind::CopyToDevice);
}

/// @param shape    draws what is launched, and where
/// @param others   of a hundred operations: how many are no launches
/// @param delayed  of a hundred launches: how many have slow blocks
Operation draw_operation(Random& shape, Random& random, const std::vector<unsigned>& streams,
                         const std::vector<unsigned>& buffers, unsigned others, unsigned delayed) {
  Operation one;
  one.stream = streams[shape.below(static_cast<unsigned>(streams.size()))];
  if (!shape.in(others)) {
    // Some twice, being what goes wrong most easily.
    one.kind = shape.of({Kind::MixCa,
                         Kind::MixCa,
                         Kind::MixNc,
                         Kind::MixNc,
                         Kind::MixTexture,
                         Kind::MixTexture,
                         Kind::MixConstants,
                         Kind::MixConstants,
                         Kind::WriteConstants,
                         Kind::WriteConstants,
                         Kind::ReadAllWriteLast,
                         Kind::ReadAllWriteLast,
                         Kind::ReadAllWriteLast,
                         Kind::Histogram,
                         Kind::MixStack,
                         Kind::ReadGlobals,
                         Kind::WriteGlobals,
                         Kind::TurnTiles,
                         Kind::TriggersEarly,
                         Kind::WaitsItself});
    if (shape.in(2)) one.kind = Kind::TwoPhases;
    if (shape.in(2)) one.kind = Kind::Publish;
  } else {
    one.kind = shape.of(
        {Kind::Memset, Kind::Memset, Kind::CopyDevice, Kind::CopyDevice, Kind::CopyToDevice,
         Kind::CopyPageable, Kind::CopyBlocking, Kind::CopyToPinned, Kind::CopyFromPinned,
         Kind::CopyToSymbol, Kind::HostFunction, Kind::PollEvent, Kind::PollStream, Kind::QueryOnce,
         Kind::QueryOnce, Kind::WaitStream, Kind::Temporary, Kind::Temporary, Kind::BadLaunch});
  }
  const auto buffer = [&] { return buffers[random.below(static_cast<unsigned>(buffers.size()))]; };
  one.in = buffer();
  do one.out = buffer();
  while (one.out == one.in);
  one.salt = random.bits();
  one.way = random.below(3);
  one.block = random.of({32u, 64u, 128u, 256u, 512u});
  one.grid = random.of({1u, 2u, 7u, 16u, 33u, 132u, 264u, 1000u});
  if (random.in(20)) one.grid = 1 + random.below(2000);
  if (random.in(delayed)) {
    const unsigned rounds = random.of({100u, 400u, 1500u, 4000u});
    if (random.in(50))
      one.delays.before = static_cast<unsigned short>(rounds);
    else
      one.delays.after = static_cast<unsigned short>(rounds);
    one.delays.every = static_cast<unsigned char>(1 + random.below(8));
    // One of fewer blocks than that has none that is slow.
    if (one.delays.every > one.grid) one.delays.every = static_cast<unsigned char>(one.grid);
  }
  if (one.kind == Kind::TwoPhases) {
    one.block = 128;
    one.grid = std::min(one.grid, 33u);
  }
  if (one.kind == Kind::CopyBlocking) one.stream = legacy;
  if (one.kind == Kind::Publish) one.out = mapped;
  // A buffer of the host can be read and written, but is no texture and no copy within the device.
  else if (random.in(3) && one.kind == Kind::MixCa)
    (random.in(50) ? one.in : one.out) = mapped;
  one.n = std::min(words_of[one.in], words_of[one.out]);
  if (one.kind <= last_kernel || one.kind == Kind::Temporary) {
    one.n = std::min(one.n, one.grid * one.block * 16);
  }
  if (one.kind <= last_kernel) {
    if (random.in(25)) one.n -= random.below(one.n / 2);  // threads that leave at once
    if (random.in(15) && one.kind != Kind::TwoPhases) {
      one.how = random.of({How::NoAttributes, How::Priority, How::Cluster, How::SyncDomain});
      if (one.how == How::Cluster) one.grid += one.grid % 2;
    }
    if (one.kind == Kind::WaitsItself && random.in(70)) one.how = How::Programmatic;
  }
  return one;
}

/// Eight programs in a row have the same shape, that is the same kernels in the same streams, as
/// parts of a program have; data, buffers, grids and delays are drawn for each.
Program draw_program(std::uint64_t seed, std::uint64_t number) {
  constexpr std::uint64_t same_shape = 16;  // numbers, of which each program has two
  Random shape(seed ^ 0x5851f42d4c957f2du, number / same_shape * 2 + number % 2);
  Random random(seed, number);
  Program program;
  std::vector<unsigned> streams;
  const unsigned num = shape.in(60) ? 1 : 2 + shape.below(3);
  while (streams.size() < num) {
    // Twice, since launches are held back in those only.
    const unsigned one = shape.of<unsigned>({legacy, legacy, blocking, blocking, non_blocking,
                                             non_blocking, high_priority, per_thread});
    if (std::find(streams.begin(), streams.end(), one) == streams.end()) streams.push_back(one);
  }
  std::vector<unsigned> buffers;
  const bool large = random.in(25);
  const unsigned num_buffers = 2 + random.below(3);
  while (buffers.size() < num_buffers) {
    const unsigned one = random.below(large ? num_device_buffers : first_large);
    if (std::find(buffers.begin(), buffers.end(), one) == buffers.end()) buffers.push_back(one);
  }
  const unsigned others = shape.of({0u, 4u, 22u});
  const unsigned delayed = random.of({0u, 20u, 60u});
  // The same launches over and over, as most programs do them.
  unsigned period = 2 + shape.below(shape.in(50) ? 12 : 39);
  unsigned length = period;
  if (shape.in(50)) {
    period = 1 + shape.below(12);
    length = std::min(80u, period * (2 + shape.below(8)));
  }
  const bool two_threads = random.in(15);
  for (unsigned i = 0; i < length; ++i) {
    Operation one;
    if (i >= period) {
      one = program.operations[i - period];
      if (random.in(50)) one.salt = random.bits();
      if (random.in(20) && one.kind <= last_kernel && one.kind != Kind::TwoPhases) {
        one.grid = 2 * (1 + random.below(500));
        one.n = std::min(one.n, one.grid * one.block * 16);
        if (one.delays.every > 2) one.delays.every = 2;
      }
    } else {
      one = draw_operation(shape, random, streams, buffers, others, delayed);
    }
    one.captured = 0;
    one.elsewhere = two_threads && one.stream != per_thread && random.in(50);
    program.operations.push_back(std::move(one));
  }
  if (random.in(15)) {
    const unsigned begin = random.below(length);
    const unsigned stream = random.of({unsigned{non_blocking}, unsigned{high_priority}});
    unsigned end = begin;
    while (end < length && end < begin + 10 && may_be_captured(program.operations[end].kind)) ++end;
    for (unsigned i = begin; i < end; ++i) program.operations[i].stream = stream;
    if (end > begin) {
      program.operations[begin].captured = end - begin;
      program.operations[begin].repeats = 1 + random.below(3);
    }
  }
  // A kernel that starts before the one before it has left finds stale constants, wait or not.
  const bool has_constants =
      std::any_of(program.operations.begin(), program.operations.end(), [](const Operation& one) {
        return one.kind == Kind::MixConstants || one.kind == Kind::WriteConstants;
      });
  for (Operation& one : program.operations) {
    if (has_constants && one.how == How::Programmatic) one.how = How::Plain;
  }
  Order order;
  for (unsigned i = 0; i < length;) {
    Operation& head = program.operations[i];
    const unsigned together = std::max(1u, head.captured);
    std::vector<unsigned> reads, writes;
    for (unsigned j = i; j < i + together; ++j) {
      Operation& one = program.operations[j];
      one.waits_for.clear();
      std::vector<unsigned> r, w;
      uses(one, r, w);
      for (unsigned k : r) program.used[k] = true;
      for (unsigned k : w) program.used[k] = true;
      reads.insert(reads.end(), r.begin(), r.end());
      writes.insert(writes.end(), w.begin(), w.end());
      program.streams[one.stream] = true;
    }
    head.waits_for = order.add(head.stream, is_work(head.kind), reads, writes);
    for (unsigned s : head.waits_for) program.streams[s] = true;
    const bool waits = head.kind == Kind::PollEvent || head.kind == Kind::PollStream ||
                       head.kind == Kind::WaitStream;
    if (waits) order.host_waits(head.stream);
    i += together;
  }
  return program;
}

class Hash {
 public:
  void add(const unsigned* words, std::size_t count) {
    std::uint64_t lanes[4] = {sum_, sum_ + 1, sum_ + 2, sum_ + 3};
    for (std::size_t i = 0; i + 8 <= count; i += 8) {
      for (unsigned k = 0; k < 4; ++k) {
        std::uint64_t pair;
        std::memcpy(&pair, words + i + 2 * k, sizeof pair);
        lanes[k] = (lanes[k] ^ pair) * 0x9e3779b97f4a7c15u;
        lanes[k] ^= lanes[k] >> 29;
      }
    }
    for (std::uint64_t lane : lanes) sum_ = (sum_ ^ lane) * 0xff51afd7ed558ccdu, sum_ ^= sum_ >> 32;
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325u;
};

/// What the programs of one host thread run on.
class Lane {
 public:
  explicit Lane(unsigned number) : number_(number) {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    greatest_ = greatest;
    streams_[legacy] = cudaStreamLegacy;
    streams_[per_thread] = cudaStreamPerThread;
    CUDA_CHECK(cudaStreamCreate(&streams_[blocking]));
    CUDA_CHECK(cudaStreamCreateWithFlags(&streams_[non_blocking], cudaStreamNonBlocking));
    CUDA_CHECK(
        cudaStreamCreateWithPriority(&streams_[high_priority], cudaStreamNonBlocking, greatest));
    for (cudaEvent_t& event : events_) {
      CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    for (unsigned r = 0; r < num_resources; ++r) {
      const std::size_t bytes = words_of[r] * sizeof(unsigned);
      CUDA_CHECK(cudaMallocHost(&initial_[r], bytes));
      CUDA_CHECK(cudaMallocHost(&final_[r], bytes));
      for (unsigned i = 0; i < words_of[r]; ++i)
        initial_[r][i] = i * 2654435761u + r * 40503u + number;
      if (r < num_device_buffers) {
        CUDA_CHECK(cudaMalloc(&memory_[r], bytes));
        cudaResourceDesc resource{};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = memory_[r];
        resource.res.linear.desc = cudaCreateChannelDesc<unsigned>();
        resource.res.linear.sizeInBytes = bytes;
        cudaTextureDesc texture{};
        texture.readMode = cudaReadModeElementType;
        CUDA_CHECK(cudaCreateTextureObject(&textures_[r], &resource, &texture, nullptr));
      }
    }
    CUDA_CHECK(cudaHostAlloc(&mapped_, small_words * sizeof(unsigned), cudaHostAllocMapped));
    CUDA_CHECK(cudaHostGetDevicePointer(&memory_[mapped], mapped_, 0));
    CUDA_CHECK(cudaHostAlloc(&flag_, 64, cudaHostAllocMapped));
    CUDA_CHECK(cudaHostGetDevicePointer(&device_flag_, const_cast<unsigned*>(flag_), 0));
    *flag_ = 0;
    CUDA_CHECK(cudaMallocHost(&memory_[pinned], small_words * sizeof(unsigned)));
    void* address = nullptr;
    if (number == 0)
      CUDA_CHECK(cudaGetSymbolAddress(&address, constants_of_lane_0));
    else
      CUDA_CHECK(cudaGetSymbolAddress(&address, constants_of_lane_1));
    memory_[constants] = static_cast<unsigned*>(address);
    CUDA_CHECK(cudaGetSymbolAddress(&address, globals_of_lanes));
    memory_[globals] = static_cast<unsigned*>(address) + number * num_globals;
    CUDA_CHECK(cudaMalloc(&tickets_, num_streams * sizeof(Ticket)));
    CUDA_CHECK(cudaMemset(tickets_, 0, num_streams * sizeof(Ticket)));
    CUDA_CHECK(cudaMallocHost(&source_, large_words * sizeof(unsigned)));
    pageable_.resize(large_words);
    for (unsigned i = 0; i < large_words; ++i) source_[i] = pageable_[i] = i * 747796405u + 1u;
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  /// @param alone no other thread uses the GPU meanwhile, so that a capture may forbid it
  /// @param elsewhere has something done by another thread; none: everything is done by this one
  std::uint64_t run(const Program& program, bool alone,
                    const std::function<void(const std::function<void()>&)>& elsewhere = {}) {
    hash_ = Hash();
    cudaStream_t first = streams_[non_blocking];
    for (unsigned r = 0; r < num_resources; ++r) {
      if (!program.used[r]) continue;
      const std::size_t bytes = words_of[r] * sizeof(unsigned);
      if (r == mapped)
        std::memcpy(mapped_, initial_[r], bytes);
      else if (r == pinned)
        std::memcpy(memory_[r], initial_[r], bytes);
      else
        CUDA_CHECK(cudaMemcpyAsync(memory_[r], initial_[r], bytes, cudaMemcpyHostToDevice, first));
    }
    CUDA_CHECK(cudaStreamSynchronize(first));
    for (std::size_t i = 0; i < program.operations.size();) {
      const Operation& head = program.operations[i];
      for (unsigned other : head.waits_for) {
        cudaEvent_t event = next_event();
        CUDA_CHECK(cudaEventRecord(event, streams_[other]));
        CUDA_CHECK(cudaStreamWaitEvent(streams_[head.stream], event, 0));
      }
      if (head.captured == 0) {
        if (head.elsewhere && elsewhere) {
          elsewhere([this, &head] { perform(head); });
        } else {
          perform(head);
        }
        ++i;
        continue;
      }
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      cudaStream_t stream = streams_[head.stream];
      CUDA_CHECK(cudaStreamBeginCapture(
          stream, alone ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal));
      for (unsigned k = 0; k < head.captured; ++k) perform(program.operations[i + k]);
      CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
      CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
      for (unsigned k = 0; k < head.repeats; ++k) {
        if (k % 2 == 1) {
          // Captured anew with other arguments, as programs do whose steps differ a little.
          cudaGraph_t other = nullptr;
          cudaGraphExecUpdateResultInfo info{};
          CUDA_CHECK(cudaStreamBeginCapture(
              stream, alone ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal));
          for (unsigned at = 0; at < head.captured; ++at) {
            Operation changed = program.operations[i + at];
            changed.salt += k;
            perform(changed);
          }
          CUDA_CHECK(cudaStreamEndCapture(stream, &other));
          CUDA_CHECK(cudaGraphExecUpdate(executable, other, &info));
          CUDA_CHECK(cudaGraphDestroy(other));
        }
        CUDA_CHECK(cudaGraphLaunch(executable, stream));
      }
      graphs_.push_back({graph, executable});
      i += head.captured;
    }
    for (unsigned s = 0; s < num_streams; ++s) {
      if (program.streams[s]) CUDA_CHECK(cudaStreamSynchronize(streams_[s]));
    }
    for (unsigned r = 0; r < num_resources; ++r) {
      if (!program.used[r] || r == mapped || r == pinned) continue;
      CUDA_CHECK(cudaMemcpyAsync(final_[r], memory_[r], words_of[r] * sizeof(unsigned),
                                 cudaMemcpyDeviceToHost, first));
    }
    CUDA_CHECK(cudaStreamSynchronize(first));
    for (unsigned r = 0; r < num_resources; ++r) {
      if (program.used[r])
        hash_.add(r == mapped ? mapped_ : r == pinned ? memory_[r] : final_[r], words_of[r]);
    }
    for (auto& [graph, executable] : graphs_) {
      CUDA_CHECK(cudaGraphExecDestroy(executable));
      CUDA_CHECK(cudaGraphDestroy(graph));
    }
    graphs_.clear();
    return hash_.sum();
  }

 private:
  cudaEvent_t next_event() { return events_[event_++ % events_.size()]; }

  void launch(const Operation& one, const void* kernel, void** arguments, std::size_t shared = 0) {
    cudaStream_t stream = streams_[one.stream];
    if (one.kind == Kind::TwoPhases) {
      CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(one.grid), dim3(one.block), arguments,
                                             shared, stream));
      return;
    }
    if (one.how == How::Plain) {
      CUDA_CHECK(
          cudaLaunchKernel(kernel, dim3(one.grid), dim3(one.block), arguments, shared, stream));
      return;
    }
    cudaLaunchAttribute attribute{};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(one.grid);
    config.blockDim = dim3(one.block);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    switch (one.how) {
      case How::Priority:
        attribute.id = cudaLaunchAttributePriority;
        attribute.val.priority = greatest_;
        break;
      case How::Cluster:
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = 2;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        break;
      case How::SyncDomain:
        attribute.id = cudaLaunchAttributeMemSyncDomain;
        attribute.val.memSyncDomain = cudaLaunchMemSyncDomainDefault;
        break;
      case How::Programmatic:
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        break;
      default:
        config.numAttrs = 0;
        break;
    }
    CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments));
  }

  template <class... Arguments>
  void launch_kernel(const Operation& one, const void* kernel, std::size_t shared,
                     Arguments... arguments) {
    void* pointers[] = {&arguments...};
    launch(one, kernel, pointers, shared);
  }

  void perform(const Operation& one) {
    cudaStream_t stream = streams_[one.stream];
    unsigned* const in = memory_[one.in];
    unsigned* const out = memory_[one.out];
    const std::size_t bytes = one.n * sizeof(unsigned);
    Ticket* const ticket = tickets_ + one.stream;
#define KERNEL(name) reinterpret_cast<const void*>(&name)
    switch (one.kind) {
      case Kind::MixCa:
        launch_kernel(one, KERNEL(mix_ca), 0, in, out, one.n, one.salt, one.delays);
        break;
      case Kind::MixNc:
        launch_kernel(one, KERNEL(mix_nc), 0, one.delays, out, in, one.n, one.salt);
        break;
      case Kind::MixTexture:
        launch_kernel(one, KERNEL(mix_texture), 0, static_cast<unsigned char>(one.salt % 20),
                      textures_[one.in], out, one.n, one.salt, one.delays);
        break;
      case Kind::MixConstants:
        launch_kernel(one, number_ == 0 ? KERNEL(mix_constants<0>) : KERNEL(mix_constants<1>), 0,
                      out, one.n, one.salt, one.delays);
        break;
      case Kind::WriteConstants:
        launch_kernel(one, number_ == 0 ? KERNEL(write_constants<0>) : KERNEL(write_constants<1>),
                      0, memory_[constants], in, one.salt, ticket, one.delays);
        break;
      case Kind::ReadAllWriteLast:
        launch_kernel(one, KERNEL(read_all_write_last), 0, out, textures_[one.out], one.n, one.way,
                      one.salt, ticket, one.delays);
        break;
      case Kind::Histogram:
        launch_kernel(one, KERNEL(histogram), 0, in, one.n, out, 256u, one.delays);
        break;
      case Kind::MixStack:
        launch_kernel(one, KERNEL(mix_stack), 0, in, out, one.n, one.salt | 1u, one.delays);
        break;
      case Kind::ReadGlobals:
        launch_kernel(one, KERNEL(read_globals), 0, number_, out, one.n, one.salt, one.delays);
        break;
      case Kind::WriteGlobals:
        launch_kernel(one, KERNEL(write_globals), 0, in, number_, one.salt, one.delays);
        break;
      case Kind::TurnTiles:
        launch_kernel(one, KERNEL(turn_tiles), one.block * sizeof(unsigned), in, out, one.n,
                      one.delays);
        break;
      case Kind::TwoPhases:
        launch_kernel(one, KERNEL(two_phases), 0, in, out, one.n, one.salt, one.delays);
        break;
      case Kind::TriggersEarly:
        launch_kernel(one, KERNEL(triggers_early), 0, in, out, one.n, one.salt, one.delays);
        break;
      case Kind::WaitsItself:
        launch_kernel(one, KERNEL(waits_itself), 0, out, one.n, one.salt, one.delays);
        break;
      case Kind::Publish:
        publish_and_poll(one, in, ticket);
        break;
      case Kind::Memset:
        CUDA_CHECK(cudaMemsetAsync(out, static_cast<int>(one.salt & 0xff), bytes, stream));
        break;
      case Kind::CopyDevice:
        CUDA_CHECK(cudaMemcpyAsync(out, in, bytes, cudaMemcpyDeviceToDevice, stream));
        break;
      case Kind::CopyToDevice:
        CUDA_CHECK(cudaMemcpyAsync(out, source_, bytes, cudaMemcpyHostToDevice, stream));
        break;
      case Kind::CopyPageable:
        CUDA_CHECK(cudaMemcpyAsync(out, pageable_.data(), bytes, cudaMemcpyHostToDevice, stream));
        break;
      case Kind::CopyBlocking:
        CUDA_CHECK(cudaMemcpy(out, in, bytes, cudaMemcpyDeviceToDevice));
        break;
      case Kind::CopyToPinned:
        CUDA_CHECK(cudaMemcpyAsync(memory_[pinned], in, small_words * sizeof(unsigned),
                                   cudaMemcpyDeviceToHost, stream));
        break;
      case Kind::CopyFromPinned:
        CUDA_CHECK(cudaMemcpyAsync(out, memory_[pinned], small_words * sizeof(unsigned),
                                   cudaMemcpyHostToDevice, stream));
        break;
      case Kind::CopyToSymbol:
        if (number_ == 0) {
          CUDA_CHECK(cudaMemcpyToSymbolAsync(constants_of_lane_0, source_ + one.salt % 4096,
                                             num_constants * sizeof(unsigned), 0,
                                             cudaMemcpyHostToDevice, stream));
        } else {
          CUDA_CHECK(cudaMemcpyToSymbolAsync(constants_of_lane_1, source_ + one.salt % 4096,
                                             num_constants * sizeof(unsigned), 0,
                                             cudaMemcpyHostToDevice, stream));
        }
        break;
      case Kind::HostFunction:
        CUDA_CHECK(cudaLaunchHostFunc(
            stream,
            [](void* data) {
              auto* words = static_cast<unsigned*>(data);
              for (unsigned i = 0; i < 64; ++i) words[i] = words[i] * 5u + words[i + 64];
            },
            memory_[pinned]));
        break;
      case Kind::PollEvent: {
        cudaEvent_t event = next_event();
        CUDA_CHECK(cudaEventRecord(event, stream));
        poll("an event", [event] { return cudaEventQuery(event); });
        break;
      }
      case Kind::PollStream:
        poll("a stream", [stream] { return cudaStreamQuery(stream); });
        break;
      case Kind::QueryOnce:
        if (const cudaError_t result = cudaStreamQuery(stream); result != cudaErrorNotReady) {
          CUDA_CHECK(result);
        } else {
          (void)cudaGetLastError();
        }
        break;
      case Kind::WaitStream:
        CUDA_CHECK(cudaStreamSynchronize(stream));
        break;
      case Kind::Temporary: {
        void* temporary = nullptr;
        CUDA_CHECK(cudaMallocAsync(&temporary, bytes, stream));
        launch_kernel(one, KERNEL(mix_nc), 0, one.delays, static_cast<unsigned*>(temporary), in,
                      one.n, one.salt);
        launch_kernel(one, KERNEL(mix_stack), 0, static_cast<unsigned*>(temporary), out, one.n,
                      one.salt | 1u, one.delays);
        CUDA_CHECK(cudaFreeAsync(temporary, stream));
        break;
      }
      case Kind::BadLaunch: {
        // Comes back with its code, and the next one is as good as any.
        mix_stack<<<1, 2048, 0, stream>>>(in, out, one.n, one.salt, one.delays);
        const unsigned code[8] = {static_cast<unsigned>(cudaGetLastError())};
        hash_.add(code, 8);
        break;
      }
      case Kind::EndOfList:
        break;
    }
    if (one.kind <= last_kernel) CUDA_CHECK(cudaGetLastError());
  }

  template <class Query>
  void poll(const char* what, Query query) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    for (;;) {
      const cudaError_t result = query();
      if (result == cudaSuccess) return;
      if (result != cudaErrorNotReady) CUDA_CHECK(result);
      (void)cudaGetLastError();
      if (Clock::now() > deadline) give_up(what);
    }
  }

  [[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "submission_programs: %s was not done in 10 s\n", what);
    std::fflush(nullptr);  // the program after the last one that has a line
    std::_Exit(3);
  }

  /// The host spins without any call of the driver, and then reads what the kernel wrote before.
  void publish_and_poll(const Operation& one, unsigned* in, Ticket* ticket) {
    const unsigned value = ++flag_value_;
    launch_kernel(one, KERNEL(publish), 0, in, memory_[mapped], one.n, one.salt, device_flag_,
                  value, ticket, one.delays);
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (*flag_ != value) {
      if (Clock::now() > deadline) give_up("a flag in mapped memory");
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    hash_.add(mapped_, one.n);
  }
#undef KERNEL

  const unsigned number_;
  int greatest_ = 0;
  std::array<cudaStream_t, num_streams> streams_{};
  std::array<cudaEvent_t, 64> events_{};
  unsigned event_ = 0;
  std::array<unsigned*, num_resources> memory_{}, initial_{}, final_{};
  std::array<cudaTextureObject_t, num_resources> textures_{};
  unsigned* mapped_ = nullptr;
  volatile unsigned* flag_ = nullptr;
  unsigned* device_flag_ = nullptr;
  unsigned flag_value_ = 0;
  Ticket* tickets_ = nullptr;
  unsigned* source_ = nullptr;
  std::vector<unsigned> pageable_;
  std::vector<std::pair<cudaGraph_t, cudaGraphExec_t>> graphs_;
  Hash hash_;
};

void describe(const Program& program, const char* thread) {
  std::fprintf(stderr, "%s\n", thread);
  for (const Operation& one : program.operations) {
    std::fprintf(
        stderr, "  %-20s %-12s in %u out %u n %u grid %u block %u salt %08x delays %u %u/%u how %d",
        kind_names[static_cast<unsigned>(one.kind)], stream_names[one.stream], one.in, one.out,
        one.n, one.grid, one.block, one.salt, one.delays.before, one.delays.after, one.delays.every,
        static_cast<int>(one.how));
    for (unsigned s : one.waits_for) std::fprintf(stderr, ", after %s", stream_names[s]);
    if (one.elsewhere) std::fprintf(stderr, ", by the other thread");
    if (one.captured != 0) std::fprintf(stderr, ", captured %u x %u", one.captured, one.repeats);
    std::fprintf(stderr, "\n");
  }
}

/// So that none is loaded while a stream is captured.
void load_kernels() {
  const auto load = [](auto... kernels) {
    for (const void* kernel : {reinterpret_cast<const void*>(kernels)...}) {
      cudaFuncAttributes attributes;
      CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    }
  };
  load(mix_ca, mix_nc, mix_texture, mix_constants<0>, mix_constants<1>, write_constants<0>,
       write_constants<1>, read_all_write_last, histogram, mix_stack, read_globals, write_globals,
       turn_tiles, two_phases, triggers_early, waits_itself, publish);
}

/// Else each wait of the host gives it back, and programs take many times as long.
void keep_temporary_memory() {
  cudaMemPool_t pool = nullptr;
  CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t bytes = 64 << 20;
  CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &bytes));
}

/// A second thread with a lane of its own.
class Worker {
 public:
  /// Comes back when its lane is there: a capture forbids what that takes.
  Worker() : thread_([this] { serve(); }) { (void)result(); }
  ~Worker() {
    give(nullptr);
    thread_.join();
  }
  /// One piece of work at a time, which stays until its result was asked for.
  void give(const std::function<std::uint64_t(Lane&)>* work) {
    const std::lock_guard lock(mutex_);
    work_ = work;
    has_work_ = true;
    changed_.notify_all();
  }
  std::uint64_t result() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !has_work_; });
    return result_;
  }

 private:
  void serve() {
    Lane lane(1);
    std::unique_lock lock(mutex_);
    has_work_ = false;
    changed_.notify_all();
    for (;;) {
      changed_.wait(lock, [this] { return has_work_; });
      if (work_ == nullptr) return;
      lock.unlock();
      const std::uint64_t result = (*work_)(lane);
      lock.lock();
      result_ = result;
      has_work_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<std::uint64_t(Lane&)>* work_ = nullptr;
  bool has_work_ = true;
  std::uint64_t result_ = 0;
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto seed = static_cast<std::uint64_t>(option(argc, argv, "--seed", 1L));
  const auto first = static_cast<std::uint64_t>(option(argc, argv, "--first", 0L));
  const auto count = static_cast<std::uint64_t>(option(argc, argv, "--count", 100L));
  const bool tell = option(argc, argv, "--describe", 0L) != 0;
  const std::string file = option(argc, argv, "--print-hashes", std::string());
  std::FILE* out = file.empty() ? stdout : std::fopen(file.c_str(), "w");
  if (out == nullptr) {
    std::fprintf(stderr, "submission_programs: cannot write %s\n", file.c_str());
    return 1;
  }
  load_kernels();
  keep_temporary_memory();
  Lane lane(0);
  Worker worker;
  const auto elsewhere = [&worker](const std::function<void()>& work) {
    const std::function<std::uint64_t(Lane&)> given = [&work](Lane&) {
      work();
      return std::uint64_t{0};
    };
    worker.give(&given);
    (void)worker.result();
  };
  const auto start = Clock::now();
  for (std::uint64_t i = first; i < first + count; ++i) {
    const Program program = draw_program(seed, 2 * i);
    const bool two = (seed * 31 + i) % 7 == 3;
    const Program other = two ? draw_program(seed, 2 * i + 1) : Program();
    if (tell) describe(program, "thread 0");
    if (tell && two) describe(other, "thread 1");
    const std::function<std::uint64_t(Lane&)> others = [&](Lane& own) {
      return own.run(other, false);
    };
    if (two) worker.give(&others);
    std::uint64_t sum = two ? lane.run(program, false) : lane.run(program, true, elsewhere);
    if (two) sum ^= worker.result() * 0x9e3779b97f4a7c15u;
    std::fprintf(out, "%llu %016llx\n", static_cast<unsigned long long>(i),
                 static_cast<unsigned long long>(sum));
  }
  const std::chrono::duration<double> taken = Clock::now() - start;
  std::fprintf(stderr, "%llu programs, %.0f a second\n", static_cast<unsigned long long>(count),
               static_cast<double>(count) / taken.count());
  if (out != stdout && std::fclose(out) != 0) return 1;
  return 0;
}

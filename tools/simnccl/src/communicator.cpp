#include "communicator.hpp"

#include <simcuda/simcuda.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "current_context.hpp"
#include "deadline.hpp"
#include "device_kernel.hpp"
#include "rendezvous.hpp"
#include "settings.hpp"

namespace simnccl {

namespace {

constexpr std::chrono::nanoseconds longest_nap = std::chrono::milliseconds(10);

// What ranks meet for; the low byte says more.
constexpr std::uint64_t tag_init = 0x100, tag_ready = 0x200, tag_connect = 0x300, tag_split = 0x400,
                        tag_split_id = 0x500;

// Virtual seconds.
constexpr double creation_seconds = 60e-3;
constexpr double connection_seconds = 1.5e-3;

constexpr std::array<std::size_t, algorithm_count> connection_bytes{
    std::size_t{6} << 20, std::size_t{8} << 20, 0, 0, std::size_t{32} << 20, 0, 0};

std::string name_of_tag(std::uint64_t tag) {
  if (tag >> 8 == tag_connect >> 8)
    return std::string("to connect ") + name_of_algorithm(static_cast<int>(tag & 0xFF));
  return tag == tag_init || tag == tag_ready ? "to make a communicator" : "to split";
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
template <class T>
T value_of(const std::string& bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

struct SplitWish {
  int color, key, rank;
};

/// As long as it lives, the calling thread may do what a stream capture of another mode forbids,
/// such as to allocate memory. What it does is not captured.
class RelaxedCapture {
 public:
  RelaxedCapture() { cuThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cuThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace

std::uint64_t digest(std::string_view bytes, std::uint64_t seed) {
  for (const char byte : bytes) seed = (seed ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return seed;
}

Communicator::Communicator(const CommunicatorPlan& plan, std::shared_ptr<std::atomic<bool>> aborted)
    : plan_(plan),
      aborted_(std::move(aborted)),
      segment_(fetch_shared_file(plan.id, plan.ranks), plan.ranks),
      sent_(static_cast<std::size_t>(plan.ranks)),
      received_(static_cast<std::size_t>(plan.ranks)) {
  load_kernels();
  // Not the hash, which is another in each run: the same seed has to give the same times.
  static std::atomic<std::uint64_t> made{0};
  noise_stream_ =
      value_of<std::uint64_t>(exchange(tag_init, bytes_of(made.fetch_add(1) + 1)).front());
  meet(tag_init, creation_seconds);
  tuner_ = std::make_unique<Tuner>(plan.hash, plan.ranks);
  meet(tag_ready, 0);
}

std::vector<std::string> Communicator::exchange(std::uint64_t tag, std::string_view said) {
  const std::uint64_t number = ++exchanges_;
  const std::size_t half = number % 2;
  ExchangeSlot& mine = segment_.exchange(rank());
  mine.tag[half] = tag;
  std::memcpy(mine.payload[half], said.data(), said.size());
  mine.count.store(number, std::memory_order_release);

  const auto first_missing = [this, number, half, tag] {
    for (int other = 0; other < ranks(); ++other) {
      const ExchangeSlot& slot = segment_.exchange(other);
      if (slot.count.load(std::memory_order_acquire) < number || slot.tag[half] != tag)
        return other;
    }
    return ranks();
  };
  const Waiting waiting([this, tag, first_missing] {
    return "rank " + std::to_string(rank()) + " waits " + name_of_tag(tag) + " for rank " +
           std::to_string(first_missing()) + ", which is not there or does something else";
  });
  const auto begin = std::chrono::steady_clock::now();
  while (first_missing() < ranks()) {
    if (aborted()) throw Error{ncclInternalError, "aborted while it waited for other ranks"};
    // Many ranks have few processors, which those need that have not come yet.
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
    const std::chrono::nanoseconds shortest = std::chrono::microseconds(50 + 5 * ranks());
    std::this_thread::sleep_for(std::max(shortest, std::min(waited / 8, longest_nap)));
  }
  std::vector<std::string> all;
  for (int other = 0; other < ranks(); ++other)
    all.emplace_back(segment_.exchange(other).payload[half], ExchangeSlot::payload_bytes);
  return all;
}

void Communicator::meet(std::uint64_t tag, double costs_seconds) {
  double latest = 0;
  for (const std::string& said : exchange(tag, bytes_of(simcuda_host_time())))
    latest = std::max(latest, value_of<double>(said));
  simcuda_host_wait_until(latest + costs_seconds);
}

void Communicator::connect(int algorithm) {
  const unsigned bit = 1U << static_cast<unsigned>(algorithm);
  if ((connected_ & bit) != 0) return;
  const Faults& faults = Settings::instance().faults;
  const Choice choice{algorithm, -1, 0, 0};
  require(faults.find(Fault::Kind::connect_fail, rank(), choice) == nullptr, ncclSystemError,
          "a connection failed, as SIMNCCL_FAULTS asks");
  std::size_t bytes = connection_bytes.at(static_cast<std::size_t>(algorithm));
  if (const Fault* const fault = faults.find(Fault::Kind::connect_memory, rank(), choice))
    bytes = fault->memory;
  CUdeviceptr buffer = 0;
  if (bytes > 0) {
    const CurrentContext current(plan_.context);
    const RelaxedCapture relaxed;
    require(cuMemAlloc(&buffer, bytes) == CUDA_SUCCESS, ncclUnhandledCudaError,
            "no device memory for a connection");
    buffers_.push_back(buffer);
  }
  meet(tag_connect | static_cast<std::uint64_t>(algorithm), connection_seconds);
  connected_ |= bit;
}

bool Communicator::split(int color, int key, CommunicatorPlan& child) {
  ++splits_;
  std::vector<SplitWish> together;
  for (const std::string& said : exchange(tag_split, bytes_of(SplitWish{color, key, rank()})))
    if (const auto wish = value_of<SplitWish>(said); wish.color == color) together.push_back(wish);
  std::stable_sort(together.begin(), together.end(),
                   [](const SplitWish& a, const SplitWish& b) { return a.key < b.key; });
  const bool takes_part = color != NCCL_SPLIT_NOCOLOR;
  const int leader = together.front().rank;
  ncclUniqueId id{};
  if (takes_part && leader == rank()) id = make_unique_id();
  const auto ids = exchange(tag_split_id, bytes_of(id));
  if (!takes_part) return false;

  child = plan_;
  child.id = value_of<ncclUniqueId>(ids[static_cast<std::size_t>(leader)]);
  child.ranks = static_cast<int>(together.size());
  for (int i = 0; i < child.ranks; ++i)
    if (together[static_cast<std::size_t>(i)].rank == rank()) child.rank = i;
  child.hash = digest(bytes_of(color), digest(bytes_of(splits_), plan_.hash));
  return true;
}

void Communicator::end() {
  forget_kernels_of(*this);
  tuner_.reset();
}

void Communicator::close() {
  end();
  if (buffers_.empty()) return;
  const CurrentContext current(plan_.context);
  for (const CUdeviceptr buffer : buffers_) cuMemFree(buffer);
  buffers_.clear();
}

}  // namespace simnccl

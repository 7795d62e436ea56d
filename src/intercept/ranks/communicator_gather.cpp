#include "intercept/ranks/communicator_gather.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <contextune/error.hpp>

#include "gpu/driver/deadline.hpp"
#include "gpu/driver/own_stream.hpp"
#include "gpu/memory/pinned_memory.hpp"
#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

constexpr int type_of_bytes = 0;  // ncclInt8
constexpr auto poll_interval = std::chrono::microseconds(200);
constexpr double abort_seconds = 5;  // for the kernel of an aborted communicator to end

/// ncclConfig_t as NCCL 2.18 had it; every later NCCL takes it.
struct NcclConfig {
  static constexpr int undefined = -2147483647 - 1;
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21801;
  int blocking = 0;
  int cga_cluster_size = undefined;
  int min_ctas = 1;
  int max_ctas = 1;
  const char* net_name = nullptr;
  int split_share = 0;
};

/// Device memory for the blocks, which stays if the GPU may still use it.
class DeviceBlocks {
 public:
  DeviceBlocks(const gpu::Driver& driver, CUcontext context, std::size_t bytes)
      : driver_(driver), context_(context) {
    const gpu::RelaxedCapture relaxed(driver_);
    const gpu::CurrentContext current(driver_, context_);
    gpu::check(driver_, driver_.cuMemAlloc(&address_, bytes), "device memory for joining");
  }
  ~DeviceBlocks() {
    if (address_ == 0) return;
    const gpu::RelaxedCapture relaxed(driver_);
    const gpu::CurrentContext current(driver_, context_);
    (void)driver_.cuMemFree(address_);
  }
  DeviceBlocks(const DeviceBlocks&) = delete;
  DeviceBlocks& operator=(const DeviceBlocks&) = delete;

  [[nodiscard]] CUdeviceptr address() const noexcept { return address_; }
  void abandon() noexcept { address_ = 0; }

 private:
  const gpu::Driver& driver_;
  CUcontext context_;
  CUdeviceptr address_ = 0;
};

/// The state of one gathering, which its thread works on; it may outlast the call.
class Gathering : public std::enable_shared_from_this<Gathering> {
 public:
  Gathering(const NcclLibrary& nccl, const gpu::Driver& driver, const CommunicatorFacts& facts,
            std::span<const std::byte> block, double seconds)
      : nccl_(nccl),
        driver_(driver),
        context_(facts.context),
        facts_(facts),
        block_(block.begin(), block.end()),
        deadline_(gpu::Deadline::in(seconds)) {}

  void start() {
    host::start_own_thread("contextune-join", [self = shared_from_this()] { self->run(); });
  }

  /// Waits until the thread is done, or the time is over: what was gathered by then counts.
  std::vector<std::byte> wait(std::string& error) {
    std::unique_lock lock(mutex_);
    while (!done_ && !deadline_.has_passed()) changed_.wait_for(lock, poll_interval * 10);
    if (blocks_.empty()) error = error_.empty() ? late : error_;
    return blocks_;
  }

 private:
  static constexpr const char* late =
      "not all ranks of the communicator joined in time; it must be neither split nor destroyed";

  void run() noexcept {
    std::string error;
    try {
      split();
      exchange();
    } catch (const std::exception& thrown) {
      error = thrown.what();
    } catch (...) {
      error = "joining failed";
    }
    end(error.empty());
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    done_ = true;
    changed_.notify_all();
  }

  void split() {
    const NcclConfig config;
    const gpu::CurrentContext current(driver_, context_);
    int result = nccl_.split(facts_.communicator, 0, facts_.rank, &child_, &config);
    // With one that does not block it has only begun, even where NCCL calls that a success. The
    // communicator is the program's again when the time is over.
    if (result == nccl_success && std::atomic_ref(child_).load() == nullptr)
      result = nccl_in_progress;
    result = settled(facts_.communicator, result);
    if (result == nccl_in_progress) {
      static_cast<void>(new std::shared_ptr<Gathering>(shared_from_this()));  // for child_
      child_lives_ = false;
      throw Error(late);
    }
    require(result, "ncclCommSplit");
    child_lives_ = std::atomic_ref(child_).load() != nullptr;
    if (!child_lives_) throw Error("ncclCommSplit made no communicator");
    if (deadline_.has_passed()) throw Error(late);
  }

  void exchange() {
    const std::size_t bytes = block_.size();
    const std::size_t total = bytes * static_cast<std::size_t>(facts_.ranks);
    gpu::OwnStream stream(driver_, context_);
    gpu::PinnedMemory host(driver_, context_);
    host.reserve(total);
    // In place: each rank's block is where all of them are in the end.
    DeviceBlocks device(driver_, context_, total);
    const CUdeviceptr mine = device.address() + bytes * static_cast<std::size_t>(facts_.rank);
    std::memcpy(host.data(), block_.data(), bytes);
    const auto host_address = reinterpret_cast<CUdeviceptr>(host.data());
    try {
      const gpu::CurrentContext current(driver_, context_);
      const gpu::RelaxedCapture relaxed(driver_);
      gpu::check(driver_, driver_.cuMemcpyAsync(mine, host_address, bytes, stream.handle()),
                 "copying to the GPU");
      const int result = nccl_.all_gather(reinterpret_cast<const void*>(mine),
                                          reinterpret_cast<void*>(device.address()), bytes,
                                          type_of_bytes, child_, stream.handle());
      require(settled(child_, result), "ncclAllGather");
      stream.wait(deadline_, "gathering");
      gpu::check(driver_,
                 driver_.cuMemcpyAsync(host_address, device.address(), total, stream.handle()),
                 "copying from the GPU");
      stream.wait(deadline_, "copying");
    } catch (...) {
      // Operations under way use the memory, and end with the communicator.
      abort();
      if (!ends(stream)) {
        device.abandon();
        host.abandon();
      }
      throw;
    }
    const auto* gathered = static_cast<const std::byte*>(host.data());
    const std::lock_guard lock(mutex_);
    blocks_.assign(gathered, gathered + total);
  }

  [[nodiscard]] bool ends(const gpu::OwnStream& stream) const noexcept {
    const gpu::CurrentContext current(driver_, context_);
    const gpu::RelaxedCapture relaxed(driver_);
    const auto until = gpu::Deadline::in(abort_seconds);
    while (driver_.cuStreamQuery(stream.handle()) == CUDA_ERROR_NOT_READY) {
      if (until.has_passed()) return false;
      std::this_thread::sleep_for(poll_interval);
    }
    return true;
  }

  // The peers may still be about to fetch what lies here, which finalize waits for.
  void end(bool well) noexcept {
    if (!child_lives_) return;
    if (!well || settled(child_, nccl_.finalize(child_)) != nccl_success) return abort();
    child_lives_ = false;
    (void)nccl_.destroy(child_);
  }

  void abort() noexcept {
    if (!std::exchange(child_lives_, false)) return;
    if (!facts_.shares_with_splits) (void)nccl_.abort(child_);
  }

  /// The result of a call that may only have begun; nccl_in_progress if it still is at the
  /// deadline.
  [[nodiscard]] int settled(void* communicator, int result) const noexcept {
    while (result == nccl_in_progress && !deadline_.has_passed()) {
      std::this_thread::sleep_for(poll_interval);
      int outcome = nccl_success;
      result = nccl_.get_async_error(communicator, &outcome);
      if (result == nccl_success) result = outcome;
    }
    return result;
  }

  void require(int result, const char* what) const {
    if (result == nccl_success) return;
    if (result == nccl_in_progress) throw Error(std::string(what) + " was not over in time");
    throw Error(std::string(what) + ": " + nccl_.text(result));
  }

  const NcclLibrary nccl_;
  const gpu::Driver& driver_;
  const CUcontext context_;
  const CommunicatorFacts facts_;
  const std::vector<std::byte> block_;
  const gpu::Deadline deadline_;
  void* child_ = nullptr;
  bool child_lives_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> blocks_;
  std::string error_;
  bool done_ = false;
};

}  // namespace

std::vector<std::byte> gather_blocks(const NcclLibrary& nccl, const gpu::Driver& driver,
                                     const CommunicatorFacts& facts,
                                     std::span<const std::byte> block, double seconds,
                                     std::string& error) {
  const auto gathering = std::make_shared<Gathering>(nccl, driver, facts, block, seconds);
  gathering->start();
  return gathering->wait(error);
}

}  // namespace contextune::intercept

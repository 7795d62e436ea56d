#include "gpu/clock/clock_monitor.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>

#include "gpu/clock/nvml_library.hpp"
#include "gpu/driver/process_exit.hpp"
#include "host/own_thread.hpp"

namespace contextune::gpu {
namespace {

constexpr auto period = std::chrono::milliseconds(5);

/// The state that the monitor and its thread share; goes with the last of them, so that neither
/// waits.
struct Watch {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<ReadClock()> connect;
  bool wanted = false;
  bool running = false;  // a thread is there, or about to end
  bool fresh = false;    // `worst` has readings since the last read()
  ClockReading worst;
  ClockReading latest;
};

// The thread must not call NVML once exit() tears libraries down. It is not waited for.
void notice_exit() {
  static std::once_flag once;
  std::call_once(once, watch_exit);
}

void add(Watch& watch, const ClockReading& reading) {
  watch.latest = reading;
  if (!watch.fresh) {
    watch.worst = reading;
    watch.fresh = true;
    return;
  }
  watch.worst.sm_hz = std::min(watch.worst.sm_hz, reading.sm_hz);
  watch.worst.throttled = watch.worst.throttled || reading.throttled;
}

void run(const std::shared_ptr<Watch>& watch) {
  ReadClock read_clock;
  bool connected = false;
  std::unique_lock lock(watch->mutex);
  while (watch->wanted && !is_exiting()) {
    lock.unlock();
    std::optional<ClockReading> reading;
    if (!connected) {
      read_clock = watch->connect();
      connected = true;
    }
    if (read_clock) reading = read_clock();
    lock.lock();
    if (reading) add(*watch, *reading);
    if (!read_clock) break;
    watch->changed.wait_for(lock, period, [&] { return !watch->wanted; });
  }
  watch->running = false;
}

class WatchingMonitor final : public ClockMonitor {
 public:
  explicit WatchingMonitor(std::function<ReadClock()> connect)
      : watch_(std::make_shared<Watch>()), process_(getpid()) {
    watch_->connect = std::move(connect);
  }
  ~WatchingMonitor() override { WatchingMonitor::watch(false); }
  WatchingMonitor(const WatchingMonitor&) = delete;
  WatchingMonitor& operator=(const WatchingMonitor&) = delete;

  void watch(bool on) override {
    if (getpid() != process_)
      return;  // a forked child has neither the thread nor, perhaps, the lock
    const std::lock_guard lock(watch_->mutex);
    watch_->wanted = on;
    if (!on) {
      watch_->changed.notify_all();
      return;
    }
    if (watch_->running) return;
    watch_->fresh = false;
    watch_->running = start();
  }

  ClockReading read() override {
    if (getpid() != process_) return {};
    const std::lock_guard lock(watch_->mutex);
    const ClockReading reading = watch_->fresh ? watch_->worst : watch_->latest;
    watch_->fresh = false;
    return reading;
  }

 private:
  [[nodiscard]] bool start() {
    notice_exit();
    try {
      host::start_own_thread("contextune-clk", [watch = watch_] {
        try {
          run(watch);
        } catch (...) {  // no memory: no readings
        }
      });
    } catch (const std::exception&) {
      return false;
    }
    return true;
  }

  std::shared_ptr<Watch> watch_;
  pid_t process_;
};

class NoMonitor final : public ClockMonitor {
 public:
  void watch(bool) override {}
  ClockReading read() override { return {}; }
};

ReadClock connect_nvml(Dlsym find_symbol, const std::string& pci_bus_id) {
  const auto nvml = NvmlLibrary::open(find_symbol);
  if (!nvml) return {};
  NvmlLibrary::Device device = nvml->device(pci_bus_id);
  if (device == nullptr) return {};
  return [nvml = *nvml, device]() -> std::optional<ClockReading> {
    const std::uint64_t reasons = nvml.clock_reasons(device);
    if ((reasons & NvmlLibrary::idle) != 0) return std::nullopt;
    const double hz = nvml.sm_clock(device);
    if (hz == 0) return std::nullopt;
    return ClockReading{hz, (reasons & NvmlLibrary::throttling) != 0};
  };
}

}  // namespace

std::unique_ptr<ClockMonitor> make_clock_monitor(std::function<ReadClock()> connect) {
  return std::make_unique<WatchingMonitor>(std::move(connect));
}

std::unique_ptr<ClockMonitor> make_clock_monitor(const Driver& driver, CUdevice device) {
  std::array<char, 64> bus_id{};
  if (driver.simulated || driver.cuDeviceGetPCIBusId == nullptr ||
      driver.cuDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()) - 1, device) !=
          CUDA_SUCCESS) {
    return std::make_unique<NoMonitor>();
  }
  return make_clock_monitor([find_symbol = driver.find_symbol, id = std::string(bus_id.data())] {
    return connect_nvml(find_symbol, id);
  });
}

}  // namespace contextune::gpu

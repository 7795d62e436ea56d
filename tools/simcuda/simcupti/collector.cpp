#include "collector.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "driver_link.hpp"

namespace simcupti {

namespace {

// Measured on a GPU: the first enabling, a flush, and what a launch pays while CUPTI is on.
constexpr double first_enable_time = 14.7e-3;
constexpr double flush_time = 33e-6;
constexpr double launch_overhead = 2.5e-6;
constexpr auto first_call = std::chrono::milliseconds(20);  // where its end is simulated

thread_local int own_deliveries = 0;  // a callback of the client may finalize

void on_activity(const simcuda_activity* activity) {
  Collector::instance().take_activity(*activity);
}
void on_api(int enter, std::uint32_t cbid, const char* name, const void* parameters, int result,
            void* context, std::uint32_t context_id, std::uint32_t correlation) {
  Collector::instance().take_api_call(enter, cbid, name, parameters, result, context, context_id,
                                      correlation);
}

bool supported(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:  // its copies are all of the other kind
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:  // there is no runtime: no records
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return true;
    default:
      return false;
  }
}

}  // namespace

Collector::Collector()
    : lateness_([] {
        const char* const text = std::getenv("SIMCUDA_LATE_RECORDS");
        return text == nullptr ? 0.0 : std::strtod(text, nullptr);
      }()) {}

Collector& Collector::instance() {
  static auto* const collector = new Collector;
  return *collector;
}

Collector& Collector::called() {
  static std::atomic<bool> ended{false};
  static const bool ends = [] {
    const char* const text = std::getenv("SIMCUDA_EXIT");
    if (text == nullptr || *text == '\0' || std::atexit([] { ended = true; }) != 0) return false;
    std::this_thread::sleep_for(first_call);
    return true;
  }();
  if (ends && ended.exchange(false))
    std::fputs("simcupti: called after exit() has ended it\n", stderr);
  return instance();
}

CUptiResult Collector::set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                     CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(mutex_);
  request_ = request;
  complete_ = complete;
  return CUPTI_SUCCESS;
}

// Tells the driver what to report. Called without the lock: the driver has one of its own, and
// holds it when it reports.
void Collector::listen() {
  static const simcuda_listener activities{&on_activity, nullptr, launch_overhead};
  static const simcuda_listener activities_and_calls{&on_activity, &on_api, launch_overhead};
  const simcuda_listener* listener = &activities;
  {
    const std::lock_guard lock(mutex_);
    if (subscriber_callback_ != nullptr || kinds_.test(CUPTI_ACTIVITY_KIND_DRIVER))
      listener = &activities_and_calls;
    else if (kinds_.none())
      listener = nullptr;
  }
  DriverLink::instance().listen(listener);
}

CUptiResult Collector::enable(CUpti_ActivityKind kind) {
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (!supported(kind)) return CUPTI_ERROR_INVALID_KIND;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    kinds_.set(static_cast<std::size_t>(kind));
    // The switches of single entry points work only on top of the switch for all (CUPTI 13.0).
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER) driver_api_.set();
    first = !std::exchange(opened_, true);
    if (!working_) {
      try {
        std::thread([this] { work(); }).detach();
      } catch (const std::system_error&) {
        return CUPTI_ERROR_OUT_OF_MEMORY;
      }
      working_ = true;
    }
  }
  if (first) DriverLink::instance().host_work(first_enable_time);
  listen();
  return CUPTI_SUCCESS;
}

CUptiResult Collector::disable(CUpti_ActivityKind kind) {
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (!supported(kind)) return CUPTI_ERROR_INVALID_KIND;
  {
    const std::lock_guard lock(mutex_);
    kinds_.reset(static_cast<std::size_t>(kind));
  }
  listen();
  return CUPTI_SUCCESS;
}

void Collector::select_driver_api(std::uint32_t cbid, bool on) {
  const std::lock_guard lock(mutex_);
  if (cbid < cbid_count) driver_api_.set(cbid, on);
}

void Collector::add(const Record& record) {
  records_.push_back(record);
  record_bytes_ += record.size;
}

void Collector::take_activity(const simcuda_activity& activity) {
  const std::lock_guard lock(mutex_);
  const bool concurrent = kinds_.test(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const bool wanted = (activity.kind == SIMCUDA_KERNEL &&
                       (concurrent || kinds_.test(CUPTI_ACTIVITY_KIND_KERNEL))) ||
                      (activity.kind == SIMCUDA_COPY && kinds_.test(CUPTI_ACTIVITY_KIND_MEMCPY)) ||
                      (activity.kind == SIMCUDA_SET && kinds_.test(CUPTI_ACTIVITY_KIND_MEMSET));
  if (!wanted) return;
  if (kinds_.test(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) add_external(activity);
  if (activity.kind == SIMCUDA_KERNEL)
    add(kernel_record(activity, concurrent));
  else if (activity.kind == SIMCUDA_COPY)
    add(copy_record(activity));
  else
    add(set_record(activity));
  if (record_bytes_ >= wake_bytes_) wake_.notify_one();
}

void Collector::take_api_call(int enter, std::uint32_t cbid, const char* name,
                              const void* parameters, int result, void* context,
                              std::uint32_t context_id, std::uint32_t correlation) {
  static thread_local double entered = 0;
  static thread_local std::uint64_t correlation_data = 0;
  const double now = DriverLink::instance().host_time();
  CUpti_CallbackFunc callback = nullptr;
  void* data = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const bool selected = cbid < cbid_count && driver_api_.test(cbid);
    if (enter != 0)
      entered = now;
    else if (kinds_.test(CUPTI_ACTIVITY_KIND_DRIVER) && selected)
      add(api_record(cbid, entered, now, correlation, static_cast<std::uint32_t>(result)));
    if (cbid < cbid_count && callbacks_.test(cbid)) {
      callback = subscriber_callback_;
      data = subscriber_data_;
    }
  }
  if (callback == nullptr) return;
  CUresult status = static_cast<CUresult>(result);
  CUpti_CallbackData info{};
  info.callbackSite = enter != 0 ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  info.functionName = name;
  info.functionParams = parameters;
  info.functionReturnValue = enter != 0 ? nullptr : &status;
  info.context = static_cast<CUcontext>(context);
  info.contextUid = context_id;
  info.correlationData = &correlation_data;
  info.correlationId = correlation;
  callback(data, CUPTI_CB_DOMAIN_DRIVER_API, cbid, &info);
}

CUptiResult Collector::flush(bool forced) {
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  DriverLink::instance().host_work(flush_time);
  const double now = DriverLink::instance().host_time();
  deliver(now, forced);
  return CUPTI_SUCCESS;
}

std::vector<Record> Collector::take_complete(double now, bool all) {
  std::vector<Record> complete;
  std::deque<Record> rest;
  record_bytes_ = 0;
  for (const Record& record : records_) {
    if (all || record.complete + lateness_ <= now) {
      complete.push_back(record);
    } else {
      rest.push_back(record);
      record_bytes_ += record.size;
    }
  }
  records_.swap(rest);
  wake_bytes_ = record_bytes_ + buffer_bytes_;
  return complete;
}

void Collector::deliver(double now, bool all) {
  std::vector<Record> records;
  {
    const std::lock_guard lock(mutex_);
    records = take_complete(now, all);
    ++deliveries_;
  }
  ++own_deliveries;
  hand_over(records);
  --own_deliveries;
  const std::lock_guard lock(mutex_);
  --deliveries_;
  delivered_.notify_all();
}

void Collector::hand_over(const std::vector<Record>& records) {
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  {
    const std::lock_guard lock(mutex_);
    request = request_;
    complete = complete_;
  }
  std::size_t next = 0;
  while (next < records.size()) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t limit = 0;
    if (request != nullptr) request(&buffer, &size, &limit);
    if (buffer == nullptr || size < records[next].size) {
      const std::lock_guard lock(mutex_);
      dropped_count_ += records.size() - next;
      return;
    }
    std::size_t used = 0;
    std::size_t count = 0;
    while (next < records.size() && used + records[next].size <= size &&
           (limit == 0 || count < limit)) {
      std::memcpy(buffer + used, records[next].bytes.data(), records[next].size);
      used += records[next].size;
      ++next;
      ++count;
    }
    {
      const std::lock_guard lock(mutex_);
      buffer_bytes_ = size;
    }
    complete(nullptr, 0, buffer, size, used);
  }
}

void Collector::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const auto full = [this] { return record_bytes_ >= wake_bytes_; };
      if (flush_period_ms_ == 0) wake_.wait(lock, [&] { return full() || flush_period_ms_ > 0; });
      if (flush_period_ms_ > 0)
        wake_.wait_for(lock, std::chrono::milliseconds(flush_period_ms_), full);
    }
    deliver(DriverLink::instance().host_time(), false);
  }
}

void Collector::set_flush_period(std::uint32_t milliseconds) {
  const std::lock_guard lock(mutex_);
  flush_period_ms_ = milliseconds;
  wake_.notify_one();
}

std::size_t Collector::take_dropped_count() {
  const std::lock_guard lock(mutex_);
  return std::exchange(dropped_count_, 0);
}

void Collector::finalize() {
  {
    std::unique_lock lock(mutex_);
    kinds_.reset();
    callbacks_.reset();
    subscriber_callback_ = nullptr;
    request_ = nullptr;
    complete_ = nullptr;
    records_.clear();
    record_bytes_ = 0;
    flush_period_ms_ = 0;
    opened_ = false;
    driver_api_.reset();
    delivered_.wait(lock, [this] { return deliveries_ == own_deliveries; });
    dropped_count_ = 0;
  }
  if (DriverLink::instance().usable()) listen();
}

}  // namespace simcupti

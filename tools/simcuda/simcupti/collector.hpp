#pragma once

#include <simcuda/simcuda.h>

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "cupti_api.hpp"
#include "records.hpp"

namespace simcupti {

/// Takes in what the simulated driver reports and hands it on in the buffers of the client.
/// Thread-safe. The client's callbacks run without any lock held: on the thread that flushes, or on
/// a thread of the collector's own when a buffer's worth has come together or the flush period is
/// over. Never destroyed.
class Collector {
 public:
  static Collector& instance();
  /// The same for a call of the client. Where SIMCUDA_EXIT is set, the first one registers a
  /// handler and takes 20 ms, and one that begins after exit() has come to that handler, or is the
  /// first and under way then, is told on the standard error: the real CUPTI may crash there.
  static Collector& called();

  CUptiResult set_callbacks(CUpti_BuffersCallbackRequestFunc request,
                            CUpti_BuffersCallbackCompleteFunc complete);
  CUptiResult enable(CUpti_ActivityKind kind);
  CUptiResult disable(CUpti_ActivityKind kind);
  void select_driver_api(std::uint32_t cbid, bool on);
  /// Hands on what is complete by the host's clock, or, `forced`, all there is.
  CUptiResult flush(bool forced);
  void set_flush_period(std::uint32_t milliseconds);
  [[nodiscard]] std::size_t take_dropped_count();
  /// Forgets everything: kinds, callbacks, records.
  void finalize();

  CUptiResult subscribe(CUpti_CallbackFunc callback, void* user_data,
                        CUpti_SubscriberHandle* subscriber);
  CUptiResult unsubscribe(CUpti_SubscriberHandle subscriber);
  CUptiResult enable_callback(bool on, CUpti_SubscriberHandle subscriber,
                              CUpti_CallbackDomain domain, std::uint32_t cbid, bool whole_domain);

  void push_external(CUpti_ExternalCorrelationKind kind, std::uint64_t id);
  CUptiResult pop_external(CUpti_ExternalCorrelationKind kind, std::uint64_t* last);

  void take_activity(const simcuda_activity& activity);
  void take_api_call(int enter, std::uint32_t cbid, const char* name, const void* parameters,
                     int result, void* context, std::uint32_t context_id,
                     std::uint32_t correlation);

 private:
  static constexpr std::size_t cbid_count = 1024;

  Collector();
  void listen();
  void add(const Record& record);
  void add_external(const simcuda_activity& activity);
  [[nodiscard]] std::vector<Record> take_complete(double now, bool all);
  // Hands the complete records to the client; finalize() returns when none is in its hands.
  void deliver(double now, bool all);
  void hand_over(const std::vector<Record>& records);
  [[noreturn]] void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable delivered_;
  int deliveries_ = 0;  // under way
  CUpti_BuffersCallbackRequestFunc request_ = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete_ = nullptr;
  const double lateness_;  // seconds of the host's clock for which a record is held back
  std::bitset<128> kinds_;
  std::bitset<cbid_count> driver_api_;
  std::deque<Record> records_;
  std::size_t record_bytes_ = 0;
  std::size_t buffer_bytes_ = std::size_t{1} << 20;  // of the client's last buffer
  std::size_t dropped_count_ = 0;
  std::uint32_t flush_period_ms_ = 0;
  std::size_t wake_bytes_ = buffer_bytes_;  // records from which the thread is needed
  bool working_ = false;
  bool opened_ = false;
  CUpti_CallbackFunc subscriber_callback_ = nullptr;
  void* subscriber_data_ = nullptr;
  std::bitset<cbid_count> callbacks_;
};

}  // namespace simcupti

#include "intercept/replay/replayer.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <contextune/error.hpp>

#include "intercept/host/clock.hpp"
#include "intercept/nccl/nccl_library.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {
namespace {

// Most replays are over sooner; then the thread sleeps between two looks.
constexpr double spin_seconds = 200e-6;
constexpr auto nap = std::chrono::microseconds(50);
constexpr double long_seconds = 0.1;

}  // namespace

Replayer::Replayer(LaunchRegion& region, const RegionServices& services, Search& search,
                   SiteTable& table, CUcontext context, Recording recording,
                   const ResultTolerance& tolerance, Patience patience)
    : region_(region),
      services_(services),
      search_(search),
      table_(table),
      trial_(region, services, table),
      recording_(std::move(recording)),
      tolerance_(tolerance),
      patience_(patience),
      pinned_(services.driver, context),
      host_(recording_.operations.size()),
      results_(recording_.operations.size()) {
  const auto make = [&](CUevent& event) {
    check(services_.driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event");
  };
  events_.resize(recording_.num_events);
  try {
    make(done_);
    for (CUevent& event : events_) make(event);
    lay_out_host_memory();
  } catch (...) {
    destroy_events();
    throw;
  }
}

Replayer::~Replayer() {
  destroy_events();
}

void Replayer::destroy_events() noexcept {
  if (done_ != nullptr) (void)services_.driver.cuEventDestroy(done_);
  for (CUevent event : events_)
    if (event != nullptr) (void)services_.driver.cuEventDestroy(event);
}

void Replayer::lay_out_host_memory() {
  constexpr std::size_t alignment = 256;
  std::size_t sizes[2] = {0, 0};  // pageable, pinned
  std::vector<std::size_t> offsets(recording_.operations.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto& side = recording_.operations[i].host;
    if (!side) continue;
    std::size_t& size = sizes[side->pinned];
    offsets[i] = size;
    size += (side->size_bytes + alignment - 1) / alignment * alignment;
  }
  pageable_.resize(sizes[0]);
  if (sizes[1] != 0) pinned_.reserve(sizes[1]);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    auto& side = recording_.operations[i].host;
    if (!side) continue;
    host_[i] =
        (side->pinned ? static_cast<std::byte*>(pinned_.data()) : pageable_.data()) + offsets[i];
    if (!side->writes) std::memcpy(host_[i], side->bytes.data(), side->size_bytes);
    side->bytes = {};  // there may be as much of it as the program has to spare
  }
}

void Replayer::meet(const Site& site) {
  if (std::find(sites_.begin(), sites_.end(), &site) == sites_.end()) sites_.push_back(&site);
}

void Replayer::run(const Choice& choice) {
  const double begin = now_seconds();
  tries_ = false;
  const Choice noted = [&](const Site& site) {
    meet(site);
    const std::uint32_t config = choice(site);
    tries_ = tries_ || (config != 0 && !site.pinned);
    return config;
  };
  issue(&noted);
  wait_for_all();
  if (!tries_) defaults_seconds_ = std::max(defaults_seconds_, now_seconds() - begin);
  tries_ = false;
}

void Replayer::run_pass(const std::function<void()>& issued) {
  tries_ = std::any_of(sites_.begin(), sites_.end(),
                       [](const Site* site) { return site->planned() != 0 && !site->pinned; });
  issue(nullptr);
  issued();
  wait_for_all();
  tries_ = false;
}

void Replayer::issue(const Choice* choice) {
  std::exception_ptr failure;
  for (std::size_t i = 0; i < recording_.operations.size(); ++i) {
    try {
      issue(i, choice);
    } catch (const StuckReplay&) {
      throw;
    } catch (const std::exception&) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void Replayer::issue(std::size_t number, const Choice* choice) {
  const Operation& operation = recording_.operations[number];
  switch (operation.kind) {
    case Operation::Kind::Launch:
      return issue_launch(*operation.launch, choice);
    case Operation::Kind::Graph:
      return issue_graph(operation, choice);
    case Operation::Kind::Call:
      return issue_call(operation, host_[number]);
    case Operation::Kind::Record:
      return check(services_.driver.cuEventRecord(events_[operation.event], operation.stream),
                   "recording an event");
    case Operation::Kind::Wait:
      return check(
          services_.driver.cuStreamWaitEvent(operation.stream, events_[operation.event], 0),
          "having a stream wait for an event");
    case Operation::Kind::Synchronise:
      return operation.stream == nullptr ? wait_for_all() : wait_for(operation.stream);
    case Operation::Kind::Collective:
      return issue_collective(*operation.collective, choice == nullptr);
  }
}

void Replayer::issue_launch(const RecordedLaunch& recorded, const Choice* choice) {
  const contextune_launch& call = recorded.call();
  const Launch launch = region_.launch_of(call);
  const SiteTable::Found found = table_.find(launch);
  const Site* site = found.resolved == nullptr ? nullptr : &found.resolved->site();
  CUresult result = CUDA_SUCCESS;
  if (choice != nullptr) {
    const std::uint32_t config = site == nullptr ? 0 : (*choice)(*site);
    result = trial_.settled(call, launch, found, config, nullptr);
  } else {
    const Watch watch = search_.watch();
    const std::uint32_t config = site == nullptr ? 0 : site->planned();
    result = watch == Watch::Nothing ? trial_.settled(call, launch, found, config, nullptr)
                                     : trial_.watched(call, launch, found, config, search_, watch);
  }
  check(result, "a launch");
}

void Replayer::issue_graph(const Operation& operation, const Choice* choice) {
  const GraphCall call(operation.fn, operation.graph, operation.stream);
  std::vector<const Site*> failed;
  check(choice == nullptr ? region_.launch_graph(call, true)
                          : region_.launch_graph_with(call, *choice, failed),
        "the launch of a graph");
}

void Replayer::issue_call(const Operation& operation, const std::byte* host) {
  auto values = operation.arguments;
  if (host != nullptr) values[operation.host->argument] = reinterpret_cast<std::uint64_t>(host);
  void* addresses[most_recorded_arguments];
  for (std::size_t i = 0; i < values.size(); ++i) addresses[i] = &values[i];
  check(driver_call(operation.fn).make(services_.frontend->real(operation.fn), addresses),
        services_.frontend->name(operation.fn));
}

void Replayer::issue_collective(const contextune_nccl_call& call, bool counts) {
  // Its launches are the region's, which the thread has left.
  ThreadState& thread = this_thread();
  const bool is_open = thread.open({RegionEntries::replay_mark, &region_, counts});
  const int result = services_.frontend->nccl_repeat(&call);
  (void)thread.close(RegionEntries::replay_mark, is_open ? &region_ : nullptr);
  // The other ranks have made it, so this one's communicator is out of step with theirs for good.
  if (result != nccl_success)
    throw StuckReplay("NCCL answered a repeated call with " + std::to_string(result));
}

void Replayer::wait_for(CUstream stream) {
  check(services_.driver.cuEventRecord(done_, stream), "recording an event");
  const double begin = now_seconds();
  const double most = tries_ ? std::min(patience_.seconds, patience_.trial + 2 * defaults_seconds_)
                             : patience_.seconds;
  for (;;) {
    const CUresult result = services_.driver.cuEventQuery(done_);
    if (result == CUDA_SUCCESS) return;
    if (result != CUDA_ERROR_NOT_READY) check(result, "waiting for a replay");
    const double waited = now_seconds() - begin;
    if (waited > most) {
      throw StuckReplay("the GPU was still at work on a replay after " +
                        std::to_string(static_cast<int>(waited)) + " s");
    }
    if (waited > spin_seconds) std::this_thread::sleep_for(nap);
    if (waited > long_seconds) services_.gate.let_fatal_signals_through();
  }
}

void Replayer::wait_for_all() {
  for (CUstream stream : recording_.streams) wait_for(stream);
}

bool Replayer::host_results_agree() {
  return agree_on_host(results_);
}

bool Replayer::host_agrees_with_reference() {
  reference_.resize(results_.size());
  return agree_on_host(reference_);
}

bool Replayer::agree_on_host(HostResults& with) {
  bool agree = true;
  for (std::size_t i = 0; i < with.size(); ++i) {
    const auto& side = recording_.operations[i].host;
    if (!side || !side->writes) continue;
    if (with[i].empty()) {
      with[i].assign(host_[i], host_[i] + side->size_bytes);
    } else {
      agree = agree && tolerance_.agree(with[i], {host_[i], side->size_bytes});
    }
  }
  return agree;
}

void Replayer::check(CUresult result, const char* what) const {
  if (result == CUDA_SUCCESS) return;
  const std::string text = std::string(what) + ": " + gpu::describe(services_.driver, result);
  if (is_sticky_error(result)) throw StuckReplay(text);
  throw Error(text);
}

}  // namespace contextune::intercept

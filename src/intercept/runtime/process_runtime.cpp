#include "intercept/runtime/process_runtime.hpp"

#include <algorithm>
#include <exception>

#include <contextune/error.hpp>

#include "environment/variables.hpp"
#include "gpu/clock/activity_timer.hpp"
#include "gpu/clock/clock_monitor.hpp"
#include "gpu/clock/span_timer.hpp"
#include "gpu/driver/context_idle.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/environment_options.hpp"
#include "intercept/host/link_fault.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/program_name.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/nccl/nccl_caller.hpp"
#include "intercept/replay/repetition_check.hpp"
#include "log/events.hpp"
#include "log/rank_of_environment.hpp"
#include "store/cache_folder.hpp"
#include "store/file_store.hpp"

namespace contextune::intercept {
namespace {

gpu::Driver driver_of(const contextune_frontend* frontend) {
  return frontend == nullptr ? gpu::open_driver()
                             : gpu::load_driver(frontend->libcuda, frontend->real_dlsym);
}

bool has_several_devices(const gpu::Driver& driver) noexcept {
  int count = 0;
  return driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count != 1;
}

std::string store_folder(const Options& options) {
  // Those of a program that runs for another user name no folder of ours.
  const auto text = [](const char* name) {
    const char* const value = trusted_variable(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  return store::cache_folder(options.cache_dir, text("XDG_CACHE_HOME"), text("HOME"));
}

std::unique_ptr<Store> open_store(const Options& options, EventLog& log) {
  return std::make_unique<store::FileStore>(
      store_folder(options), [&log](FallbackReason reason, const std::string& sentence) {
        log.fallback(reason, {}, {}, sentence);
      });
}

log::RankLog::Settings log_settings(const Options& options) {
  const char* run = variable("CONTEXTUNE_RUN_ID");
  return {options.log_dir, log::rank_of_environment(), run == nullptr ? "" : run,
          options.log_level};
}

/// Whether kernels may be launched in other ways than chained and gathered.
bool has_knobs(const Options& options) {
  return !options.space.empty() || options.auto_knobs.attributes || options.discover ||
         options.mode == Mode::Replay;
}

}  // namespace

ProcessRuntime::ProcessRuntime(const contextune_frontend* frontend, const Options& options,
                               const std::vector<std::string>& faults)
    : frontend_(frontend),
      options_(options),
      driver_(driver_of(frontend)),
      log_(log_settings(options)),
      memory_(frontend == nullptr ? nullptr : frontend->missed, &is_called_by_nccl),
      launcher_(frontend),
      filter_(options.only, options.exclude, log_),
      kernels_(driver_, filter_, log_),
      module_variables_(driver_),
      rules_(driver_, program_, options.auto_knobs.attributes),
      builds_(driver_, &module_variables_),
      forced_(options.force, log_),
      measurement_(options.timer, make_timers(), log_),
      captures_(driver_),
      graphs_(driver_, frontend, stopped_),
      ranks_(log_, options.distributed,
             [this](std::uint32_t rank, std::uint32_t num_ranks) { is_rank(rank, num_ranks); }),
      store_(
          open_store(options, log_), store_folder(options), options, log_,
          [this] { return environment_.here(); },
          [this](auto ranks) { return ranks_.is_first_on_host(ranks); }),
      recorder_(frontend, driver_, launcher_, kernels_, graphs_, memory_, captures_,
                has_several_devices(driver_)),
      gate_(frontend),
      block_kernels_(driver_),
      open_(frontend == nullptr ? nullptr : frontend->armed),
      services_{driver_,
                launcher_,
                kernels_,
                rules_,
                builds_,
                forced_,
                log_,
                measurement_,
                open_,
                captures_,
                memory_,
                contexts_,
                module_variables_,
                recorder_,
                gate_,
                block_kernels_,
                frontend,
                graphs_,
                ranks_,
                store_,
                stopped_,
                [this](CUresult result) { broke(result); },
                has_several_devices(driver_)},
      submission_(services_, filter_, options_),
      regions_(options_, services_),
      nccl_(services_, regions_),
      kernel_marks_(kernels_) {
  if (driver_.simulated) log_.set_simulated();
  write_start(log::ranks_of_environment());
  for (const std::string& one : faults) log_.fault(one);
  rules_.start_collectives(options, filter_, log_);
  rules_.load(options.space, device_facts(), log_);
  process_collectives().prepare(rules_.collectives(), &memory_, &gate_);
  // A copy to the host waits for the GPU as well.
  store_.set_on_probation([this](bool begins) { gate_.show_copies(begins); });
  collective_calls().set_decider(&process_collectives());
  std::vector<std::string> marked;
  if (frontend_ != nullptr) {
    start_marks();
    for (const RegionMark& mark : regions_.marks()) marked.push_back(mark.name);
  } else {
    const LinkFault fault = find_link_fault();
    log_.fallback(fault.reason, {}, {}, fault.sentence);
  }
  // From the first launch of a marked kernel on, all others are in its region.
  submission_.start(regions_.has_mark(RegionMark::Kind::Auto) && kernel_marks_.empty());
  nccl_.find_stretch(options_, [this] { submission_.tuning().hold_off(); });
  if (!options_.discover) store_.prepare(marked);
  log_.lines().flush();  // whatever happens now, it says what was begun with
  submission_.tuning().spend(now_seconds() - began_);
}

Measurement::Timers ProcessRuntime::make_timers() {
  Measurement::Timers timers;
  auto cupti = std::make_unique<gpu::ActivityTimer>(driver_);
  auto events = std::make_unique<gpu::EventTimer>(driver_);
  events_ = events.get();
  activity_ = cupti.get();
  timers.presence.release = [timer = cupti.get()] { return timer->release(); };
  timers.presence.delay_seconds = driver_.simulated ? 0 : 0.5;  // the simulated one opens at once
  timers.presence.gpu_is_idle = [this] { return is_idle(); };
  timers.presence.nccl_threads = [this] { return nccl_.thread_ids(); };
  timers.cupti = std::move(cupti);
  timers.events = std::move(events);
  CUdevice device = 0;
  if (driver_.cuDeviceGet(&device, 0) == CUDA_SUCCESS) {
    timers.clock = gpu::make_clock_monitor(driver_, device);
  }
  timers.make_span_timer = [this] { return std::make_unique<gpu::EventSpanTimer>(driver_); };
  return timers;
}

bool ProcessRuntime::is_idle() {
  if (captures_.any()) return false;  // to ask would end them
  auto contexts = contexts_.all();
  if (contexts && contexts->empty()) contexts->push_back(gpu::context_of(driver_, nullptr));
  return contexts && std::all_of(contexts->begin(), contexts->end(),
                                 [&](CUcontext context) { return gpu::is_idle(driver_, context); });
}

DeviceFacts ProcessRuntime::device_facts() noexcept {
  try {
    const auto current = gpu::current_device(driver_);
    int count = 0;
    if (!current && (driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0)) return {};
    return kernels_.facts_of(current.value_or(0));
  } catch (const std::exception&) {
    return {};
  }
}

void ProcessRuntime::is_rank(std::uint32_t rank, std::uint32_t num_ranks) noexcept {
  if (log::ranks_of_environment() > 1) return;  // its file has the name that the launcher gave
  if (!regions_.all().empty()) return;          // what is said of one region stands in one file
  try {
    log_.lines().become(static_cast<int>(rank));
    write_start(num_ranks);
  } catch (const std::exception&) {
    // No memory for a line.
  }
}

void ProcessRuntime::write_start(std::uint32_t num_ranks) {
  const DeviceFacts facts = device_facts();
  log::StartEvent event;
  event.program = program_name();
  event.gpu = facts.name;
  event.compute_capability = std::to_string(facts.compute_capability / 10) + "." +
                             std::to_string(facts.compute_capability % 10);
  event.num_sms = facts.num_sms;
  event.driver =
      std::to_string(driver_.version / 1000) + "." + std::to_string(driver_.version % 1000 / 10);
  event.simulated = driver_.simulated;
  event.mode = options_.mode;
  event.regions = options_.region;
  event.timer = measurement_.timer_name();
  event.world_size = num_ranks;
  log::write_start(log_.lines(), event);
}

void ProcessRuntime::start_marks() {
  regions_.read_marks();
  for (const RegionMark& mark : regions_.marks()) {
    if (mark.kind == RegionMark::Kind::Auto && has_knobs(options_)) begin_process(mark);
    if (mark.kind == RegionMark::Kind::Process) {
      begin_process(mark);
      if (options_.mode == Mode::Replay) {
        log_.fallback(FallbackReason::NotRepeatable, mark.name, {},
                      "The region `process` has no visits that could be recorded, so it is tuned "
                      "live; mark a stretch that the program goes through.");
      }
    }
    if (mark.kind == RegionMark::Kind::Kernel) kernel_marks_.add(mark);
  }
  graphs_are_regions_ = regions_.has_mark(RegionMark::Kind::Graph);
  if (!kernel_marks_.empty()) open_.watch_always();
}

void ProcessRuntime::begin_process(const RegionMark& mark) {
  is_one_region_ = true;
  open_.set_background(regions_.of_mark(mark));
}

void ProcessRuntime::declare(std::shared_ptr<KernelRule> rule) {
  rules_.declare(std::move(rule));
  for (const RegionMark& mark : regions_.marks()) {
    if (mark.kind == RegionMark::Kind::Auto && !is_one_region_) begin_process(mark);
  }
}

std::unique_ptr<RepetitionCheck> ProcessRuntime::check_repetition() {
  return std::make_unique<RepetitionCheck>(services_, options_);
}

Options ProcessRuntime::options_over(const Options& author) const {
  std::vector<std::string> said_already;
  return options_from_environment(author, said_already);
}

Region& ProcessRuntime::region(std::string_view name, const Options& author, const StoredAs& as) {
  if (LaunchRegion* const known = regions_.find(name)) return *known;
  Options options = options_over(author);
  options.mode = author.mode;  // the author knows whether the body may run again
  return regions_.find_or_make(std::string(name), options, ProcessRegions::Kind::Marked, as);
}

Region* ProcessRuntime::current_region() noexcept {
  ThreadState& thread = this_thread();
  return thread.region != nullptr ? thread.region : open_.only();
}

bool ProcessRuntime::is_in_region() noexcept {
  if (this_thread().region != nullptr) return true;
  const LaunchRegion* const only = open_.only();
  return only != nullptr && only->entries().is_in_process();
}

bool ProcessRuntime::is_current(CUcontext context) const noexcept {
  if (context == nullptr) return true;
  CUcontext current = nullptr;
  (void)driver_.cuCtxGetCurrent(&current);
  return current == context;
}

CUresult ProcessRuntime::launch(const contextune_launch& call) noexcept {
  ThreadState& thread = thread_of(call);
  if (LaunchRegion* const found = nccl_.found_region();
      found != nullptr && ProcessCollectives::is_inside() && thread.region == nullptr &&
      thread.call == nullptr && !thread.collectives.pass_launches() && !recorder_.active()) {
    return launch_in_found(call, *found);
  }
  if (submission_.tuning().watches()) {
    if (thread.region == nullptr && open_.only() == nullptr && kernel_marks_.empty() &&
        thread.call == nullptr && !thread.collectives.pass_launches() && !recorder_.active()) {
      return after_launch(submission_.tuning().launch(call, thread));
    }
    if (submission_.submitter().holds()) submission_.submitter().hand_over();
    if (submission_.tuning().is_pinned()) {
      if (const auto* region = thread.region != nullptr ? thread.region : open_.only())
        submission_.say_pin_does_not_act(*region);
    }
  }
  if (thread.collectives.pass_launches()) return launcher_.as_written(call);
  const LaunchRegion* region = thread.region != nullptr ? thread.region : open_.only();
  if (const SettledLaunch* known = thread.settled.find(call, region);
      known != nullptr && thread.call == nullptr && is_current(known->context)) {
    if (known->launch == nullptr) return after_launch(launcher_.as_written(call));
    const CUresult result = known->issue(call);
    // A config that cannot be launched any more goes the slow way, which launches something else.
    if (result == CUDA_SUCCESS || !is_launch_config_error(result)) return after_launch(result);
  }
  return after_launch(launch_slowly(call, thread));
}

CUresult ProcessRuntime::launch_in_found(const contextune_launch& call,
                                         LaunchRegion& found) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  if (submission_.submitter().holds()) submission_.submitter().hand_over();
  if (stopped_.load(std::memory_order_acquire)) return launcher_.as_written(call);
  return after_launch(found.launch(call, true));
}

CUresult ProcessRuntime::launch_slowly(const contextune_launch& call,
                                       ThreadState& thread) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  gate_.pass();
  if (stopped_.load(std::memory_order_acquire)) return launcher_.as_written(call);
  if (thread.call != nullptr && thread.call->is_aside()) return launcher_.as_written(call);
  if (DiscoveredPeriods* periods = submission_.periods()) periods->launch(call);
  if (!kernel_marks_.empty() && gate_.is_open()) {
    try {
      CUcontext context = nullptr;
      (void)driver_.cuCtxGetCurrent(&context);
      if (const RegionMark* mark = kernel_marks_.find(call.function, context)) {
        if (LaunchRegion* region = regions_.of_mark(*mark))
          region->entries().begin_next_in_process();
      }
    } catch (const std::exception& error) {
      log_.fallback(FallbackReason::InternalError, {}, {}, error.what());
    }
  }
  if (recorder_.active() && !ProcessCollectives::is_inside()) {
    if (thread.call != nullptr) {
      recorder_.obstruct(FallbackReason::UnsupportedLaunch, "A tunable chooses its launch itself.");
    }
    return recorder_.launch(call);
  }
  if (thread.region != nullptr) return thread.region->launch(call, thread.counts);
  if (LaunchRegion* only = open_.only()) return only->launch(call, true);
  unassigned_.fetch_add(1, std::memory_order_relaxed);
  if (open_.several() && !said_unassigned_.load(std::memory_order_relaxed) &&
      !said_unassigned_.exchange(true)) {
    log_.fallback(FallbackReason::NoOpenRegion, {}, {}, {});
  }
  return launcher_.as_written(call);
}

}  // namespace contextune::intercept

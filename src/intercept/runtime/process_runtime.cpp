#include "intercept/runtime/process_runtime.hpp"

#include <unistd.h>

#include <array>
#include <exception>

#include <contextune/error.hpp>

#include "environment/variables.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/command_line.hpp"
#include "intercept/host/link_fault.hpp"
#include "intercept/host/program_name.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/nccl/nccl_caller.hpp"
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

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
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
      timers_(options.timer, driver_, log_, captures_, contexts_,
              [this] { return nccl_.thread_ids(); }),
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
                timers_.measurement(),
                open_,
                captures_,
                memory_,
                contexts_,
                program_,
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
      handles_(services_, timers_, submission_, regions_),
      launches_(services_, timers_, submission_, regions_, nccl_),
      runtime_(services_, options_, regions_, rules_, submission_.tuning()) {
  if (driver_.simulated) log_.set_simulated();
  write_start(log::ranks_of_environment());
  for (const std::string& one : faults) log_.fault(one);
  rules_.start_collectives(options, filter_, log_);
  rules_.load(options.space, runtime_.device_facts(), log_);
  process_collectives().prepare(rules_.collectives(), &memory_, &gate_);
  // A copy to the host waits for the GPU as well.
  store_.set_on_probation([this](bool begins) { gate_.show_copies(begins); });
  collective_calls().set_decider(&process_collectives());
  std::vector<std::string> marked;
  if (frontend_ != nullptr) {
    start_marks();
    for (const RegionMark& mark : regions_.marks()) marked.push_back(mark.name);
    // Only a region has a use for them, and each asks for itself.
    if (!regions_.has_marked_stretch()) gate_.show_messages(false);
  } else {
    const LinkFault fault = find_link_fault();
    log_.fallback(fault.reason, {}, {}, fault.sentence);
  }
  // From the first launch of a marked kernel on, all others are in its region.
  submission_.start(regions_.has_mark(RegionMark::Kind::Auto) &&
                    !regions_.has_mark(RegionMark::Kind::Kernel));
  nccl_.find_stretch(options_, [this] { submission_.tuning().hold_off(); });
  if (!options_.discover) store_.prepare(marked);
  log_.lines().flush();  // whatever happens now, it says what was begun with
  submission_.tuning().spend(now_seconds() - began_);
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
  const DeviceFacts facts = runtime_.device_facts();
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
  event.timer = timers_.measurement().timer_name();
  event.world_size = num_ranks;
  event.command = command_line();
  event.options = given_options();
  event.host = host_name();
  log::write_start(log_.lines(), event);
}

void ProcessRuntime::start_marks() {
  regions_.read_marks();
  for (const RegionMark& mark : regions_.marks()) {
    if (mark.kind == RegionMark::Kind::Auto && has_knobs(options_)) regions_.begin_process(mark);
    if (mark.kind == RegionMark::Kind::Process) {
      regions_.begin_process(mark);
      if (options_.mode == Mode::Replay) {
        log_.fallback(FallbackReason::NotRepeatable, mark.name, {},
                      "The region `process` has no visits that could be recorded, so it is tuned "
                      "live; mark a stretch that the program goes through.");
      }
    }
  }
  launches_.read_marks();
}

}  // namespace contextune::intercept

#include <algorithm>
#include <cstdlib>

#include "copy_effect.hpp"
#include "joint_work.hpp"
#include "launch.hpp"
#include "stale_constants.hpp"
#include "stream_order.hpp"
#include "stream_time.hpp"
#include "timeline.hpp"

namespace simcuda {

namespace {

// Kernels run and are described under the driver's lock, so the module is what it was at the call.
void* find_global(const simcuda_launch* launch, const char* name, std::size_t* bytes) {
  const auto& module = *static_cast<const Module*>(launch->module);
  const auto found = module.globals.find(name);
  if (found == module.globals.end()) return nullptr;
  const Memory::Block* const block = driver().memory.at(found->second);
  if (bytes != nullptr) *bytes = block->bytes;
  return reinterpret_cast<void*>(block->begin);
}

simcuda_launch view_of(const Launch& launch, const DeviceProfile& profile) {
  simcuda_launch view{};
  std::copy(launch.grid.begin(), launch.grid.end(), view.grid);
  std::copy(launch.block.begin(), launch.block.end(), view.block);
  std::copy(launch.cluster.begin(), launch.cluster.end(), view.cluster);
  view.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  view.num_sms = profile.num_sms;
  view.arguments = launch.arguments.data();
  view.find_global = &find_global;
  view.module = launch.module;
  return view;
}

// The first thing that a kernel writes, or 0.
std::uintptr_t first_written(const simcuda_work& work) {
  for (unsigned i = 0; i < work.access_count; ++i) {
    const simcuda_access& access = work.accesses[i];
    if ((access.flags & SIMCUDA_WRITE) != 0 && access.bytes != 0)
      return reinterpret_cast<std::uintptr_t>(access.address);
  }
  return 0;
}

void compute(const Launch& launch, const DeviceProfile& profile, std::uintptr_t spoil) {
  const simcuda_kernel& kernel = *launch.code->source;
  const simcuda_launch view = view_of(launch, profile);
  if (kernel.run != nullptr) kernel.run(&view);
  if (spoil != 0) flip_bit(spoil);
}

// Computes the results of a launch, now or with copies of its arguments later.
void perform_launch(Stream& stream, const Launch& launch, const DeviceProfile& profile,
                    std::uintptr_t spoil, GraphOrigin origin, bool chained) {
  const KernelCode& code = *launch.code;
  // Behind the last launch of a stream one may come that is chained to it.
  const bool may_be_last = code.is_machine_code && origin.node == 0;
  if (driver().pending.immediate() && !may_be_last) {
    end_chain(stream);
    compute(launch, profile, spoil);
    return;
  }
  const auto owned = std::make_shared<const OwnedLaunch>(launch);
  if (!code.is_machine_code) {
    perform(stream, [owned, &profile, spoil] { compute(owned->launch, profile, spoil); });
    return;
  }
  const auto stale = chained ? stream.chain.stale : std::vector<std::shared_ptr<StaleConstants>>();
  const auto kept = code.triggers ? std::make_shared<StaleConstants>() : nullptr;
  const auto task = std::make_shared<Task>();
  task->effect = [owned, &profile, spoil, stale, kept, context = stream.context] {
    if (kept != nullptr) kept->take(*context);
    for (const auto& one : stale) one->exchange();
    compute(owned->launch, profile, spoil);
    for (auto one = stale.rbegin(); one != stale.rend(); ++one) (*one)->exchange();
  };
  submit_launch(stream, task, chained, code.waits);
  if (kept != nullptr) stream.chain.stale = {kept};
}

// Only machine code says whether it waits, so only such launches are chained to each other.
bool is_chained(const Stream& stream, const Launch& launch, GraphOrigin origin) {
  return launch.code->is_machine_code && !stream.chain.tasks.empty() &&
         (origin.node == 0 ? launch.programmatic : origin.chained);
}

double launch_gap(const DeviceProfile& profile, GraphOrigin origin, bool chained) {
  if (origin.inside) return chained ? profile.chained_graph_gap : profile.graph_gap;
  return chained ? profile.chained_gap : profile.stream_gap;
}

LaunchCost cost_of(Device& device, const Launch& launch, const simcuda_launch& view,
                   const simcuda_work& work) {
  LaunchShape shape;
  shape.blocks = static_cast<double>(view.grid[0]) * view.grid[1] * view.grid[2];
  shape.demand = {
      view.block[0] * view.block[1] * view.block[2], launch.code->registers,
      std::size_t{launch.code->source->static_shared_bytes} + launch.dynamic_shared_bytes};
  shape.carveout_percent = launch.carveout_percent;
  return device.cost.launch(shape, work);
}

simcuda_activity activity_of(const Stream& stream, const Launch& launch, std::uint32_t correlation,
                             GraphOrigin origin) {
  Driver& state = driver();
  const Context& context = *stream.context;
  const simcuda_kernel& kernel = *launch.code->source;
  simcuda_activity activity{};
  activity.kind = SIMCUDA_KERNEL;
  activity.submitted = state.host_time;
  activity.device = static_cast<std::uint32_t>(context.device);
  activity.context = context.id;
  activity.stream = stream.id;
  activity.correlation = correlation;
  activity.name = launch.code->name;
  activity.launch = view_of(launch, state.device(context.device).profile);
  activity.launch.arguments = nullptr;
  activity.launch.find_global = nullptr;
  activity.launch.module = nullptr;
  activity.registers = launch.code->registers;
  activity.static_shared_bytes = kernel.static_shared_bytes;
  activity.local_bytes = kernel.local_bytes;
  activity.graph_node = origin.node;
  activity.graph = origin.graph;
  activity.cooperative = launch.cooperative ? 1 : 0;
  return activity;
}

// Tells whoever listens when the time of a launch is known.
auto reporter(const simcuda_activity& activity) {
  return [activity](const Span& span) {
    simcuda_activity done = activity;
    done.start = span.start;
    done.end = span.end;
    driver().report(done);
  };
}

}  // namespace

void run_launch(Stream& stream, const Launch& launch, std::uint32_t correlation,
                GraphOrigin origin) {
  Driver& state = driver();
  Context& context = *stream.context;
  Device& device = state.device(context.device);
  const simcuda_kernel& kernel = *launch.code->source;
  const simcuda_launch view = view_of(launch, device.profile);

  const Fault* const fault = state.faults.hit(
      launch.code->name, view.block[0] * view.block[1] * view.block[2],
      view.grid[0] * view.grid[1] * view.grid[2], view.dynamic_shared_bytes, origin.graph != 0);
  if (fault != nullptr && fault->kind == Fault::Kind::launch_fail) throw Failure{fault->error};
  if (fault != nullptr && fault->kind == Fault::Kind::sticky) {
    perform(stream, [&context, error = fault->error] { context.error = error; });
    return;
  }
  if (fault != nullptr && fault->kind == Fault::Kind::abort) {
    perform(stream, [] { std::abort(); });
    return;
  }
  if (fault != nullptr && fault->kind == Fault::Kind::hang) {
    stream.hung = true;
    return;
  }
  if (stream.hung) return;  // behind a kernel that never ends
  if (kernel.join != nullptr) {
    simcuda_joint_work joint{};
    const auto result = static_cast<CUresult>(kernel.join(&view, &joint));
    if (result != CUDA_SUCCESS) throw Failure{result};
    // One block has a whole SM.
    const double utilisation =
        std::min(1.0, static_cast<double>(view.grid[0]) / device.profile.num_sms);
    run_joint_work(stream, std::make_shared<JointWork>(joint), utilisation,
                   reporter(activity_of(stream, launch, correlation, origin)));
    return;
  }

  simcuda_work work{};
  if (kernel.describe != nullptr) kernel.describe(&view, &work);
  work.access_count = std::min<unsigned>(work.access_count, SIMCUDA_MAX_ACCESSES);
  const bool wrong = fault != nullptr && fault->kind == Fault::Kind::wrong_result;
  const bool chained = is_chained(stream, launch, origin);
  perform_launch(stream, launch, device.profile, wrong ? first_written(work) : 0, origin, chained);

  LaunchCost cost = cost_of(device, launch, view, work);
  if (launch.code->detours) cost.seconds += device.profile.entry_detour;
  if (chained) cost.seconds += work.early_seconds;
  const double gap = launch_gap(device.profile, origin, chained);
  const double seconds = cost.seconds * device.noise.factor();
  device.last_kernel_time = seconds;
  device.last_kernel_noise_free_time = cost.seconds;
  if (state.listener.load(std::memory_order_acquire) == nullptr) {
    reckon_time(stream, [&stream, seconds, gap, utilisation = cost.utilisation] {
      schedule_work(stream, seconds, utilisation, gap);
    });
    return;
  }
  simcuda_activity activity = activity_of(stream, launch, correlation, origin);
  activity.executed_shared_bytes = static_cast<std::uint32_t>(cost.shared_configuration_bytes);
  reckon_time(stream,
              [&stream, seconds, gap, utilisation = cost.utilisation, report = reporter(activity)] {
                report(schedule_work(stream, seconds, utilisation, gap));
              });
}

}  // namespace simcuda

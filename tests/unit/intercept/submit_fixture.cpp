#include "submit_fixture.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include <simcuda/cubin.hpp>
#include <simcuda/kernel.hpp>

#include "core/submission/submission_stored.hpp"
#include "intercept/program/code_load.hpp"
#include "intercept/submission/stored_program.hpp"
#include "intercept/submission/stored_submission.hpp"
#include "tests/file_text.hpp"

using namespace contextune::intercept;

namespace {

constexpr int submitted_length = 8;

// `tag` is followed by three bytes of padding.
void run_submitted(const simcuda_launch* launch) {
  auto* const values = simcuda::argument<float*>(*launch, 1);
  const auto factor = simcuda::argument<float>(*launch, 2);
  for (int i = 0; i < submitted_length; ++i) values[i] = values[i] * factor + 1;
}

template <typename... Parameters>
simcuda_kernel submitted_kernel(const char* name) {
  return simcuda::whole_launch_kernel<Parameters...>(name, &run_submitted, nullptr);
}

std::mutex calls_mutex;
std::vector<SubmittedCall> calls;

SubmittedCall noted(std::string kernel, bool chained) {
  char name[16]{};
  (void)pthread_getname_np(pthread_self(), name, sizeof name);
  SubmittedCall call{std::move(kernel), chained, std::string(name).starts_with("contextune-")};
  if (Submitting::on_call) Submitting::on_call(call);
  const std::lock_guard lock(calls_mutex);
  calls.push_back(call);
  return call;
}

std::string name_of_submitted(CUfunction function) {
  const char* name = "?";
  (void)Simulation::get().driver.cuFuncGetName(&name, function);
  return name;
}

CUresult CUDAAPI note_launch(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             CUstream stream, void** arguments, void** extra) {
  noted(name_of_submitted(function), false);
  return Simulation::get().driver.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                                 block_z, shared, stream, arguments, extra);
}

CUresult CUDAAPI note_launch_ex(const CUlaunchConfig* config, CUfunction function, void** arguments,
                                void** extra) {
  bool chained = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    chained =
        chained || config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  }
  noted(name_of_submitted(function), chained);
  return Simulation::get().driver.cuLaunchKernelEx(config, function, arguments, extra);
}

CUresult CUDAAPI note_graph_launch(CUgraphExec exec, CUstream stream) {
  noted("graph", false);
  return Simulation::get().driver.cuGraphLaunch(exec, stream);
}

CUresult CUDAAPI say_busy(CUstream) {
  return Submitting::busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

void* driver_entry(contextune_fn fn) {
  switch (fn) {
    case contextune_fn_cuLaunchKernel:
      return reinterpret_cast<void*>(&note_launch);
    case contextune_fn_cuLaunchKernelEx:
      return reinterpret_cast<void*>(&note_launch_ex);
    default:
      return dlsym(Simulation::get().library, entry_name(fn));
  }
}

contextune_launch call_of(CUfunction function, CUstream on, unsigned block) {
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernel;
  call.function = function;
  call.grid[0] = call.grid[1] = call.grid[2] = 1;
  call.block[0] = block;
  call.block[1] = call.block[2] = 1;
  call.stream = on;
  return call;
}

contextune::log::RankLog::Settings settings_in(const std::string& folder) {
  contextune::log::RankLog::Settings settings;
  settings.folder = folder;
  return settings;
}

/// Has what it was given, keeps nothing, or breaks where it is read.
class GivenStore final : public contextune::Store {
 public:
  GivenStore(const bool& breaks, const contextune::StoredEntry& given)
      : breaks_(breaks), given_(given) {}
  contextune::StoredEntry load(const contextune::StoreIdentity&) override {
    if (breaks_) throw std::runtime_error("the store breaks");
    return given_;
  }
  bool save(const contextune::StoreIdentity&, const std::vector<contextune::StoredSite>&,
            const std::optional<contextune::StoredConfirm>&) override {
    return true;
  }

 private:
  const bool& breaks_;
  const contextune::StoredEntry& given_;
};

}  // namespace

struct Submitting::Parts {
  Parts(Submitting& program, Splice splice, const std::string& exclude,
        const contextune::SubmissionLimits& limits)
      : log(settings_in(program.folder_.path())),
        filter("", exclude, log),
        launcher((frontend.real = &driver_entry, frontend.held = &held,
                  frontend.unguarded = &unguarded, &frontend)),
        kernels(driver, filter, log),
        variables(driver),
        captures(driver),
        loads(
            driver, splice, true, [&program] { return program.seconds_for_loads; },
            [&program](const std::string& why) { program.refusals.push_back(why); },
            left_out_by(filter)),
        submitted(driver, kernels, variables, loads),
        submitter(driver, launcher, submitted, captures, memory, &frontend,
                  [&program](const std::string& why) { program.not_gathered.push_back(why); }),
        store(
            std::make_unique<GivenStore>(store_breaks, stored), "", {}, log,
            [] { return contextune::TuningEnvironment{}; }, [](auto) { return true; }),
        graphs(driver, &frontend, stopped),
        chained_graphs(
            driver, submitted, graphs, [&program] { return program.seconds_for_loads; },
            [&program](const std::string& why) { program.not_chained.push_back(why); }),
        tuning(driver, kernels, submitter, chained_graphs, loads, captures, open, log, store,
               limits, 30) {
    driver.cuStreamQuery = &say_busy;
    driver.cuGraphLaunch = &note_graph_launch;
  }

  std::uint32_t held = 0;
  std::uint32_t unguarded = 0;
  contextune::gpu::Driver driver = Simulation::get().driver;
  contextune_frontend frontend{};
  EventLog log;
  NameFilter filter;
  contextune::intercept::Launcher launcher;
  KernelTable kernels;
  contextune::gpu::ModuleVariables variables;
  CaptureWatch captures;
  ProcessMemory memory{nullptr};
  SplicedLoads loads;
  SubmittedKernels submitted;
  Submitter submitter;
  bool store_breaks = false;
  contextune::StoredEntry stored;
  ProcessStore store;
  std::atomic<bool> stopped{false};
  GraphTable graphs;
  ChainedGraphs chained_graphs;
  OpenRegions open{nullptr};
  SubmissionTuning tuning;
};

Submitting::Submitting(Splice splice, const std::string& exclude,
                       const contextune::SubmissionLimits& limits)
    : parts_(new Parts(*this, splice, exclude, limits)),
      unguarded(parts_->unguarded),
      store_breaks(parts_->store_breaks),
      driver(parts_->driver),
      loads(&parts_->loads),
      submitted(&parts_->submitted),
      memory(&parts_->memory),
      submitter(&parts_->submitter),
      graphs(&parts_->graphs),
      chained_graphs(&parts_->chained_graphs),
      tuning(&parts_->tuning) {
  static const simcuda_kernel kernels[] = {
      submitted_kernel<char, float*, float>("step"),
      submitted_kernel<char, float*, float>("scale"),
      submitted_kernel<char, float*, float>("triggering"),
      submitted_kernel<char, float*, float>("waiting"),
      submitted_kernel<char, float*, float>("mapping"),
      submitted_kernel<char, float*, float>("fencing"),
      submitted_kernel<char, float*, float>("nvjet_like"),
  };
  static const simcuda_kernel* const pointers[] = {
      &kernels[0], &kernels[1], &kernels[2], &kernels[3], &kernels[4], &kernels[5], &kernels[6]};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, pointers, std::size(pointers)};
  Simulation::get().add(table);
  REQUIRE(driver.cuCtxSetCurrent(Simulation::get().context) == CUDA_SUCCESS);
  busy = true;
  on_call = nullptr;
  x = Simulation::get().memory(submitted_length);
  module = load_module();
  (void)take_calls();
}

Submitting::~Submitting() {
  static auto& kept = *new std::vector<Parts*>;
  kept.push_back(parts_);
  submitter->stop();
  (void)driver.cuCtxSynchronize();
  on_call = nullptr;
}

const std::string& Submitting::image() {
  static const std::string bytes =
      simcuda::build_cubin({{.name = "step"},
                            {.name = "scale", .uses_stack = true},
                            {.name = "triggering", .triggers = true},
                            {.name = "waiting", .waits = true},
                            {.name = "mapping", .maps = true},
                            {.name = "fencing", .maps = true, .fences_maps = true}});
  return bytes;
}

CUresult Submitting::load(contextune_fn fn, std::initializer_list<void*> arguments) {
  const void* const program = *static_cast<void* const*>(arguments.begin()[1]);
  const Load to_driver = [&](contextune_fn with, void* const* args) {
    given = *static_cast<void* const*>(args[1]);
    if (refuses_changed && given != program) return CUDA_ERROR_INVALID_IMAGE;
    return load_code(parts_->frontend, with, args);
  };
  return loads->load(fn, arguments.begin(), to_driver);
}

CUmodule Submitting::load_module(const std::string& bytes) {
  CUmodule loaded = nullptr;
  CUmodule* to = &loaded;
  const void* code = bytes.data();
  REQUIRE(load(contextune_fn_cuModuleLoadData, {&to, &code}) == CUDA_SUCCESS);
  parts_->variables.loaded(loaded, bytes.data());
  return loaded;
}

void Submitting::found_earlier(const contextune::SubmissionState& state, bool same_software) {
  const contextune::intercept::StoredProgram program(parts_->store);
  contextune::StoredSite site = contextune::stored_submission(
      state, contextune::intercept::StoredSubmission::site, program.key(), {});
  site.image = program.build();
  site.same_software = same_software;
  parts_->stored.sites.push_back(std::move(site));
}

CUfunction Submitting::function(const char* name) const {
  return Simulation::get().function(module, name);
}

CUstream Submitting::stream(unsigned flags) const {
  CUstream made = nullptr;
  REQUIRE(driver.cuStreamCreate(&made, flags) == CUDA_SUCCESS);
  return made;
}

void Submitting::synchronise() {
  submitter->hand_over();
  REQUIRE(driver.cuCtxSynchronize() == CUDA_SUCCESS);
}

void Submitting::capture(CUstream on, bool begins) {
  submitter->hand_over();
  if (!begins) return parts_->captures.end(on);
  parts_->captures.begin(on);
  parts_->captures.begun(on);
}

CUresult Submitting::launch(const char* kernel, CUstream on, float factor, unsigned block,
                            unsigned shared_bytes) {
  char tag = 'a';
  std::vector<void*> arguments = {&tag, &x, &factor};
  contextune_launch call = call_of(function(kernel), on, block);
  call.shared_bytes = shared_bytes;
  call.kernel_params = arguments.data();
  const CUresult result = submitter->launch(call, cache);
  tag = 'z';
  factor = -1e9F;  // nobody reads them after the call
  return result;
}

void Submitting::launch_with(CUlaunchAttribute attribute, const char* kernel, CUstream on) {
  char tag = 'a';
  float factor = 1;
  std::vector<void*> arguments = {&tag, &x, &factor};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = on;
  config.attrs = &attribute;
  config.numAttrs = 1;
  contextune_launch call = call_of(function(kernel), on, 32);
  call.fn = contextune_fn_cuLaunchKernelEx;
  call.config = &config;
  call.kernel_params = arguments.data();
  REQUIRE(submitter->launch(call, cache) == CUDA_SUCCESS);
}

CUresult Submitting::launch_without_arguments(const char* kernel, CUstream on) {
  return submitter->launch(call_of(function(kernel), on, 32), cache);
}

CUresult Submitting::launch_watched(CUfunction kernel, CUstream on, bool by_nccl) {
  char tag = 'a';
  float factor = 1;
  std::vector<void*> arguments = {&tag, &x, &factor};
  contextune_launch call = call_of(kernel, on, 32);
  call.kernel_params = arguments.data();
  return tuning->launch(call, this_thread(), by_nccl);
}

void Submitting::warm(CUstream on, std::initializer_list<const char*> kernels) {
  for (const char* kernel : kernels) REQUIRE(launch(kernel, on) == CUDA_SUCCESS);
  synchronise();
  REQUIRE(driver.cuMemsetD8Async(x, 0, submitted_length * sizeof(float), nullptr) == CUDA_SUCCESS);
  synchronise();
  (void)take_calls();
}

std::uint32_t Submitting::held() const {
  return std::atomic_ref(parts_->held).load();
}

std::vector<SubmittedCall> Submitting::take_calls() {
  const std::lock_guard lock(calls_mutex);
  return std::exchange(calls, {});
}

std::string Submitting::log() {
  parts_->log.lines().flush();
  return text_of(folder_.path("rank-0.log"));
}

float Submitting::result() const {
  return Simulation::get().floats(x, submitted_length).back();
}

void Submitting::rest() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

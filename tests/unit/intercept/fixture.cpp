#include "fixture.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <simcuda/kernel.hpp>
#include <utility>

using namespace contextune;
namespace files = std::filesystem;

namespace {

std::mutex seen_mutex;
std::vector<SeenLaunch> seen;

void note(const char* kernel, const simcuda_launch& launch) {
  const std::lock_guard lock(seen_mutex);
  seen.push_back({kernel, launch.grid[0], launch.block[0], launch.dynamic_shared_bytes});
}

void add_all(const simcuda_launch& launch) {
  const int n = simcuda::argument<int>(launch, 0);
  auto* const x = simcuda::argument<float*>(launch, 2);
  for (int i = 0; i < n; ++i) x[i] += simcuda::argument<float>(launch, 1);
}
void add(const simcuda_launch* launch) {
  note("add", *launch);
  add_all(*launch);
}
void add_twin(const simcuda_launch* launch) {
  note("add_twin", *launch);
  add_all(*launch);
}
void add_by_block(const simcuda_launch* launch) {
  note("add_by_block", *launch);
  const int n = simcuda::argument<int>(*launch, 0);
  auto* const x = simcuda::argument<float*>(*launch, 2);
  // Wrong with blocks of 64: one element too many.
  const int end = launch->block[0] == 64 ? n + 1 : n;
  for (int i = 0; i < end; ++i) x[i] += simcuda::argument<float>(*launch, 1);
}
/// Sums that come out a little different each time, as with atomic additions of floats.
void add_roughly(const simcuda_launch* launch) {
  static std::uint32_t turns = 0;
  note("add_roughly", *launch);
  const int n = simcuda::argument<int>(*launch, 0);
  auto* const x = simcuda::argument<float*>(*launch, 2);
  const float off = 1 + 1e-6F * static_cast<float>(++turns % 2);
  for (int i = 0; i < n; ++i) x[i] += simcuda::argument<float>(*launch, 1) * off;
}
/// Counts where an address leads that lies in device memory.
void add_hidden(const simcuda_launch* launch) {
  note("add_hidden", *launch);
  ++**simcuda::argument<int**>(*launch, 0);
}
void other(const simcuda_launch* launch) {
  note("other", *launch);
}

void describe_add(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(simcuda::argument<int>(*launch, 0));
  work->items = work->flops = static_cast<double>(n);
  simcuda::touch(*work, simcuda::argument<float*>(*launch, 2), n * 4, SIMCUDA_READ | SIMCUDA_WRITE);
}
void describe_other(const simcuda_launch*, simcuda_work* work) {
  work->flops = 1e6;
}

constexpr simcuda_kernel add_kernel =
    simcuda::whole_launch_kernel<int, float, float*>("_Z3addifPf", &add, &describe_add);
constexpr simcuda_kernel twin_kernel =
    simcuda::whole_launch_kernel<int, float, float*>("_Z8add_twinifPf", &add_twin, &describe_add);
constexpr simcuda_kernel by_block_kernel = simcuda::whole_launch_kernel<int, float, float*>(
    "_Z12add_by_blockifPf", &add_by_block, &describe_add);
constexpr simcuda_kernel roughly_kernel = simcuda::whole_launch_kernel<int, float, float*>(
    "_Z11add_roughlyifPf", &add_roughly, &describe_add);
constexpr simcuda_kernel hidden_kernel =
    simcuda::whole_launch_kernel<int**>("_Z10add_hiddenPPi", &add_hidden, &describe_other);
constexpr simcuda_kernel other_kernel =
    simcuda::whole_launch_kernel<>("_Z5otherv", &other, &describe_other);
constexpr simcuda_kernel nccl_kernel =
    simcuda::whole_launch_kernel<int, float, float*>("ncclDevKernel_Sum", &add, &describe_add);

constexpr const char* image =
    "simcuda image 1\nkernel _Z3addifPf\nkernel _Z8add_twinifPf\nkernel _Z5otherv\n"
    "kernel _Z12add_by_blockifPf\nkernel _Z11add_roughlyifPf\n"
    "kernel _Z10add_hiddenPPi\n"
    "kernel ncclDevKernel_Sum\n"
    "access _Z3addifPf 2=rw\naccess _Z8add_twinifPf 2=rw\naccess _Z12add_by_blockifPf 2=rw\n"
    "access _Z11add_roughlyifPf 2=rw\naccess _Z5otherv\naccess ncclDevKernel_Sum 2=rw\n";

void* real(contextune_fn fn) {
  return dlsym(Simulation::get().library, entry_name(fn));
}
std::uint64_t passed() {
  return 0;
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

const char* entry_name(contextune_fn fn) {
  switch (fn) {
#define CONTEXTUNE_ENTRY(name, ...) \
  case contextune_fn_##name:        \
    return #name;
#include "preload/registry/cupti.def"
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
    default:
      return "";
  }
}

Simulation& Simulation::get() {
  static auto* one = new Simulation;
  return *one;
}

Simulation::Simulation() {
  library = dlopen(CONTEXTUNE_SIMCUDA, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  static const simcuda_kernel* const kernels[] = {&add_kernel,   &twin_kernel,     &other_kernel,
                                                  &nccl_kernel,  &by_block_kernel, &roughly_kernel,
                                                  &hidden_kernel};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, std::size(kernels)};
  add(table);
  driver = gpu::load_driver(library, &dlsym);
  gpu::check(driver, driver.cuInit(0), "cuInit");
  gpu::check(driver, driver.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  gpu::check(driver, driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  module = load();
}

void Simulation::add(const simcuda_kernel_table& table) const {
  REQUIRE(symbol<decltype(&simcuda_register_kernels)>(library,
                                                      "simcuda_register_kernels")(&table) == 0);
}

CUmodule Simulation::load(const char* given) const {
  CUmodule loaded = nullptr;
  const auto load_data = symbol<decltype(&cuModuleLoadData)>(library, "cuModuleLoadData");
  REQUIRE(load_data(&loaded, given == nullptr ? image : given) == CUDA_SUCCESS);
  return loaded;
}

CUfunction Simulation::function(CUmodule of, const char* name) const {
  CUfunction found = nullptr;
  REQUIRE(driver.cuModuleGetFunction(&found, of, name) == CUDA_SUCCESS);
  return found;
}

CUdeviceptr Simulation::memory(std::size_t count) const {
  CUdeviceptr pointer = 0;
  REQUIRE(driver.cuMemAlloc(&pointer, count * sizeof(float)) == CUDA_SUCCESS);
  REQUIRE(driver.cuMemsetD8Async(pointer, 0, count * sizeof(float), nullptr) == CUDA_SUCCESS);
  REQUIRE(driver.cuCtxSynchronize() == CUDA_SUCCESS);
  return pointer;
}

std::vector<float> Simulation::floats(CUdeviceptr from, std::size_t count) const {
  std::vector<float> values(count);
  REQUIRE(driver.cuMemcpyDtoH(values.data(), from, count * sizeof(float)) == CUDA_SUCCESS);
  return values;
}

void Simulation::fault(const std::string& text) const {
  REQUIRE(symbol<decltype(&simcuda_set_fault)>(library, "simcuda_set_fault")(text.c_str()) == 0);
}

std::vector<SeenLaunch> take_seen() {
  const std::lock_guard lock(seen_mutex);
  return std::exchange(seen, {});
}

LaunchChange TestRule::by_name(const Config& config) {
  LaunchChange change;
  for (const auto& [name, value] : config.entries()) {
    if (name == "function") {
      change.function = std::get<std::string>(value);
      continue;
    }
    const auto number = static_cast<std::uint32_t>(std::get<std::int64_t>(value));
    if (name == "block") change.block = {{number, 1, 1}};
    if (name == "grid") change.grid = {{number, 1, 1}};
    if (name == "shared_bytes") change.shared_bytes = number;
  }
  return change;
}

std::vector<Config> values_of(const char* name, std::initializer_list<int> values) {
  std::vector<Config> configs;
  for (const int value : values) configs.push_back(Config{{name, std::int64_t{value}}});
  return configs;
}

std::shared_ptr<TestRule> blocks(std::initializer_list<int> values, const char* kernel) {
  auto rule = std::make_shared<TestRule>(kernel);
  rule->list = values_of("block", values);
  return rule;
}

Options Program::quick() {
  Options options;
  options.region = "nvtx:step";
  options.mode = Mode::Live;
  options.n_warmup = 0;
  options.n_repeat = 1;
  options.refine = false;
  options.confirm = false;
  options.max_slowdown = 0;
  options.cutoff = 0;
  options.timer = TimerKind::Events;  // of several runtimes only one could have CUPTI
  options.margin = 0;
  return options;
}

Program::Program(Options options) {
  const Simulation& simulation = Simulation::get();
  simulation.fault("");
  symbol<decltype(&simcuda_set_noise)>(simulation.library, "simcuda_set_noise")(0.0, 1);
  simulation.driver.cuCtxSetCurrent(simulation.context);
  (void)take_seen();
  options.log_dir = folder_.path();
  if (options.cache_dir.empty()) options.store = StoreUse::Off;  // each begins with nothing
  frontend_.version = CONTEXTUNE_ABI_VERSION;
  frontend_.size = sizeof frontend_;
  frontend_.libcuda = simulation.library;
  frontend_.real_dlsym = [](void* from, const char* name) {
    const auto own = replaced.find(std::string_view(name));
    return own == replaced.end() ? dlsym(from, name) : own->second;
  };
  frontend_.real = &real;
  frontend_.name = &entry_name;
  frontend_.armed = &armed;
  frontend_.recording = &recording;
  frontend_.messages = &messages;
  frontend_.missed = &missed;
  frontend_.launches_passed = &passed;
  frontend_.depth = [] { return &depth; };
  frontend_.calls_ended = [](std::uint64_t) { return others_left ? 1 : 0; };
  frontend_.messages_under_way = [] { return another_in_message ? 1U : 0U; };
  others_left = true;
  another_in_message = false;
  process_ = new intercept::ProcessRuntime(&frontend_, options, {});
  process_->services().variables.loaded(simulation.module, image);
}

Program::~Program() {
  end();
  // As in a process, it never goes away: threads and timers may still know it.
  static auto& kept = *new std::vector<intercept::ProcessRuntime*>;
  kept.push_back(process_);
}

CUresult Program::launch(CUfunction function, unsigned grid, unsigned block,
                         std::vector<void*> arguments, unsigned shared_bytes, CUstream stream) {
  if (std::atomic_ref<std::uint32_t>(armed).load() == 0) {
    return Simulation::get().driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes,
                                                   stream, arguments.data(), nullptr);
  }
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernel;
  call.function = function;
  call.grid[0] = grid;
  call.block[0] = block;
  call.grid[1] = call.grid[2] = call.block[1] = call.block[2] = 1;
  call.shared_bytes = shared_bytes;
  call.stream = stream;
  call.kernel_params = arguments.data();
  return process_->launches().launch(call);
}

CUresult Program::launch_ex(CUlaunchConfig config, CUfunction function,
                            std::vector<void*> arguments) {
  contextune_launch call{};
  call.fn = contextune_fn_cuLaunchKernelEx;
  call.function = function;
  call.config = &config;
  call.kernel_params = arguments.data();
  return process_->launches().launch(call);
}

CUdeviceptr Program::allocate(std::size_t bytes) {
  CUdeviceptr pointer = Simulation::get().memory((bytes + 3) / 4);
  intercept::Allocation allocation;
  allocation.begin = pointer;
  allocation.bytes = bytes;
  allocation.device = 0;
  allocation.context = Simulation::get().context;
  process_->services().memory.allocations().add(allocation);
  return pointer;
}
void Program::note(contextune_fn fn, std::initializer_list<void*> arguments) {
  if (std::atomic_ref<std::uint32_t>(recording).load() == 0) return;
  process_->services().recorder.after(fn, arguments.begin(), CUDA_SUCCESS);
}
void Program::push(const char* name, const char* domain) {
  process_->regions().range(contextune_range_push, domain, name, 0);
}
void Program::pop(const char* domain) {
  process_->regions().range(contextune_range_pop, domain, nullptr, 0);
}
void Program::synchronise() {
  REQUIRE(Simulation::get().driver.cuCtxSynchronize() == CUDA_SUCCESS);
  process_->synchronised();
}
void Program::end() {
  process_->exiting();
}

void Program::steps(int times, const std::function<void()>& body) {
  for (int i = 0; i < times; ++i) {
    push("step");
    body();
    pop();
    synchronise();
  }
}

std::vector<std::string> Program::lines(const std::string& event) const {
  process_->services().log.lines().flush();
  std::vector<std::string> found;
  std::ifstream file(folder_.path("rank-0.log"));
  for (std::string line; std::getline(file, line);) {
    if (line.find(" event=" + event + " ") != std::string::npos) found.push_back(line);
  }
  return found;
}

bool Program::said(const std::string& event, std::vector<std::string> texts) const {
  for (const std::string& line : lines(event)) {
    bool all = true;
    for (const std::string& text : texts) all = all && line.find(text) != std::string::npos;
    if (all) return true;
  }
  return false;
}

Adder::Adder(int elements, const char* kernel)
    : n(elements),
      x(Simulation::get().memory(static_cast<std::size_t>(elements))),
      function(Simulation::get().function(Simulation::get().module, kernel)) {}

CUresult Adder::run(Program& program, unsigned grid, unsigned block, unsigned shared_bytes,
                    CUstream stream) {
  return program.launch(function, grid, block, {&n, &value, &x}, shared_bytes, stream);
}

void Adder::holds(float expected) const {
  for (const float one : Simulation::get().floats(x, static_cast<std::size_t>(n))) {
    REQUIRE(one == expected);
  }
}

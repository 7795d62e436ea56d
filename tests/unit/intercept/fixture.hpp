#pragma once

#include <simcuda/simcuda.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "intercept/runtime/process_runtime.hpp"
#include "tests/scratch_folder.hpp"

/// What a simulated kernel was launched with.
struct SeenLaunch {
  std::string kernel;
  unsigned grid = 0;
  unsigned block = 0;
  unsigned shared_bytes = 0;

  bool operator==(const SeenLaunch&) const = default;
};

/// The simulated driver with one context and the kernels of fixture.cpp; made once, since a process
/// has one driver. Without noise and without faults at the start of each Program.
class Simulation {
 public:
  static Simulation& get();

  /// Adds kernels for images to name.
  void add(const simcuda_kernel_table& table) const;
  /// Loads a module; without an image, the same kernels again.
  CUmodule load(const char* image = nullptr) const;
  [[nodiscard]] CUfunction function(CUmodule module, const char* name) const;
  [[nodiscard]] CUdeviceptr memory(std::size_t count) const;
  [[nodiscard]] std::vector<float> floats(CUdeviceptr from, std::size_t count) const;
  void fault(const std::string& text) const;

  void* library = nullptr;
  contextune::gpu::Driver driver;
  CUcontext context = nullptr;
  CUmodule module = nullptr;

 private:
  Simulation();
};

/// Of an entry of the driver or of CUPTI; empty: it is none.
const char* entry_name(contextune_fn fn);

/// Kernels that ran since the last call.
std::vector<SeenLaunch> take_seen();

/// A rule of the test's own. Functions that are left empty do nothing.
struct TestRule final : contextune::KernelRule {
  using View = contextune::LaunchView;
  using Reads = contextune::LaunchReads;

  explicit TestRule(std::string of) : kernel_name(std::move(of)) {}
  [[nodiscard]] std::string_view kernel() const override { return kernel_name; }
  [[nodiscard]] std::string_view origin() const override { return "test"; }
  contextune::Key key(const View& view, Reads& reads) override {
    return make_key ? make_key(view, reads) : contextune::Key{};
  }
  std::vector<contextune::Config> configs(const View&) override { return list; }
  contextune::LaunchChange apply(const contextune::Config& config, const View& view,
                                 Reads& reads) override {
    ++applied;
    return make ? make(config, view, reads) : by_name(config);
  }
  [[nodiscard]] bool co_resident() const override { return waits_for_others; }
  /// block, grid, shared_bytes and function as the config says.
  static contextune::LaunchChange by_name(const contextune::Config& config);

  std::string kernel_name;
  std::vector<contextune::Config> list;
  std::function<contextune::Key(const View&, Reads&)> make_key;
  std::function<contextune::LaunchChange(const contextune::Config&, const View&, Reads&)> make;
  int applied = 0;
  bool waits_for_others = false;
};

/// {{name=first}, {name=second}, ...}
std::vector<contextune::Config> values_of(const char* name, std::initializer_list<int> values);

/// A rule that tries these blocks.
std::shared_ptr<TestRule> blocks(std::initializer_list<int> values, const char* kernel = "add");

/// One program with contextune in it: a runtime of its own and a log folder of its own. Calls of
/// the driver go the way that the frontend would send them.
class Program {
 public:
  explicit Program(contextune::Options options = quick());
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Options with one region `nvtx:step`, a short schedule and neither refine nor confirm.
  static contextune::Options quick();
  /// The same with members of it set: quick(&Options::force, "add=2", ...).
  template <typename T, typename Of, typename... More>
  static contextune::Options quick(T Of::*member, std::type_identity_t<T> value, More... more) {
    contextune::Options options = quick(more...);
    options.*member = std::move(value);
    return options;
  }

  CUresult launch(CUfunction function, unsigned grid, unsigned block, std::vector<void*> arguments,
                  unsigned shared_bytes = 0, CUstream stream = nullptr);
  CUresult launch_ex(CUlaunchConfig config, CUfunction function, std::vector<void*> arguments);
  /// Zeroed device memory that the program is known to have.
  CUdeviceptr allocate(std::size_t bytes);
  /// The driver has carried out a call with these arguments, given by their addresses.
  void note(contextune_fn fn, std::initializer_list<void*> arguments);
  void push(const char* name, const char* domain = "");
  void pop(const char* domain = "");
  void synchronise();
  /// The exit of the program, as far as contextune is concerned.
  void end();

  /// `times` entries of the region `step`, with a synchronisation after each.
  void steps(int times, const std::function<void()>& body);

  [[nodiscard]] std::vector<std::string> lines(const std::string& event) const;
  /// Whether a line of that event holds all of the texts.
  [[nodiscard]] bool said(const std::string& event, std::vector<std::string> texts) const;

  contextune::intercept::ProcessRuntime& process() { return *process_; }
  contextune::intercept::Runtime& runtime() { return process_->runtime(); }
  std::uint32_t armed = 0;
  std::uint32_t recording = 0;
  std::uint32_t messages = 1;
  std::uint32_t missed = 0;
  /// How deep this thread is in hooks of ours, as the frontend would say.
  static inline int depth = 0;
  /// Entry points of the driver that the next runtimes find in place of simcuda's.
  static inline std::map<std::string, void*, std::less<>> replaced;
  /// Whether the frontend finds no other thread inside the driver.
  static inline bool others_left = true;
  /// Whether another thread is inside a call of NCCL that is not shown.
  static inline bool another_in_message = false;

 private:
  ScratchFolder folder_;
  contextune_frontend frontend_{};
  contextune::intercept::ProcessRuntime* process_;
};

/// The kernel `add` on its own memory: x[i] += value.
struct Adder {
  explicit Adder(int elements, const char* kernel = "_Z3addifPf");
  /// A launch that adds to all elements, whatever becomes of grid and block.
  CUresult run(Program& program, unsigned grid = 8, unsigned block = 128, unsigned shared_bytes = 0,
               CUstream stream = nullptr);
  /// Checks that every element is `expected`.
  void holds(float expected) const;

  int n;
  float value = 1;
  CUdeviceptr x;
  CUfunction function;
};

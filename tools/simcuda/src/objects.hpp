#pragma once

#include <simcuda/simcuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cuda_api.hpp"
#include "module_image.hpp"

namespace simcuda {

struct Capture;
struct Context;
struct GraphNode;
struct HostCalls;
struct Library;
struct Module;
struct StaleConstants;
struct Task;

/// What a handle of the driver API points to. All of them are made, found and deleted through
/// Handles, under the driver's lock.
struct Object {
  enum class Kind : unsigned char {
    context,
    stream,
    event,
    module,
    function,
    library,
    kernel,
    graph,
    graph_node,
    graph_exec,
    pool,
    allocation,
    array,
    texture
  };
  explicit Object(Kind k) : object_kind(k) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  Kind object_kind;
};

/// When something is over, in virtual seconds; not known as long as it waits for other processes.
struct Stamp {
  bool known = false;
  double timestamp = 0;  // of an event
  double done = 0;
};

/// A part of the clock's reckoning that waits for a time to be known.
struct PutOff {
  std::uint64_t sequence = 0;
  double host_time = 0;  // when the program made the call
  std::shared_ptr<const Stamp> when;
  std::function<void()> reckon;
};

/// The last launches of a stream, as far as a programmatic launch may run beside them. Empty when
/// something else came behind them.
struct Chain {
  std::vector<std::shared_ptr<Task>> tasks;
  std::vector<std::shared_ptr<Task>> after;            // what those came after
  std::vector<std::shared_ptr<Task>> also;             // what the next one comes after in any case
  std::vector<std::shared_ptr<StaleConstants>> stale;  // of those that trigger
};

struct Stream : Object {
  static constexpr Kind kind = Kind::stream;
  Stream() : Object(kind) {}

  Context* context = nullptr;
  std::uint32_t id = 0;
  unsigned flags = 0;
  int priority = 0;
  bool blocking = true;  // waits for the legacy stream, and the other way round
  double ready = 0;      // when all its work is done, in virtual seconds
  bool hung = false;     // its work never ends
  struct Interval {
    double start = 0, end = 0, utilisation = 0;
  };
  std::array<Interval, 8> recent{};  // its last kernels
  std::size_t recent_count = 0;
  std::array<double, 1024> queue{};  // ends of its last operations: a launch past 1024 waits
  std::size_t queued = 0;
  std::deque<PutOff> put_off;  // see stream_time.hpp
  Capture* capture = nullptr;
  std::vector<GraphNode*> capture_tail;  // what the next captured node depends on
  std::shared_ptr<HostCalls> host_calls;
  std::vector<std::shared_ptr<Task>> tail;  // what its next operation comes after
  Chain chain;
  CUlaunchAttributeValue access_policy{};
  CUlaunchAttributeValue synchronization_policy{};
  CUlaunchMemSyncDomain memory_domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
  CUlaunchMemSyncDomainMap memory_domains{0, 1};
};

struct Event : Object {
  static constexpr Kind kind = Kind::event;
  Event() : Object(kind) {}

  Context* context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  bool hung = false;
  std::shared_ptr<const Stamp> stamp;  // of the last record; set when it is recorded
  Capture* capture = nullptr;          // recorded in a capturing stream
  std::uint64_t capture_id = 0;
  std::vector<GraphNode*> captured;
  std::shared_ptr<HostCalls> host_calls;  // of the stream that it was recorded in
  std::uint64_t host_calls_before = 0;
  std::shared_ptr<Task> task;  // the last record, where effects are deferred
};

/// What a program may set on a kernel.
struct KernelAttributes {
  int max_dynamic_shared_bytes = 0;
  int carveout_percent = -1;
  std::array<unsigned, 3> cluster{0, 0, 0};
  int non_portable_cluster = 0;
  int cluster_scheduling = 0;
  CUfunc_cache cache_preference = CU_FUNC_CACHE_PREFER_NONE;
};

struct Function : Object {
  static constexpr Kind kind = Kind::function;
  Function() : Object(kind) {}

  const KernelCode* code = nullptr;
  Module* module = nullptr;
  KernelAttributes attributes;
  // What the launch functions of CUDA 3 set step by step.
  std::array<unsigned, 3> legacy_block{1, 1, 1};
  unsigned legacy_shared_bytes = 0;
  std::vector<std::byte> legacy_parameters;
};

struct Module : Object {
  static constexpr Kind kind = Kind::module;
  Module() : Object(kind) {}

  Context* context = nullptr;
  Library* library = nullptr;  // null for a module of its own
  std::shared_ptr<const ModuleImage> image;
  std::vector<Function*> functions;               // as in the image
  std::map<std::string, std::uintptr_t> globals;  // where their blocks begin
};

struct Kernel : Object {
  static constexpr Kind kind = Kind::kernel;
  Kernel() : Object(kind) {}

  const KernelCode* code = nullptr;
  Library* library = nullptr;
  std::size_t index = 0;
  std::unordered_map<int, KernelAttributes> attributes;  // by device
};

struct Library : Object {
  static constexpr Kind kind = Kind::library;
  Library() : Object(kind) {}

  std::shared_ptr<const ModuleImage> image;
  std::vector<Kernel*> kernels;
  std::unordered_map<Context*, Module*> modules;
};

struct MemoryPool : Object {
  static constexpr Kind kind = Kind::pool;
  MemoryPool() : Object(kind) {}

  int device = 0;
  bool is_default = false;
  std::uint64_t release_threshold = 0;
};

struct Context : Object {
  static constexpr Kind kind = Kind::context;
  Context() : Object(kind) {}

  int device = 0;
  std::uint32_t id = 0;
  unsigned flags = 0;
  bool primary = false;
  CUresult error = CUDA_SUCCESS;  // sticky
  CUfunc_cache cache_preference = CU_FUNC_CACHE_PREFER_NONE;
  std::map<CUlimit, std::size_t> limits;
  std::set<Stream*> streams;  // the legacy one too
  std::set<Event*> events;
  std::set<Module*> modules;
  Stream* legacy = nullptr;
  std::map<std::thread::id, Stream*> per_thread;
  std::set<int> peers;
  std::vector<std::shared_ptr<Task>> left_behind;  // of blocking streams that were destroyed
  double destroyed_ready = 0;                      // when all work of destroyed streams is done
};

}  // namespace simcuda

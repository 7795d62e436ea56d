#include "intercept/nccl/nccl_caller.hpp"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <string_view>

#include "intercept/nccl/nccl_library.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_libraries = 4;  // copies of NCCL, as the frontend tells apart
constexpr int most_frames = 64;
// Hooks of ours, the CUDA runtime, perhaps a plugin: NCCL lies no deeper below what it calls. The
// program's own stack may be much deeper, and it may ask for memory often.
constexpr int nearest_frames = 24;

struct LibraryRange {
  std::uintptr_t begin = 0;
  std::uintptr_t gives_memory = 0;     ///< ncclMemAlloc, by which the program asks for its own
  std::atomic<std::uintptr_t> end{0};  ///< set last
};
constinit std::array<LibraryRange, most_libraries> ranges{};
constinit std::array<std::atomic<void*>, most_libraries> libraries{};
constinit std::atomic<std::size_t> num_ranges{0};
constinit std::atomic<int> release_number{0};
constinit std::atomic<const char*> unknown{nullptr};

/// The mapped object that an address lies in.
struct Object {
  std::uintptr_t address = 0;
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;
};

int find_object(dl_phdr_info* info, std::size_t, void* data) {
  auto& wanted = *static_cast<Object*>(data);
  Object one;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    one.begin = begin < one.begin ? begin : one.begin;
    one.end = begin + segment.p_memsz > one.end ? begin + segment.p_memsz : one.end;
  }
  if (wanted.address < one.begin || wanted.address >= one.end) return 0;
  wanted.begin = one.begin;
  wanted.end = one.end;
  return 1;
}

void learn(void* library) noexcept {
  // A thread that meets one that is being learnt goes on without it.
  for (std::size_t i = 0; i < most_libraries; ++i) {
    void* there = nullptr;
    if (libraries[i].load(std::memory_order_acquire) == library) return;
    if (!libraries[i].compare_exchange_strong(there, library)) {
      if (there == library) return;
      continue;
    }
    void* const code = dlsym(library, "pncclGetVersion");
    Dl_info info{};
    if (code == nullptr || dladdr(code, &info) == 0 || info.dli_fname == nullptr) {
      unknown.store("the NCCL that the program calls cannot be found");
      return;
    }
    int number = 0;
    if (reinterpret_cast<int (*)(int*)>(code)(&number) == nccl_success)
      release_number.store(number);
    // Where it is a part of the program, what it calls for cannot be told from what the rest does.
    const std::string_view path(info.dli_fname);
    if (!path.substr(path.rfind('/') + 1).starts_with("libnccl")) {
      unknown.store("NCCL is linked into the program, so its memory cannot be told from others'");
      return;
    }
    Object object;
    object.address = reinterpret_cast<std::uintptr_t>(code);
    (void)dl_iterate_phdr(&find_object, &object);
    ranges[i].begin = object.begin;
    ranges[i].gives_memory = reinterpret_cast<std::uintptr_t>(dlsym(library, "pncclMemAlloc"));
    ranges[i].end.store(object.end, std::memory_order_release);
    if (num_ranges.load() < i + 1) num_ranges.store(i + 1);
    return;
  }
  unknown.store("there are more copies of NCCL in the process than are told apart");
}

const LibraryRange* range_of(std::uintptr_t address) noexcept {
  const std::size_t known = num_ranges.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < known; ++i) {
    const std::uintptr_t end = ranges[i].end.load(std::memory_order_acquire);
    if (end != 0 && address >= ranges[i].begin && address < end) return &ranges[i];
  }
  return nullptr;
}

struct Walk {
  int frames = 0;
  bool found = false;
  bool gives_memory = false;
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* context, void* data) {
  auto& walk = *static_cast<Walk*>(data);
  if (const LibraryRange* range = range_of(static_cast<std::uintptr_t>(_Unwind_GetIP(context)))) {
    walk.found = true;
    walk.gives_memory =
        walk.gives_memory ||
        static_cast<std::uintptr_t>(_Unwind_GetRegionStart(context)) == range->gives_memory;
  } else if (walk.found) {
    return _URC_END_OF_STACK;
  }
  return ++walk.frames == nearest_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/// The libraries of threads' entry functions, which say nothing of whose a thread is.
struct Runtime {
  Object libc;
  Object libstdcxx;
  [[nodiscard]] bool has(std::uintptr_t address) const noexcept {
    return (address >= libc.begin && address < libc.end) ||
           (address >= libstdcxx.begin && address < libstdcxx.end);
  }
};

const Runtime& runtime_code() noexcept {
  static const Runtime code = [] {
    Runtime both;
    both.libc.address = reinterpret_cast<std::uintptr_t>(&gnu_get_libc_version);
    both.libstdcxx.address = reinterpret_cast<std::uintptr_t>(&std::terminate);
    (void)dl_iterate_phdr(&find_object, &both.libc);
    (void)dl_iterate_phdr(&find_object, &both.libstdcxx);
    return both;
  }();
  return code;
}

struct Bottom {
  int frames = 0;
  bool is_nccl = false;     ///< the lowest frame that says whose thread it is
  bool is_reached = false;  ///< below it the thread's entry was seen
};

_Unwind_Reason_Code look_at_bottom(_Unwind_Context* context, void* data) {
  auto& bottom = *static_cast<Bottom*>(data);
  const auto address = static_cast<std::uintptr_t>(_Unwind_GetIP(context));
  bottom.is_reached = runtime_code().has(address);
  if (!bottom.is_reached) bottom.is_nccl = range_of(address) != nullptr;
  return ++bottom.frames == most_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

bool is_thread_of_nccl() noexcept {
  if (num_ranges.load(std::memory_order_acquire) == 0) return false;
  Bottom bottom;
  (void)_Unwind_Backtrace(&look_at_bottom, &bottom);
  return bottom.is_nccl && bottom.is_reached;
}

void find_nccl_code(const contextune_nccl_call& call) noexcept {
  if (call.num_made == 0 || call.library == nullptr) return;
  (void)runtime_code();  // while nobody waits for the loader
  learn(call.library);
}

bool is_called_by_nccl() noexcept {
  if (num_ranges.load(std::memory_order_acquire) == 0) return false;
  Walk walk;
  (void)_Unwind_Backtrace(&look_at_frame, &walk);
  return walk.found && !walk.gives_memory;
}

int nccl_version() noexcept {
  return release_number.load(std::memory_order_relaxed);
}

const char* nccl_code_unknown() noexcept {
  return unknown.load(std::memory_order_acquire);
}

}  // namespace contextune::intercept

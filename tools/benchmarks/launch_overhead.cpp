// What a kernel launch pays for the frontend: the exported wrapper against the driver's own entry
// point, called in alternation in one process. Each case is a process of its own, because how the
// frontend behaves is decided once in a process.
//
// Works on any driver that is found as libcuda.so.1; on a simulated one the figures say so.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <simcuda/kernel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Dlsym = void* (*)(void*, const char*);

struct Case {
  const char* name;
  const char* disable;  // CONTEXTUNE_DISABLE
  const char* region;   // CONTEXTUNE_REGION
  bool needs_core;
  bool inside;   // of the region, which is a `profiler` region then
  double limit;  // extra seconds that a launch may cost, or a hundredth of what it costs the host
};

// Without a core a launch takes the same way as outside of regions: the two rows also show how far
// this host tells two processes apart.
constexpr Case cases[] = {
    {"no core", "1", "", false, false, std::numeric_limits<double>::infinity()},
    {"outside regions", "0", "nvtx:launch_overhead never enters this", true, false, 20e-9},
    {"tuned region", "0", "profiler", true, true, 150e-9},
};

/// The driver as one of its two callers sees it.
class Driver {
 public:
  Driver(Dlsym lookup, void* library) : lookup_(lookup), library_(library) {}

  template <class Function>
  Function* get(const char* name) const {
    void* found = lookup_(library_, name);
    if (found == nullptr) throw std::runtime_error(std::string("the driver has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  Dlsym lookup_;
  void* library_;
};

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error(std::string(what) + " failed with CUDA error " +
                             std::to_string(static_cast<int>(result)));
  }
}

/// An empty kernel, for a real or a simulated driver; beside it stands another just like it, which
/// is what the tuned region launches in its place.
CUfunction load_empty_kernel(const Driver& driver, bool simulated) {
  static const simcuda_kernel empty = simcuda::whole_launch_kernel<>("empty", nullptr, nullptr);
  static const simcuda_kernel same = simcuda::whole_launch_kernel<>("same", nullptr, nullptr);
  static const simcuda_kernel* const kernels[] = {&empty, &same};
  static const simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 2};
  const char* image =
      ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n"
      ".visible .entry same()\n{\nret;\n}\n";
  if (simulated) {
    driver.get<int(const simcuda_kernel_table*)>("simcuda_register_kernels")(&table);
    image = "simcuda image 1\nkernel empty\nkernel same\n";
  }
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(driver.get<CUresult(CUmodule*, const void*)>("cuModuleLoadData")(&module, image),
        "loading the empty kernel");
  check(driver.get<CUresult(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(
            &function, module, "empty"),
        "finding the empty kernel");
  return function;
}

using Launch = CUresult(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**);

double seconds_of_a_launch(Launch* launch, CUfunction kernel, int launches) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < launches; ++i) {
    check(launch(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), "a launch");
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / launches;
}

double quantile(std::vector<double> values, double part) {
  const auto place = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

/// Whether the rank log says that the region is tuned.
bool has_finished() {
  std::ifstream log(std::string(std::getenv("CONTEXTUNE_LOG_DIR")) + "/rank-0.log");
  const std::string own = " pid=" + std::to_string(getpid()) + " ";
  for (std::string line; std::getline(log, line);) {
    if (line.find(own) != std::string::npos && line.find(" event=summary ") != std::string::npos) {
      return true;
    }
  }
  return false;
}

int measure(const Case& which, int batches, int launches) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
  void* libc = dlopen("libc.so.6", RTLD_LAZY);
  const auto real_dlsym = reinterpret_cast<Dlsym>(dlvsym(libc, "dlsym", "GLIBC_2.34"));
  const Driver bare(real_dlsym, library);
  const Driver routed(&dlsym, library);
  Launch* const real_launch = bare.get<Launch>("cuLaunchKernel");
  Launch* const our_launch = routed.get<Launch>("cuLaunchKernel");
  if (real_launch == our_launch) {
    throw std::runtime_error("the frontend is not preloaded: both launches are the driver's own");
  }
  const bool simulated = real_dlsym(library, "simcuda_version") != nullptr;

  check(routed.get<CUresult(unsigned)>("cuInit")(0), "cuInit");
  CUcontext context = nullptr;
  check(routed.get<CUresult(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain")(&context, 0),
        "retaining the context");
  check(routed.get<CUresult(CUcontext)>("cuCtxSetCurrent")(context), "setting the context");
  const CUfunction kernel = load_empty_kernel(routed, simulated);
  auto* const synchronize = routed.get<CUresult()>("cuCtxSynchronize");
  auto* const enter = routed.get<CUresult()>("cuProfilerStart");
  auto* const leave = routed.get<CUresult()>("cuProfilerStop");
  const bool core = dlopen("libcontextune.so", RTLD_NOLOAD | RTLD_LAZY) != nullptr;
  if (which.needs_core != core) {
    throw std::runtime_error(core
                                 ? "there is a core, but CONTEXTUNE_DISABLE was set"
                                 : "libcontextune.so is not beside the frontend, or did not start");
  }

  if (which.inside) {
    // What is measured is the state after the last stage.
    constexpr int most_passes = 20000;
    for (int pass = 0; !has_finished(); ++pass) {
      if (pass == most_passes) throw std::runtime_error("the tuning does not end");
      enter();
      seconds_of_a_launch(our_launch, kernel, 4);
      check(synchronize(), "waiting for a pass");
      leave();
    }
    enter();
  }
  std::vector<double> real_times;
  std::vector<double> our_times;
  std::vector<double> extra;
  seconds_of_a_launch(real_launch, kernel, launches);
  seconds_of_a_launch(our_launch, kernel, launches);
  check(synchronize(), "warming up");
  for (int batch = 0; batch < batches; ++batch) {
    // Which goes first alternates, so that neither has the warmer caches.
    const bool ours_first = batch % 2 != 0;
    const double first =
        seconds_of_a_launch(ours_first ? our_launch : real_launch, kernel, launches);
    check(synchronize(), "waiting for a batch");
    const double second =
        seconds_of_a_launch(ours_first ? real_launch : our_launch, kernel, launches);
    check(synchronize(), "waiting for a batch");
    our_times.push_back(ours_first ? first : second);
    real_times.push_back(ours_first ? second : first);
    extra.push_back(our_times.back() - real_times.back());
  }
  if (which.inside) leave();

  const double real = quantile(real_times, 0.5);
  const double ours = quantile(our_times, 0.5);
  const double middle = quantile(extra, 0.5);
  std::printf("%-16s %10.1f %12.1f %9.1f   %7.1f .. %-7.1f %8.3f   %s\n", which.name, real * 1e9,
              ours * 1e9, middle * 1e9, quantile(extra, 0.25) * 1e9, quantile(extra, 0.75) * 1e9,
              real / ours, simulated ? "simulated driver" : "real driver");
  return middle <= std::max(which.limit, 0.01 * real) ? 0 : 1;
}

/// What the cases leave behind: a space for the empty kernel, and rank logs.
class Scratch {
 public:
  Scratch() : folder_(std::filesystem::temp_directory_path() / "contextune-launch-XXXXXX") {
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
    std::ofstream(space()) << "kernel \"empty\" {\n"
                              "  variants = { \"empty\", \"same\" },\n"
                              "  apply = function(config, launch) end,\n"
                              "}\n";
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] std::string space() const { return folder_ + "/space.lua"; }
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// Starts this program again with the frontend preloaded. Returns its exit code.
int run_case(const Case& which, const std::string& frontend, const Scratch& scratch,
             const std::vector<std::string>& counts) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    setenv("LD_PRELOAD", frontend.c_str(), 1);
    setenv("CONTEXTUNE_DISABLE", which.disable, 1);
    setenv("CONTEXTUNE_STORE", "off", 1);
    setenv("CONTEXTUNE_REGION", which.region, 1);
    setenv("CONTEXTUNE_SPACE", scratch.space().c_str(), 1);
    // A winner other than the launch as written, in the same shape.
    setenv("CONTEXTUNE_FORCE", "empty=variant=same", 1);
    setenv("CONTEXTUNE_LOG_DIR", scratch.folder().c_str(), 0);  // the caller's, where it has one
    execl("/proc/self/exe", "launch_overhead", "--measure", which.name, counts[0].c_str(),
          counts[1].c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

constexpr const char* usage =
    "usage: launch_overhead [--frontend libcontextune_preload.so] [--batches N] [--launches N]\n"
    "                       [--processes N] [--case NAME] [--check]\n"
    "Compares a launch through the frontend with the bare driver call, in nanoseconds: medians "
    "over\n"
    "N batches of N launches each, and the middle half of the differences; a line for each "
    "process,\n"
    "since where its memory lies makes a difference. --check: fail when a launch costs more than "
    "it\n"
    "may (20 ns outside regions, 150 ns in a tuned region, or 1 % of the driver's where that is "
    "more)\n"
    "in more than half of the processes.\n";

int run_all(const std::vector<std::string>& arguments) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string frontend = self.parent_path().parent_path() / "lib/libcontextune_preload.so";
  std::vector<std::string> counts = {"4000", "200"};
  bool fail_over_limit = false;
  std::string only;
  int processes = 3;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--check") {
      fail_over_limit = true;
    } else if (arguments[i] == "--frontend" && has_value) {
      frontend = std::filesystem::absolute(arguments[++i]);
    } else if (arguments[i] == "--case" && has_value) {
      only = arguments[++i];
    } else if (arguments[i] == "--processes" && has_value) {
      processes = std::max(1, std::stoi(arguments[++i]));
    } else if (arguments[i] == "--batches" && has_value) {
      counts[0] = arguments[++i];
    } else if (arguments[i] == "--launches" && has_value) {
      counts[1] = arguments[++i];
    } else {
      std::fputs(usage, arguments[i] == "--help" ? stdout : stderr);
      return arguments[i] == "--help" ? 0 : 2;
    }
  }
  if (!std::filesystem::exists(frontend)) {
    throw std::runtime_error(frontend +
                             " does not exist: build contextune_preload, or say "
                             "--frontend FILE");
  }
  const bool has_core =
      std::filesystem::exists(std::filesystem::path(frontend).replace_filename("libcontextune.so"));
  std::printf("%-16s %10s %12s %9s   %-18s %8s\n", "launch, in ns", "driver", "frontend", "extra",
              "middle half", "rate");
  const Scratch scratch;
  int result = 0;
  bool ran = false;
  for (const Case& which : cases) {
    if (!only.empty() && only != which.name) continue;
    ran = true;
    if (which.needs_core && !has_core) {
      std::printf("%-16s skipped: there is no libcontextune.so beside the frontend\n", which.name);
      continue;
    }
    int over_limit = 0;
    for (int process = 0; process < processes; ++process) {
      const int code = run_case(which, frontend, scratch, counts);
      if (code > 1) return code;
      over_limit += code;
    }
    if (2 * over_limit > processes) result = 1;
  }
  if (!ran) throw std::runtime_error("there is no case \"" + only + "\"");
  return fail_over_limit ? result : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    if (arguments.size() == 4 && arguments[0] == "--measure") {
      for (const Case& which : cases) {
        if (arguments[1] == which.name) {
          return measure(which, std::stoi(arguments[2]), std::stoi(arguments[3]));
        }
      }
    }
    return run_all(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "launch_overhead: %s\n", error.what());
    return 3;
  }
}

// Programs drawn from seeds, each with one region, one after another in one process. They know
// nothing of tuning: what they print must be the same whatever watches them.
#include <cuda.h>
#include <simcuda/simcuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "check.hpp"
#include "plan.hpp"
#include "program.hpp"
#include "simulated_kernels.hpp"

namespace {

const char* fault = nullptr;
bool in_order = false;

/// Faults hit nothing of the program's own: it calls nothing while its region ends.
void set_fault(bool before) {
  if (simcuda_set_fault(before ? fault : "") != 0) std::abort();
}

void run(std::uint64_t seed) {
  const Plan plan = make_plan(seed);
  simcuda_set_order(plan.deferred && !in_order ? 1 : 0, seed);
  std::string text = region_name(seed) + " expect=";
  for (std::size_t i = 0; i < plan.expected.size(); ++i) {
    text += (i == 0 ? "" : ",") + plan.expected[i];
  }
  text += " visits=" + std::to_string(plan.visits) + " wrong=";
  for (const std::string& kernel : plan.wrong_kernels) text += kernel + ",";
  std::printf("%s", text.c_str());
  std::fflush(stdout);
  Program program(plan);
  if (fault != nullptr) program.around_end = &set_fault;
  program.begin();
  for (unsigned visit = 0; visit < plan.visits; ++visit) {
    program.visit();
    if (!plan.waits_between) continue;
    std::printf(" %016llx", static_cast<unsigned long long>(program.digest()));
  }
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf(" result=%016llx\n", static_cast<unsigned long long>(program.digest()));
  std::fflush(stdout);
}

int usage(int status) {
  std::fputs(
      "usage: random_regions [--describe] [--in-order] [--fault FAULT] FIRST_SEED [COUNT]\n"
      "Runs the programs of COUNT seeds (1) and prints what each computed.\n"
      "  --describe     prints what the programs are instead\n"
      "  --in-order     all work has its effect at the call, whatever the seed says\n"
      "  --fault FAULT  a fault of the simulated driver while a region ends\n",
      status == 0 ? stdout : stderr);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  bool describes = false;
  int at = 1;
  for (; at < argc && std::strncmp(argv[at], "--", 2) == 0; ++at) {
    if (std::strcmp(argv[at], "--help") == 0) return usage(0);
    if (std::strcmp(argv[at], "--describe") == 0) {
      describes = true;
    } else if (std::strcmp(argv[at], "--in-order") == 0) {
      in_order = true;
    } else if (std::strcmp(argv[at], "--fault") == 0 && at + 1 < argc) {
      fault = argv[++at];
    } else {
      return usage(2);
    }
  }
  if (at >= argc || at + 2 < argc) return usage(2);
  const std::uint64_t first = std::strtoull(argv[at], nullptr, 10);
  const std::uint64_t count = at + 1 < argc ? std::strtoull(argv[at + 1], nullptr, 10) : 1;
  if (describes) {
    for (std::uint64_t i = 0; i < count; ++i)
      std::fputs(describe(make_plan(first + i)).c_str(), stdout);
    return 0;
  }
  if (!register_kernels()) return 2;
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (std::uint64_t i = 0; i < count; ++i) run(first + i);
  check(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
  return 0;
}

// Where the search of the rank log's fuzz target begins: a line of every event.
#include "fuzz_target.hpp"

namespace {

std::string lines(const char* level, std::initializer_list<const char*> events) {
  std::string text;
  for (const char* const event : events) {
    text += "2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=" + std::string(level) +
            " event=" + event + "\n";
  }
  return text;
}

}  // namespace

FuzzInputs fuzz_inputs() {
  FuzzInputs inputs;
  const std::string begin = lines(
      "info",
      {R"(start version=0.1.0 program=./engine gpu="NVIDIA H200" compute_capability=9.0 num_sms=132 driver=13.0 simulated=no mode=auto regions=nvtx:decode timer=cupti world_size=2)",
       "stage region=decode stage=table generation=0 elapsed_us=0",
       "region region=decode thread=4242",
       R"(site region=decode site=saxpy key="n=1048576" configs=3 launches=1 grid=8x2 block=64 shared_bytes=0 registers=16 provider=declared)",
       "store region=decode action=found sites=4 same_software=4"});
  const std::string trials = lines(
      "info",
      {R"(trial region=decode pass=0 site=saxpy key="n=1048576" config=0 warmup=1 launches=1 time_us=2.53 timer=cupti)",
       R"(trial region=decode pass=1 site=saxpy key="n=1048576" config=0 iter=0 launches=1 time_us=2.53 timer=cupti sm_mhz=1980)",
       R"(trial region=decode pass=2 site=saxpy key="n=1048576" config=1 block=256 per_sm=4 iter=0 launches=2 time_us=1.53 region_us=15.6 timer=cupti began=2026-11-20T20:33:53.119845Z)",
       R"(trial region=decode pass=3 site=saxpy key="n=1048576" config=2 block=512 per_sm=4 status=launch_failed)",
       R"(passes region=decode pass=0 last_pass=1 site=saxpy key="n=1048576" config=0)",
       R"(passes region=decode pass=2 last_pass=2 site=saxpy key="n=1048576" config=1 block=256 per_sm=4 agreed=yes)",
       R"(passes region=decode pass=3 last_pass=3 site=saxpy key="n=1048576" status=mixed)",
       R"(winner region=decode site=saxpy key="n=1048576" config=1 block=256 per_sm=4 reason=fastest time_us=1.53 default_us=2.53 gain=0.39 stage=table)",
       "confirm region=decode verdict=kept default_us=9.1 winner_us=8.2 gain=0.1 bound=0.08 "
       "pairs=8"});
  const std::string rest = lines(
      "warn",
      {R"(sync region=decode group=a8e200e459756594 group_rank=0 question=1 hash=3fe7e2a9cd284a4f wait_us=154.5 others_us=62 verdict=committed began=2026-11-20T20:33:53.119845Z)",
       R"(sync region=decode group=a8e200e459756594 group_rank=0 question=2 wait_us=5000000 verdict=aborted text="rank 1 did not come within 5 s")",
       R"(fallback reason=unmarked_collectives region=process text="Collectives keep NCCL's \"default\".")",
       R"-(kernel region=decode kernel="void gemm<64>(float*)" key="" launches=9 time_s=0.5 grid=8 block=64 shared_bytes=0 registers=16 params="ptr" timer=cupti simulated=yes)-",
       "replay region=decode visit=0 operations=8 replays=100 time_s=0.1 footprint_bytes=4096 "
       "dirty_bytes=64 device_bytes=0 host_bytes=64 save_us=1 restore_us=2 hash_us=3 "
       "timed_after=itself",
       "timer action=open timer=cupti time_us=24430.3", R"(fault text="a launch failed")",
       "summary region=decode passes=40 entries=50 tuning_s=0.5 stage=finished sites=1 tuned=1",
       "summary launches_outside=7"});
  inputs.seeds = {begin + trials + rest, begin + trials, begin, rest,
                  begin + rest + begin + trials};
  std::string other = begin + trials + rest;
  for (std::size_t at = 0; (at = other.find("pid=4242 rank=0", at)) != std::string::npos;)
    other.replace(at, 15, "pid=4243 rank=1");
  inputs.seeds.push_back(inputs.seeds.front() + other);
  for (const char* word : {"event=",     "region=",
                           "site=",      "key=",
                           "config=",    "iter=",
                           "warmup=",    "pass=",
                           "time_us=",   "default_us=",
                           "began=",     "wait_us=",
                           "reason=",    "stage=",
                           "verdict=",   "level=",
                           "rank=",      "pid=",
                           "run=",       "hash=",
                           "start",      "trial",
                           "winner",     "confirm",
                           "summary",    "fallback",
                           "sync",       "kernel",
                           "finished",   "\"",
                           "\\\"",       "\\n",
                           "\\u001b",    "\x1b[31m",
                           "\xc2\x9b",   "\xff",
                           "\t",         "\r",
                           " \n",        "nan",
                           "inf",        "1e308",
                           "-1",         "18446744073709551616",
                           "4294967295", "launch_failed",
                           "passes",     "last_pass=",
                           "agreed=yes"})
    inputs.words.emplace_back(word);
  return inputs;
}

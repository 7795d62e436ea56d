/* A program that brings a core of its own, which asks who is inside the driver: while a call of
 * each kind is held there by another thread, and when it has come back. `calls [threads
 * [sandboxed]]`: after so many other threads have used the driver; where membarrier is refused. */
#include "fake_driver.h"
#include "idle_core.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int own_call_ended = -1;

static CUresult on_launch(const struct contextune_launch* launch) {
  return ((PFN_cuLaunchKernel_v4000)frontend->real(launch->fn))(launch->function, 1, 1, 1, 1, 1, 1,
                                                                0, NULL, NULL, NULL);
}
/* Whoever asks from inside a call does not wait for itself. */
static void on_before(enum contextune_fn fn, void* const* args) {
  (void)args;
  if (fn == contextune_fn_cuStreamDestroy_v2) {
    own_call_ended = frontend->calls_ended(10000000000);
  }
}
__attribute__((visibility("default"))) const struct contextune_core* contextune_core_v1(
    const struct contextune_frontend* given) {
  frontend = given;
  core.launch = on_launch;
  core.before = on_before;
  return &core;
}

static void launch(void) {
  cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}
static void launch_graph(void) {
  cuGraphLaunch(NULL, NULL);
}
static void record(void) {
  cuEventRecord(NULL, NULL);
}
static void synchronise(void) {
  cuStreamSynchronize(NULL);
}

static const struct {
  const char* name;
  void (*call)(void);
} entries[] = {
    {"cuLaunchKernel", launch},
    {"cuGraphLaunch", launch_graph},
    {"cuEventRecord", record},
    {"cuStreamSynchronize", synchronise},
};

static void* call_it(void* call) {
  ((void (*)(void))call)();
  return NULL;
}

static pthread_t start(void (*call)(void)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, call_it, (void*)call) != 0) {
    abort();
  }
  return thread;
}

static void refuse_membarrier(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    abort();
  }
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[2], "sandboxed") == 0) {
    refuse_membarrier();
  }
  cuInit(0);
  if (frontend == NULL) {
    return 1;
  }
  printf("barrier %ld\n", syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
  const int num_threads = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 0; i < num_threads; ++i) {
    pthread_join(start(launch), NULL);
  }
  for (uint32_t shown = 0; shown < 2; ++shown) {
    __atomic_store_n(frontend->armed, shown, __ATOMIC_RELEASE);
    __atomic_store_n(frontend->recording, shown, __ATOMIC_RELEASE);
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
      const int before = fake_calls(entries[i].name);
      fake_hold(entries[i].name);
      const pthread_t other = start(entries[i].call);
      while (fake_calls(entries[i].name) == before) {
        sched_yield();
      }
      const int held = frontend->calls_ended(1000000);
      fake_hold(NULL);
      const int released = frontend->calls_ended(10000000000);
      pthread_join(other, NULL);
      printf("%s %s: %d, then %d\n", entries[i].name, shown != 0 ? "shown" : "passed", held,
             released);
    }
  }
  cuStreamDestroy(NULL);
  printf("own call %d\n", own_call_ended);
  printf("passed %llu\n", (unsigned long long)frontend->launches_passed());
  return 0;
}

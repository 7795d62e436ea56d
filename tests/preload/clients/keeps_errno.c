/* Calls every entry point that the frontend has, of each registry, before the driver is up and
 * after, and prints what errno is then. */
#define __CUDA_API_VERSION_INTERNAL
#include "fake_driver.h"
#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"
#include "preload/tuner_abi.h"

#include <dlfcn.h>
#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { first = 5, of_driver = 77 };

/* By name only: not all of them are in the libraries that this program is linked with. */
#define CONTEXTUNE_ENTRY(name, ...) \
  extern char by_name_##name[] __asm__(#name) __attribute__((weak));
#define CONTEXTUNE_NCCL(name, ...) \
  extern char by_name_##name[] __asm__(#name) __attribute__((weak));
#define CONTEXTUNE_NCCL_LISTED(...)
#include "preload/registry/cupti.def"
#include "preload/registry/driver.def"
#include "preload/registry/nccl.def"

static const struct entry {
  const char* name;
  void* reference;
} driver_entries[] =
    {
#undef CONTEXTUNE_ENTRY
#define CONTEXTUNE_ENTRY(name, ...) {#name, (void*)by_name_##name},
#include "preload/registry/driver.def"
},
  cupti_entries[] =
      {
#include "preload/registry/cupti.def"
},
  nccl_entries[] = {
#undef CONTEXTUNE_NCCL
#define CONTEXTUNE_NCCL(name, ...) {#name, (void*)by_name_##name},
#include "preload/registry/nccl.def"
};

/* Every argument is this number: an address that may be looked into, and a count that may be used.
 */
enum { number = 0x10000, bytes = 16 << 20 };

/* Integers and pointers travel in the same registers and stack slots; NCCL's ids fill 16 of these.
 */
#define INTEGERS_8 \
  uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t
#define NUMBERS_8(a) a, a, a, a, a, a, a, a
typedef int (*any_fn)(INTEGERS_8, INTEGERS_8, INTEGERS_8);

static int errno_after(void* entry, uintptr_t argument) {
  errno = first;
  if (entry != NULL) {
    ((any_fn)entry)(NUMBERS_8(argument), NUMBERS_8(argument), NUMBERS_8(argument));
  }
  return errno;
}

static void call_driver(const char* when) {
  for (size_t i = 0; i < sizeof driver_entries / sizeof driver_entries[0]; ++i) {
    const struct entry* entry = &driver_entries[i];
    void* looked_up = dlsym(RTLD_DEFAULT, entry->name);
    memset((void*)(uintptr_t)number, 0, 256);
    printf("%s %s: %d %d", when, entry->name, errno_after(entry->reference, number),
           errno_after(looked_up, number));
    /* A launch or a load that the core makes has no errno of the driver's to show. */
    const int is_cores =
        (strstr(entry->name, "Launch") != NULL || strstr(entry->name, "Load") != NULL) &&
        strstr(entry->name, "Host") == NULL;
    if (!is_cores) {
      fake_errno(of_driver);
      printf(", %d %d", errno_after(entry->reference, number), errno_after(looked_up, number));
      fake_errno(0);
    }
    printf("\n");
  }
}

static nvtxEventAttributes_t event(void) {
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "range";
  return attributes;
}

#define CALL_RangePushA nvtxRangePushA("range")
#define CALL_RangePushW nvtxRangePushW(L"range")
#define CALL_RangePushEx nvtxRangePushEx(&attributes)
#define CALL_RangePop nvtxRangePop()
#define CALL_RangeStartA id = nvtxRangeStartA("range")
#define CALL_RangeStartW id = nvtxRangeStartW(L"range")
#define CALL_RangeStartEx id = nvtxRangeStartEx(&attributes)
#define CALL_RangeEnd nvtxRangeEnd(id)
#define CALL_DomainRangePushEx nvtxDomainRangePushEx(domain, &attributes)
#define CALL_DomainRangePop nvtxDomainRangePop(domain)
#define CALL_DomainRangeStartEx id = nvtxDomainRangeStartEx(domain, &attributes)
#define CALL_DomainRangeEnd nvtxDomainRangeEnd(domain, id)
#define CALL_DomainCreateA domain = nvtxDomainCreateA("domain")
#define CALL_DomainCreateW domain = nvtxDomainCreateW(L"wide domain")
#define CALL_DomainRegisterStringA nvtxDomainRegisterStringA(domain, "string")
#define CALL_DomainRegisterStringW nvtxDomainRegisterStringW(domain, L"wide string")

static void mark_ranges(const char* when) {
  nvtxEventAttributes_t attributes = event();
  nvtxDomainHandle_t domain = nvtxDomainCreateA("first domain");
  nvtxRangeId_t id = 0;
#define CONTEXTUNE_NVTX(table, MODULE, name, ours) \
  errno = first;                                   \
  CALL_##name;                                     \
  printf("%s nvtx%s: %d\n", when, #name, errno);
#include "preload/registry/nvtx.def"
#undef CONTEXTUNE_NVTX
}

static void be_tuned(void) {
  const struct contextune_tuner_v5* plugin = dlsym(RTLD_DEFAULT, "ncclTunerPlugin_v5");
  void* context = NULL;
  float table[4] = {1, 2, 3, 4};
  int channels = 0;
  int after[3] = {first, first, first};
  if (plugin != NULL) {
    errno = first;
    plugin->init(&context, 1, 2, 1, NULL, NULL, NULL);
    after[0] = errno;
    errno = first;
    plugin->get_coll_info(context, 4, 8, 1, (contextune_tuner_table)table, 2, 2, 0, &channels);
    after[1] = errno;
    errno = first;
    plugin->end(context);
    after[2] = errno;
  }
  printf("tuner: %d %d %d\n", after[0], after[1], after[2]);
}

static void say_errno(void) {
  fprintf(stderr, "at the end: %d\n", errno);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (mmap((void*)(uintptr_t)number, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
    return 3;
  }
  printf("nvtx: %d\n", (errno = first, nvtxInitialize(NULL), errno));
  mark_ranges("early");
  for (size_t i = 0; i < sizeof driver_entries / sizeof driver_entries[0]; ++i) {
    fake_fail(driver_entries[i].name, 17); /* so that no call attaches a core */
  }
  call_driver("early");
  for (size_t i = 0; i < sizeof driver_entries / sizeof driver_entries[0]; ++i) {
    fake_fail(driver_entries[i].name, 0);
  }
  printf("attached: %d\n", errno_after((void*)by_name_cuInit, 0));
  call_driver("late");
  mark_ranges("late");
  for (size_t i = 0; i < sizeof cupti_entries / sizeof cupti_entries[0]; ++i) {
    printf("%s: %d\n", cupti_entries[i].name, errno_after(cupti_entries[i].reference, 0));
  }
  for (size_t i = 0; i < sizeof nccl_entries / sizeof nccl_entries[0]; ++i) {
    void* looked_up = dlsym(RTLD_DEFAULT, nccl_entries[i].name);
    const int direct = errno_after(nccl_entries[i].reference, number);
    printf("%s: %d %d\n", nccl_entries[i].name, direct, errno_after(looked_up, number));
  }
  be_tuned();
  atexit(say_errno);
  errno = first;
  return 0;
}

/* A library that ends with a jump into NCCL, which is part of another one. */
#include "preload/registry/nccl_types.h"

extern ncclResult_t ncclGroupStart(void);

__attribute__((visibility("default"))) int plugin_run(void);
int plugin_run(void) {
  return (int)ncclGroupStart();
}

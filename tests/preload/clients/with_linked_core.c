/* A program that brings a core of its own. */
#include "preload/contextune_abi.h"

#include <stdio.h>

__attribute__((visibility("default"))) const struct contextune_core* contextune_core_v1(
    const struct contextune_frontend* frontend) {
  fprintf(stderr, "the program's own core%s\n",
          frontend->version == CONTEXTUNE_ABI_VERSION ? "" : ", of another version");
  return NULL;
}

int main(void) {
  printf("init %d\n", (int)cuInit(0));
  return 0;
}

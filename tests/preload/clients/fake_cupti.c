/* A CUPTI that says which copy of it was called. */
#include <stdio.h>

#ifndef COPY
#error "COPY is the name of this copy"
#endif

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuptiSubscribe(void** subscriber, void* callback, void* user_data);
EXPORT int cuptiActivityEnable(int kind);
EXPORT int cuptiFinalize(void);
EXPORT int cuptiGetVersion(unsigned int* version);

int cuptiSubscribe(void** subscriber, void* callback, void* user_data) {
  printf("%s cuptiSubscribe %d\n", COPY, subscriber == callback && callback == user_data);
  return 3;
}

int cuptiActivityEnable(int kind) {
  printf("%s cuptiActivityEnable %d\n", COPY, kind);
  /* Its own call of itself is not the program's. */
  return kind > 0 ? cuptiActivityEnable(kind - 1) : 0;
}

int cuptiFinalize(void) {
  return 0;
}

int cuptiGetVersion(unsigned int* version) {
  *version = 130000;
  return 0;
}

/* Tests in C: each counts what is not as it should be. */
#pragma once

#include <stdio.h>

static int failures;
#define CHECK(what)                                              \
  do {                                                           \
    if (!(what)) {                                               \
      ++failures;                                                \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); \
    }                                                            \
  } while (0)

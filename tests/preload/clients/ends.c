/* Ends in the manner of the first argument, by exit() or by the return of main, with status 7 and a
 * handler that prints what the core has recorded so far. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show_record(void) {
  const char* path = getenv("CONTEXTUNE_TEST_RECORD");
  FILE* record = path != NULL ? fopen(path, "r") : NULL;
  char line[512] = "";
  while (record != NULL && fgets(line, sizeof line, record) != NULL) {
  }
  fprintf(stderr, "last: %s\n", line);
  puts("handler");
}

static void* end(void* unused) {
  (void)unused;
  exit(7);
}

int main(int argc, char** argv) {
  const char* manner = argc > 1 ? argv[1] : "";
  atexit(show_record);
  if (strcmp(manner, "early") == 0) {
    exit(7);
  }
  cuInit(0);
  if (strcmp(manner, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
  }
  if (strcmp(manner, "return") == 0) {
    return 7;
  }
  exit(7);
}

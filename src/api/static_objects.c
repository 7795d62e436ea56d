/* Static objects of libcontextune.so are never destroyed. The library stays loaded, and threads and
 * exit handlers of the program may use them to the very end. And libc has room for 32 handlers;
 * past that it takes memory, which it frees while the process exits: where a signal handler calls
 * exit() and has interrupted malloc, the program never ends. What has to be done at the end is
 * registered with on_exit. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): its name */
int __cxa_atexit(void (*destroy)(void*), void* object, void* library);
int __cxa_atexit(void (*destroy)(void*), void* object, void* library) {
  (void)destroy;
  (void)object;
  (void)library;
  return 0;
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

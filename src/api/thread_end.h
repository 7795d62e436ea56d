/* The end of the calling thread (pthread_exit, pthread_cancel) in code of the program that we call.
 * It unwinds the program's functions, and must not unwind ours: libcontextune.so has an unwinder of
 * its own, and the one that glibc ends threads with cannot work with it. So it stops where we have
 * called the program, as at a pthread_cleanup_push of C. Our functions return, and the outermost
 * has the thread end from there. */
#pragma once

#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the thread goes on to its end. */
struct contextune_thread_end {
  __pthread_unwind_buf_t rest;
};

/* Calls it, and returns 0; 1: the thread ends in it. Exceptions must not leave it. */
int contextune_call_program(void (*call)(void* user), void* user,
                            struct contextune_thread_end* end);

/* By a function that has nothing to destroy. */
__attribute__((noreturn)) void contextune_end_thread(struct contextune_thread_end* end);

#ifdef __cplusplus
}
#endif

#include "api/thread_end.h"

#include <setjmp.h>

/* What pthread_cleanup_push and pthread_cleanup_pop do in C, in two functions. */

/* The buffer ends where a signal mask would follow, which is not saved. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

int contextune_call_program(void (*call)(void* user), void* user,
                            struct contextune_thread_end* end) {
  struct __jmp_buf_tag* here = (struct __jmp_buf_tag*)(void*)end->rest.__cancel_jmp_buf;
  if (sigsetjmp(here, 0) != 0) return 1;
  __pthread_register_cancel(&end->rest);
  call(user);
  __pthread_unregister_cancel(&end->rest);
  return 0;
}

void contextune_end_thread(struct contextune_thread_end* end) {
  __pthread_unwind_next(&end->rest);
}

/* A driver that does nothing but remember: each entry of the registry counts its calls and keeps a
 * digest of the arguments it got. Its addresses, aliases and failures are under the tests' control,
 * which a simulated driver's are not. */
#pragma once

#include <stdint.h>

int fake_calls(const char* name);             /* how often the entry was called */
uint64_t fake_digest(void);                   /* of the arguments of this thread's last call */
void* fake_entry(const char* name);           /* the entry's own address */
void fake_fail(const char* name, int result); /* the entry's result from now on */
void fake_errno(int error); /* what every entry leaves in errno; 0: it leaves that alone */
void fake_hold(
    const char* name); /* calls of the entry do not return until another is held; NULL: none */

/* What guards.S and the C files agree on. */
#pragma once

/* Guards for functions that are listed nowhere. The driver has about 650 functions in all. */
#define CONTEXTUNE_SPARE_GUARDS 1024
#define CONTEXTUNE_GUARD_BYTES 16 /* of code, each */
#define CONTEXTUNE_HELD_OFFSET 8  /* of contextune_hot.held */

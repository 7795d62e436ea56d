/* Declares what the registry lists a second time, after the machine's nccl.h: the compiler refuses
 * a signature that is another one. Functions and types that this nccl.h lacks come with the
 * declaration here. */
#include <nccl.h>
#include <stdint.h>

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 27, 3)
typedef struct ncclWindow* ncclWindow_t;
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 2)
typedef struct ncclWaitSignalDesc ncclWaitSignalDesc_t;
#endif
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 29, 7)
typedef int ncclCommMemStat_t;
#endif

#define CONTEXTUNE_NCCL(name, since, kind, why_not, params, ...) ncclResult_t name params;
#define DECLARE_declared(name, result, params) result name params;
#define DECLARE_unchecked(name, result, params)
#define CONTEXTUNE_NCCL_LISTED(name, since, kind, why_not, check, result, params) \
  DECLARE_##check(name, result, params)
#include "preload/registry/nccl.def"

/* What the frontend takes them for is what they are. */
_Static_assert(sizeof(ncclUniqueId) == 128, "an id is passed by value");
_Static_assert(sizeof(ncclResult_t) == 4 && sizeof(ncclDataType_t) == 4 && sizeof(ncclRedOp_t) == 4,
               "enumerations are numbers of 4 bytes");
_Static_assert(ncclSuccess == 0 && ncclSystemError == 2 && ncclInProgress == 7, "results");

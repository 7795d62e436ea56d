/* Variables of the environment that the frontend looks at. The program may call setenv on another
 * thread, and nobody may read the environment meanwhile: so it is read no more once there is a
 * core, which keeps a copy as well. NCCL_TUNER_PLUGIN has to be set all the same, where NCCL looks
 * for it (tuner_variable.c). */
#include "frontend.h"

#include <stdlib.h>
#include <string.h>

static const char* const names[contextune_variable_count] = {
    [contextune_variable_disable] = "CONTEXTUNE_DISABLE",
    [contextune_variable_nvtx_chain] = "CONTEXTUNE_NVTX_CHAIN",
    [contextune_variable_region] = "CONTEXTUNE_REGION",
    [contextune_variable_nccl_tuner_plugin] = "NCCL_TUNER_PLUGIN",
    [contextune_variable_nccl_net_plugin] = "NCCL_NET_PLUGIN",
    [contextune_variable_nccl_algo] = "NCCL_ALGO",
    [contextune_variable_nccl_proto] = "NCCL_PROTO",
    [contextune_variable_nccl_cta_policy] = "NCCL_CTA_POLICY",
    [contextune_variable_nccl_conf_file] = "NCCL_CONF_FILE",
};
static char* values[contextune_variable_count];
static bool kept;

const char* contextune_variable(enum contextune_variable which) {
  return __atomic_load_n(&kept, __ATOMIC_ACQUIRE) ? values[which] : getenv(names[which]);
}

const char* contextune_variable_name(enum contextune_variable which) {
  return names[which];
}

void contextune_keep_variables(void) {
  for (unsigned int i = 0; i < contextune_variable_count; ++i) {
    const char* value = getenv(names[i]);
    values[i] = value != NULL ? strdup(value) : NULL;
  }
  __atomic_store_n(&kept, true, __ATOMIC_RELEASE);
}

/* A user's own NVTX tool: sees ranges, knows levels, makes handles. With NVTX_TOOL=decline it asks
 * for nothing after all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

static __thread int level;

static int push_a(const char* message) {
  printf("tool push %s\n", message);
  return level++;
}
static int pop(void) {
  printf("tool pop\n");
  return --level;
}
static void mark_a(const char* message) {
  printf("tool mark %s\n", message);
}
static nvtxRangeId_t start_a(const char* message) {
  static nvtxRangeId_t last = 500;
  printf("tool start %s\n", message);
  return ++last;
}
static void end(nvtxRangeId_t id) {
  printf("tool end %d\n", (int)id);
}
static nvtxDomainHandle_t create_a(const char* name) {
  printf("tool domain %s\n", name);
  return (nvtxDomainHandle_t)strdup(name);
}
static int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  printf("tool push in %s\n", (const char*)domain);
  return event != NULL ? level++ : -1;
}
static nvtxStringHandle_t register_a(nvtxDomainHandle_t domain, const char* text) {
  printf("tool string %s in %s\n", text, (const char*)domain);
  return (nvtxStringHandle_t)strdup(text);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const NvtxExportTableCallbacks* callbacks =
      (const NvtxExportTableCallbacks*)get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable core = NULL;
  NvtxFunctionTable core2 = NULL;
  unsigned int size = 0;
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &size);
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &size);
  *core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push_a;
  *core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
  *core[NVTX_CBID_CORE_MarkA] = (NvtxFunctionPointer)mark_a;
  *core[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start_a;
  *core[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
  *core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_a;
  *core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)domain_push;
  *core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_a;
  const char* manner = getenv("NVTX_TOOL");
  return manner == NULL || strcmp(manner, "decline") != 0;
}

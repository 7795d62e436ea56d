/* NVTX ranges of every kind, before and after the driver is up, on two threads. Prints what NVTX
 * answers. */
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static sem_t pushed;
static sem_t initialised;

static void* other_thread(void* unused) {
  (void)unused;
  nvtxRangePushA("other thread, early");
  sem_post(&pushed);
  sem_wait(&initialised);
  /* Nothing but this launch tells that the thread has an open range. */
  cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  nvtxRangePop();
  return NULL;
}

static nvtxEventAttributes_t event(const char* text) {
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

int main(void) {
  sem_init(&pushed, 0, 0);
  sem_init(&initialised, 0, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, other_thread, NULL);
  sem_wait(&pushed);

  char early[] = "early";
  printf("push %d\n", nvtxRangePushA(early));
  memset(early, 'x', sizeof early - 1); /* the program may reuse its memory */
  nvtxRangePushA("closed early");
  printf("pop %d\n", nvtxRangePop());
  nvtxDomainHandle_t domain = nvtxDomainCreateA("dom");
  nvtxEventAttributes_t attributes = event("early in a domain");
  printf("domain push %d\n", nvtxDomainRangePushEx(domain, &attributes));
  nvtxRangeId_t whole = nvtxRangeStartA("early, process-wide");
  nvtxRangeId_t ended = nvtxRangeStartA("ended early");
  nvtxRangeEnd(ended);

  printf("init %d\n", (int)cuInit(0));
  sem_post(&initialised);
  pthread_join(thread, NULL);

  printf("push %d\n", nvtxRangePushW(L"wide \u00e9\u20ac\U0001F600"));
  nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = string;
  printf("domain push %d\n", nvtxDomainRangePushEx(domain, &attributes));
  printf("domain pop %d\n", nvtxDomainRangePop(domain));
  nvtxStringHandle_t wide = nvtxDomainRegisterStringW(domain, L"registered wide \u00e9");
  attributes.message.registered = wide;
  nvtxRangeId_t id = nvtxDomainRangeStartEx(domain, &attributes);
  nvtxDomainRangeEnd(domain, id);
  attributes = event("by attributes");
  printf("push %d\n", nvtxRangePushEx(&attributes));
  attributes.messageType = NVTX_MESSAGE_UNKNOWN;
  printf("push %d\n", nvtxRangePushEx(&attributes));
  for (int i = 0; i < 4; ++i) {
    printf("pop %d\n", nvtxRangePop());
  }
  nvtxDomainHandle_t same = nvtxDomainCreateA("dom");
  nvtxDomainDestroy(same);
  nvtxMarkA("mark");
  nvtxRangeEnd(whole);
  printf("domain pop %d\n", nvtxDomainRangePop(domain));
  return 0;
}

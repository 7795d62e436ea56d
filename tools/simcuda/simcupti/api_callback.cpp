#include "collector.hpp"

using simcupti::Collector;

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** str) {
  if (str == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
#define RESULT_NAME(NAME) \
  case NAME:              \
    *str = #NAME;         \
    return CUPTI_SUCCESS
    RESULT_NAME(CUPTI_SUCCESS);
    RESULT_NAME(CUPTI_ERROR_INVALID_PARAMETER);
    RESULT_NAME(CUPTI_ERROR_INVALID_CONTEXT);
    RESULT_NAME(CUPTI_ERROR_INVALID_OPERATION);
    RESULT_NAME(CUPTI_ERROR_MAX_LIMIT_REACHED);
    RESULT_NAME(CUPTI_ERROR_NOT_INITIALIZED);
    RESULT_NAME(CUPTI_ERROR_QUEUE_EMPTY);
    RESULT_NAME(CUPTI_ERROR_INVALID_STREAM);
    RESULT_NAME(CUPTI_ERROR_INVALID_KIND);
    RESULT_NAME(CUPTI_ERROR_NOT_SUPPORTED);
    RESULT_NAME(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#undef RESULT_NAME
    default:
      *str = "CUPTI_ERROR_UNKNOWN";
      return CUPTI_SUCCESS;
  }
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback,
                                    void* userdata) {
  return Collector::instance().subscribe(callback, userdata, subscriber);
}

#if CUPTI_API_VERSION >= 130000
CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                       CUpti_CallbackFunc callback, void* userdata,
                                       CUpti_SubscriberParams*) {
  return Collector::instance().subscribe(callback, userdata, subscriber);
}
#endif

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  return Collector::instance().unsubscribe(subscriber);
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return Collector::instance().enable_callback(enable != 0, subscriber, domain, cbid, false);
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                       CUpti_CallbackDomain domain) {
  return Collector::instance().enable_callback(enable != 0, subscriber, domain, 0, true);
}

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  return Collector::instance().enable_callback(enable != 0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                               0, true);
}

}  // extern "C"

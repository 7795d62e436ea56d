// The one callback subscriber that CUPTI allows.
#include "collector.hpp"
#include "driver_link.hpp"

namespace simcupti {

namespace {
int subscriber_marker;  // its address is the handle
CUpti_SubscriberHandle handle() {
  return reinterpret_cast<CUpti_SubscriberHandle>(&subscriber_marker);
}
}  // namespace

CUptiResult Collector::subscribe(CUpti_CallbackFunc callback, void* user_data,
                                 CUpti_SubscriberHandle* subscriber) {
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (callback == nullptr || subscriber == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  {
    const std::lock_guard lock(mutex_);
    if (subscriber_callback_ != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    subscriber_callback_ = callback;
    subscriber_data_ = user_data;
  }
  *subscriber = handle();
  listen();
  return CUPTI_SUCCESS;
}

CUptiResult Collector::unsubscribe(CUpti_SubscriberHandle subscriber) {
  {
    const std::lock_guard lock(mutex_);
    if (subscriber != handle() || subscriber_callback_ == nullptr)
      return CUPTI_ERROR_INVALID_PARAMETER;
    subscriber_callback_ = nullptr;
    callbacks_.reset();
  }
  listen();
  return CUPTI_SUCCESS;
}

CUptiResult Collector::enable_callback(bool on, CUpti_SubscriberHandle subscriber,
                                       CUpti_CallbackDomain domain, std::uint32_t cbid,
                                       bool whole_domain) {
  const std::lock_guard lock(mutex_);
  if (subscriber != handle() || subscriber_callback_ == nullptr)
    return CUPTI_ERROR_INVALID_PARAMETER;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return CUPTI_SUCCESS;  // nothing else ever calls
  if (whole_domain) {
    if (on)
      callbacks_.set();
    else
      callbacks_.reset();
    return CUPTI_SUCCESS;
  }
  if (cbid >= cbid_count) return CUPTI_ERROR_INVALID_PARAMETER;
  callbacks_.set(cbid, on);
  return CUPTI_SUCCESS;
}

}  // namespace simcupti

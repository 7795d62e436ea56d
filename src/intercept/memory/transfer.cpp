#include "intercept/memory/transfer.hpp"

namespace contextune::intercept {
namespace {

template <typename T>
T argument(void* const* args, std::size_t index) noexcept {
  return *static_cast<const T*>(args[index]);
}

/// @param at the stream's place among the arguments; none: the call has none
Transfer on_stream(void* const* args, std::size_t at, bool per_thread) noexcept {
  Transfer transfer;
  transfer.synchronous = at == Transfer::none;
  if (at != Transfer::none) transfer.stream = argument<CUstream>(args, at);
  if (transfer.stream == nullptr) {
    transfer.stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  }
  return transfer;
}

/// Copies are (destination, source, bytes[, stream]).
Transfer copy(void* const* args, std::size_t stream, bool per_thread) noexcept {
  Transfer transfer = on_stream(args, stream, per_thread);
  transfer.size_bytes = argument<std::size_t>(args, 2);
  return transfer;
}

Transfer from_host(Transfer transfer) noexcept {
  transfer.source = 1;
  return transfer;
}

Transfer to_host(Transfer transfer) noexcept {
  transfer.destination = 0;
  return transfer;
}

}  // namespace

// The four forms of a call: waiting and not, and what a default stream means.
#define FOUR_FORMS(waiting, asynchronous, make, place) \
  case contextune_fn_##waiting:                        \
    return make(args, Transfer::none, false);          \
  case contextune_fn_##waiting##_ptds:                 \
    return make(args, Transfer::none, true);           \
  case contextune_fn_##asynchronous:                   \
    return make(args, place, false);                   \
  case contextune_fn_##asynchronous##_ptsz:            \
    return make(args, place, true);

std::optional<Transfer> transfer_of(contextune_fn fn, void* const* args) noexcept {
  const auto read = [](void* const* a, std::size_t at, bool own) {
    return from_host(copy(a, at, own));
  };
  const auto write = [](void* const* a, std::size_t at, bool own) {
    return to_host(copy(a, at, own));
  };
  const auto any = [](void* const* a, std::size_t at, bool own) {
    return from_host(to_host(copy(a, at, own)));
  };
  switch (fn) {
    FOUR_FORMS(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, read, 3)
    FOUR_FORMS(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, write, 3)
    FOUR_FORMS(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, copy, 3)
    FOUR_FORMS(cuMemcpy, cuMemcpyAsync, any, 3)
    FOUR_FORMS(cuMemsetD8_v2, cuMemsetD8Async, on_stream, 3)
    FOUR_FORMS(cuMemsetD16_v2, cuMemsetD16Async, on_stream, 3)
    FOUR_FORMS(cuMemsetD32_v2, cuMemsetD32Async, on_stream, 3)
    FOUR_FORMS(cuMemsetD2D8_v2, cuMemsetD2D8Async, on_stream, 5)
    FOUR_FORMS(cuMemsetD2D16_v2, cuMemsetD2D16Async, on_stream, 5)
    FOUR_FORMS(cuMemsetD2D32_v2, cuMemsetD2D32Async, on_stream, 5)
    default:
      return std::nullopt;
  }
}

#undef FOUR_FORMS

}  // namespace contextune::intercept

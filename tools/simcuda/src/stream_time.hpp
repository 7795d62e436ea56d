#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "contexts.hpp"

namespace simcuda {

/// What a stream's work does to the clock. It is known at the call, unless something before it in
/// the stream is work that other processes share (joint_work.hpp), which ends when they do: then it
/// is put off until that end is known, and reckoned from the host's time at the call.
/// `when` is one more time that must be known first, or null.
void put_off(Stream& stream, std::function<void()> reckon, std::shared_ptr<const Stamp> when);

/// Reckons now where all times are known, else later and in the order of the stream.
template <class Reckon>
void reckon_time(Stream& stream, Reckon&& reckon, std::shared_ptr<const Stamp> when = nullptr) {
  if (driver().with_open_times.empty() && (when == nullptr || when->known))
    reckon();
  else
    put_off(stream, std::forward<Reckon>(reckon), std::move(when));
}

/// Reckons what has become possible. To be called when a Stamp becomes known.
void reckon_what_is_known();
/// The stream goes away: reckons all that it put off, with the times that there are.
void reckon_at_last(Stream& stream);

}  // namespace simcuda

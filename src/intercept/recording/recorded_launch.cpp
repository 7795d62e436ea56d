#include "intercept/recording/recorded_launch.hpp"

#include <algorithm>
#include <cstring>

#include <contextune/error.hpp>

#include "intercept/program/arguments.hpp"

namespace contextune::intercept {

RecordedLaunch::RecordedLaunch(const contextune_launch& call,
                               std::span<const ArgumentLayout> parameters)
    : call_(call) {
  call_.thread = nullptr;  // another thread may repeat it
  const Launch launch(call);
  std::size_t size_bytes = 0;
  for (const ArgumentLayout& one : parameters) {
    size_bytes = std::max(size_bytes, one.offset_bytes + one.size_bytes);
  }
  bytes_.resize(size_bytes);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const void* argument = argument_of(launch, i, parameters[i]);
    if (argument == nullptr) {
      throw Error("argument " + std::to_string(i) + " of a launch cannot be found");
    }
    std::byte* place = bytes_.data() + parameters[i].offset_bytes;
    std::memcpy(place, argument, parameters[i].size_bytes);
    pointers_.push_back(place);
  }
  if (call.kernel_params != nullptr) {
    call_.kernel_params = pointers_.data();
    call_.extra = nullptr;
  } else if (call.extra != nullptr) {
    packed_bytes_ = bytes_.size();
    extra_[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    extra_[1] = bytes_.data();
    extra_[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    extra_[3] = &packed_bytes_;
    extra_[4] = CU_LAUNCH_PARAM_END;
    call_.extra = extra_;
  }
  if (call.config != nullptr) {
    config_ = *call.config;
    attributes_.assign(launch.attributes, launch.attributes + launch.num_attributes);
    config_.attrs = attributes_.data();
    call_.config = &config_;
  }
}

}  // namespace contextune::intercept

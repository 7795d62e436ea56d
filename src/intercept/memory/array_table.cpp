#include "intercept/memory/array_table.hpp"

#include <algorithm>

namespace contextune::intercept {

bool ArrayTable::has_surfaces() const noexcept {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(arrays_, [](const auto& one) { return one.second.surface; });
}

void ArrayTable::add(const void* handle, CUcontext context, bool surface) noexcept {
  changes_.make(mutex_, [&] {
    Array& array = arrays_.try_emplace(handle, Array{context, false, 0}).first->second;
    array.context = context;
    array.surface = array.surface || surface;
    ++array.references;
    return true;
  });
}

void ArrayTable::remove(const void* handle) noexcept {
  changes_.make(mutex_, [&] {
    const auto place = arrays_.find(handle);
    if (place == arrays_.end()) return false;
    if (--place->second.references == 0) arrays_.erase(place);
    return true;
  });
}

void ArrayTable::forget_context(CUcontext context) noexcept {
  changes_.make(mutex_, [&] {
    return std::erase_if(arrays_, [&](const auto& one) { return one.second.context == context; }) !=
           0;
  });
}

}  // namespace contextune::intercept

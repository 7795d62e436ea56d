#pragma once

#include <memory>

#include "launch.hpp"

namespace simcuda {

/// A module of `image` in a context; of `library` where it has one.
[[nodiscard]] Module* make_module(Context& context, std::shared_ptr<const ModuleImage> image,
                                  Library* library);
void destroy_module(Module* module);
/// The module of a library in a context, made at first use.
[[nodiscard]] Module& module_of(Library& library, Context& context);
/// Index of a kernel of the image. @throws Failure{NOT_FOUND}
[[nodiscard]] std::size_t index_of(const ModuleImage& image, const char* name);
/// Memory of a __device__ variable. @throws Failure{NOT_FOUND}
[[nodiscard]] const Memory::Block& global_of(const Module& module, const char* name);
/// An image from the memory of a program: NUL-terminated text.
[[nodiscard]] std::shared_ptr<const ModuleImage> image_at(const void* image);

/// Reads an attribute of a kernel. @throws Failure{INVALID_VALUE}
[[nodiscard]] int get_attribute(const KernelCode& code, const KernelAttributes& attributes,
                                CUfunction_attribute attribute);
/// @throws Failure{INVALID_VALUE}, also for attributes that cannot be set
void set_attribute(const KernelCode& code, KernelAttributes& attributes,
                   CUfunction_attribute attribute, int value);
/// Place of a parameter in the packed form. @throws Failure{INVALID_VALUE} past the last one
void get_parameter(const KernelCode& code, std::size_t index, std::size_t* offset,
                   std::size_t* bytes);

}  // namespace simcuda

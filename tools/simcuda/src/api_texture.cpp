// Texture objects: they come and go, and tell what they were made from. What a kernel reads through
// one is the program's affair, since its kernels are functions of its own.
#include "contexts.hpp"
#include "driver.hpp"
#include "objects.hpp"

using namespace simcuda;

namespace {

/// A texture object over linear memory.
struct Texture : Object {
  static constexpr Kind kind = Kind::texture;
  Texture() : Object(kind) {}

  CUDA_RESOURCE_DESC resource{};
};

const void* handle_of(CUtexObject object) {
  return reinterpret_cast<const void*>(object);
}

Texture& texture_at(CUtexObject object) {
  return driver().handles.get<Texture>(handle_of(object), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

SIMCUDA_ENTRY(cuTexObjectCreate,
              (CUtexObject * pTexObject, const CUDA_RESOURCE_DESC* resource,
               const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC*),
              {
                require(pTexObject != nullptr && resource != nullptr && texture != nullptr);
                require(resource->resType == CU_RESOURCE_TYPE_LINEAR, CUDA_ERROR_NOT_SUPPORTED);
                (void)current_context();
                auto* const made = driver().handles.make<Texture>();
                made->resource = *resource;
                *pTexObject = reinterpret_cast<CUtexObject>(made);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuTexObjectDestroy, (CUtexObject texObject), {
  driver().handles.destroy(&texture_at(texObject));
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC * resource, CUtexObject texObject), {
  require(resource != nullptr);
  *resource = texture_at(texObject).resource;
  return CUDA_SUCCESS;
})

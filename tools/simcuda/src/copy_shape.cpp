#include "copy_shape.hpp"

#include <algorithm>

#include "array.hpp"

namespace simcuda {

namespace {

/// One end of a copy: where its first byte lies, and how far rows and slices are apart.
struct End {
  std::uintptr_t address = 0;
  std::size_t pitch = 0;
  std::size_t slice = 0;
};

/// What a structure says about one end, in any of its forms.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t x_bytes, y, z;
  std::size_t pitch, height;
};

End end_of(const Side& side, std::size_t width_bytes, std::size_t copy_height) {
  End end;
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      end.address = reinterpret_cast<std::uintptr_t>(side.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      end.address = side.device;
      break;
    case CU_MEMORYTYPE_ARRAY: {
      const auto& array = driver().handles.get<Array>(side.array);
      require(side.x_bytes + width_bytes <= array.row_bytes());
      require(side.y + copy_height <= array.rows());
      end.address = array.begin;
      end.pitch = array.row_bytes();
      end.slice = end.pitch * array.rows();
      break;
    }
    default:
      throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
  if (end.pitch == 0) {
    end.pitch = side.pitch == 0 ? width_bytes : side.pitch;
    end.slice = end.pitch * (side.height == 0 ? copy_height : side.height);
  }
  require(copy_height <= 1 || end.pitch >= width_bytes);
  end.address += side.z * end.slice + side.y * end.pitch + side.x_bytes;
  return end;
}

CopyOperation between(const Side& source, const Side& destination, std::size_t width_bytes,
                      std::size_t height, std::size_t depth) {
  const End from = end_of(source, width_bytes, height);
  const End to = end_of(destination, width_bytes, height);
  CopyOperation copy;
  copy.source = from.address;
  copy.source_pitch = from.pitch;
  copy.source_slice = from.slice;
  copy.destination = to.address;
  copy.destination_pitch = to.pitch;
  copy.destination_slice = to.slice;
  copy.width_bytes = width_bytes;
  copy.height = height;
  copy.depth = depth;
  return copy;
}

template <class Structure>
CopyOperation of_three_dimensions(const Structure& from) {
  return between({from.srcMemoryType, from.srcHost, from.srcDevice, from.srcArray, from.srcXInBytes,
                  from.srcY, from.srcZ, from.srcPitch, from.srcHeight},
                 {from.dstMemoryType, from.dstHost, from.dstDevice, from.dstArray, from.dstXInBytes,
                  from.dstY, from.dstZ, from.dstPitch, from.dstHeight},
                 from.WidthInBytes, from.Height, from.Depth);
}

bool is_host(std::uintptr_t address) {
  const Memory::Block* const block = driver().memory.find(address);
  return block == nullptr || block->on_host();
}

}  // namespace

CopyOperation copy_of(const CUDA_MEMCPY2D& from) {
  return between({from.srcMemoryType, from.srcHost, from.srcDevice, from.srcArray, from.srcXInBytes,
                  from.srcY, 0, from.srcPitch, 0},
                 {from.dstMemoryType, from.dstHost, from.dstDevice, from.dstArray, from.dstXInBytes,
                  from.dstY, 0, from.dstPitch, 0},
                 from.WidthInBytes, from.Height, 1);
}

CopyOperation copy_of(const CUDA_MEMCPY3D& from) {
  return of_three_dimensions(from);
}

CopyOperation copy_of(const CUDA_MEMCPY3D_PEER& from) {
  return of_three_dimensions(from);
}

CopyOperation copy_of(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes) {
  CopyOperation copy;
  copy.destination = destination;
  copy.source = source;
  copy.width_bytes = bytes;
  return copy;
}

std::uintptr_t range_of(CUarray array, std::size_t offset, std::size_t bytes) {
  const auto& of = driver().handles.get<Array>(array);
  require(bytes <= of.bytes() && offset <= of.bytes() - bytes);
  return of.begin + offset;
}

CUDA_MEMCPY3D structure_of(const CopyOperation& copy) {
  const auto rows = [&](std::size_t slice, std::size_t pitch) {
    return pitch == 0 ? copy.height : slice / pitch;
  };
  CUDA_MEMCPY3D to{};
  to.srcMemoryType = is_host(copy.source) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  to.dstMemoryType = is_host(copy.destination) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (to.srcMemoryType == CU_MEMORYTYPE_HOST)
    to.srcHost = reinterpret_cast<const void*>(copy.source);
  else
    to.srcDevice = copy.source;
  if (to.dstMemoryType == CU_MEMORYTYPE_HOST)
    to.dstHost = reinterpret_cast<void*>(copy.destination);
  else
    to.dstDevice = copy.destination;
  to.srcPitch = copy.source_pitch;
  to.dstPitch = copy.destination_pitch;
  to.srcHeight = rows(copy.source_slice, copy.source_pitch);
  to.dstHeight = rows(copy.destination_slice, copy.destination_pitch);
  to.WidthInBytes = copy.width_bytes;
  to.Height = copy.height;
  to.Depth = copy.depth;
  return to;
}

}  // namespace simcuda

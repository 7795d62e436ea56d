#pragma once

#include <array>

namespace contextune::rank {

/// As long as it lives, none of descriptors 0, 1 and 2 is free. Files opened meanwhile thus get no
/// number that a program which closed it expects for itself, or closes again.
class StandardDescriptorsTaken {
 public:
  StandardDescriptorsTaken() noexcept;
  ~StandardDescriptorsTaken();
  StandardDescriptorsTaken(const StandardDescriptorsTaken&) = delete;
  StandardDescriptorsTaken& operator=(const StandardDescriptorsTaken&) = delete;

 private:
  std::array<int, 3> taken_{-1, -1, -1};
};

}  // namespace contextune::rank

#include "environment/root_folder.hpp"

#include <sys/stat.h>

#include <atomic>

namespace contextune {
namespace {

struct RootFolder {
  dev_t device;
  ino_t inode;
};

RootFolder kept_root;
constinit std::atomic<bool> is_root_kept{false};

}  // namespace

void keep_root_folder() noexcept {
  struct stat status {};
  if (is_root_kept.load(std::memory_order_acquire) || stat("/", &status) != 0) return;
  kept_root = {status.st_dev, status.st_ino};
  is_root_kept.store(true, std::memory_order_release);
}

bool root_folder_has_changed() noexcept {
  struct stat status {};
  return is_root_kept.load(std::memory_order_acquire) &&
         (stat("/", &status) != 0 || status.st_dev != kept_root.device ||
          status.st_ino != kept_root.inode);
}

}  // namespace contextune

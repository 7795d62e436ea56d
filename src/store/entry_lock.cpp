#include "store/entry_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>

#include <contextune/error.hpp>

#include "store/lease.hpp"

namespace contextune::store {
namespace {

using std::chrono::milliseconds;

constexpr mode_t file_mode = 0644;
constexpr std::size_t most_lease_bytes = 4096;
constexpr double temporary_lifetime = 600;  // far longer than any write takes

double seconds_between(const timespec& from, const timespec& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) +
         1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Longer and longer, and never past the deadline. False: that was it.
class Pause {
 public:
  explicit Pause(Deadline deadline) : deadline_(deadline) {}
  bool wait() {
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline_) return false;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause_, deadline_ - now));
    pause_ = std::min(2 * pause_, milliseconds(8));
    return true;
  }

 private:
  Deadline deadline_;
  milliseconds pause_{1};
};

bool lock_now(int fd, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

std::string stem_of(const std::string& file) {
  return file.substr(0, file.find('.'));
}

std::optional<Lease> read_lease(const Descriptor& file) {
  std::string text;
  if (!file || read_all(file.number(), most_lease_bytes, text) != 0) return std::nullopt;
  return Lease::parse(text);
}

std::string age_text(double seconds) {
  return std::to_string(std::max(0L, static_cast<long>(seconds))) + " s";
}

}  // namespace

EntryLock::EntryLock(const Folder& folder, const std::string& file, Deadline deadline)
    : folder_(folder),
      file_(file),
      lock_name_("." + file + ".lock"),
      lease_name_("." + file + ".lease") {
  try {
    lock_kernel(deadline);
    create_temporary();
    take_lease(deadline);
  } catch (...) {
    release();
    throw;
  }
}

EntryLock::~EntryLock() {
  release();
}

void EntryLock::lock_kernel(Deadline deadline) {
  Pause pause(deadline);
  while (true) {
    lock_ = folder_.open_file(lock_name_, O_RDWR | O_CREAT, file_mode);
    if (!lock_) refuse_with_errno(folder_.path(lock_name_), "cannot open the lock", errno);
    struct stat opened {};
    struct stat named {};
    if (::fstat(lock_.number(), &opened) != 0)
      refuse_with_errno(folder_.path(lock_name_), "cannot examine the lock", errno);
    check_trust(folder_.path(lock_name_), opened, Trust::Own);
    while (!lock_now(lock_.number(), F_WRLCK)) {
      // Where the file system has no locks the lease has to do.
      if (errno != EAGAIN && errno != EACCES && errno != EINTR) return;
      if (pause.wait()) continue;
      const auto lease = read_lease(folder_.open_file(lease_name_, O_RDONLY));
      throw Error(folder_.path(file_) + ": " +
                  (lease ? lease->holder.to_string() : std::string("another process")) +
                  " is writing it and does not come to an end; if that process is stopped, let it "
                  "go on or end it");
    }
    // It may have been removed before it was locked: then it keeps nobody out.
    if (::fstatat(folder_.number(), lock_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_same_file(opened, named)) {
      return;
    }
    if (!pause.wait()) throw Error(folder_.path(lock_name_) + ": is removed all the time");
  }
}

void EntryLock::create_temporary() {
  temporary_name_ = temporary_name(stem_of(file_));
  temporary_ = folder_.open_file(temporary_name_, O_WRONLY | O_CREAT | O_EXCL, file_mode);
  if (!temporary_) {
    const int error = errno;
    const std::string path = folder_.path(temporary_name_);
    temporary_name_.clear();
    refuse_with_errno(path, "cannot create the file", error);
  }
}

// Whole before it has its name: a process may be killed while it writes.
void EntryLock::prepare_lease() {
  prepared_name_ = temporary_name(stem_of(file_));
  const std::string path = folder_.path(prepared_name_);
  lease_ = folder_.open_file(prepared_name_, O_RDWR | O_CREAT | O_EXCL, file_mode);
  if (!lease_) refuse_with_errno(path, "cannot create the file", errno);
  const Lease lease{ProcessIdentity::of_this_process(), temporary_name_};
  if (const int error = write_all(lease_.number(), lease.to_text()); error != 0)
    refuse_with_errno(path, "cannot be written", error);
}

void EntryLock::take_lease(Deadline deadline) {
  prepare_lease();
  Pause pause(deadline);
  while (const int error = folder_.rename_to_new(prepared_name_, lease_name_)) {
    if (error != EEXIST)
      refuse_with_errno(folder_.path(lease_name_), "cannot create the lease", error);
    const Descriptor found = folder_.open_file(lease_name_, O_RDONLY);
    if (!found && errno != ENOENT)
      refuse_with_errno(folder_.path(lease_name_), "cannot read the lease", errno);
    if ((found && take_over(found)) || pause.wait()) continue;
    throw Error(folder_.path(file_) + ": " + other_ +
                "; if that process is gone this ends by itself after " + age_text(lease_seconds));
  }
  prepared_name_.clear();
  (void)::futimens(lease_.number(), nullptr);  // it counts from now, however long the wait was
}

// Whether the lease was removed because its holder does not need it any more.
bool EntryLock::take_over(const Descriptor& found) {
  struct stat judged {};
  if (::fstat(found.number(), &judged) != 0)
    refuse_with_errno(folder_.path(lease_name_), "cannot examine the lease", errno);
  const auto lease = read_lease(found);
  const double age = seconds_between(judged.st_mtim, file_system_now());
  const bool gone = lease && presence_of(lease->holder) == Presence::Gone;
  if (!gone && age <= lease_seconds) {
    other_ = (lease ? lease->holder.to_string() : std::string("another process")) +
             " has been writing it for " + age_text(age);
    return false;
  }
  if (lease) (void)::unlinkat(folder_.number(), lease->temporary.c_str(), 0);
  struct stat named {};
  if (::fstatat(folder_.number(), lease_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_same_file(judged, named)) {
    return true;  // somebody else took it over
  }
  // That may have happened since, on another host: then a new one has to be put back.
  const std::string away = temporary_name(stem_of(file_));
  if (::renameat(folder_.number(), lease_name_.c_str(), folder_.number(), away.c_str()) != 0) {
    other_ = "its lease cannot be taken over: " + std::generic_category().message(errno);
    return errno == ENOENT;
  }
  struct stat moved {};
  const bool other = ::fstatat(folder_.number(), away.c_str(), &moved, AT_SYMLINK_NOFOLLOW) == 0 &&
                     !is_same_file(judged, moved);
  if (other)
    (void)::linkat(folder_.number(), away.c_str(), folder_.number(), lease_name_.c_str(), 0);
  (void)::unlinkat(folder_.number(), away.c_str(), 0);
  return true;
}

bool EntryLock::holds_lease() const {
  struct stat held {};
  struct stat named {};
  return lease_ && ::fstat(lease_.number(), &held) == 0 &&
         ::fstatat(folder_.number(), lease_name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         is_same_file(held, named);
}

timespec EntryLock::file_system_now() const {
  struct stat status {};
  if (::futimens(temporary_.number(), nullptr) != 0 || ::fstat(temporary_.number(), &status) != 0)
    refuse_with_errno(folder_.path(temporary_name_), "cannot be examined", errno);
  return status.st_mtim;
}

void EntryLock::replace(std::string_view text) {
  const std::string path = folder_.path(file_);
  int error = write_all(temporary_.number(), text);
  if (error == 0 && ::fsync(temporary_.number()) != 0) error = errno;
  if (error != 0) refuse_with_errno(path, "cannot write the file that would replace it", error);
  const std::string lost =
      path + ": another process took over its lease, as this one was stopped for more than " +
      age_text(lease_seconds) + "; nothing was written";
  if (!holds_lease()) throw Error(lost);
  if (::renameat(folder_.number(), temporary_name_.c_str(), folder_.number(), file_.c_str()) != 0) {
    if (errno == ENOENT) throw Error(lost);
    refuse_with_errno(path, "cannot be replaced", errno);
  }
  temporary_name_.clear();
  folder_.sync();
  sweep();
}

void EntryLock::remove() {
  if (!holds_lease()) throw Error(folder_.path(file_) + ": another process took over its lease");
  if (::unlinkat(folder_.number(), file_.c_str(), 0) != 0)
    refuse_with_errno(folder_.path(file_), "cannot be removed", errno);
  (void)::unlinkat(folder_.number(), lock_name_.c_str(), 0);
  folder_.sync();
}

// Removes files that killed writers left. A writer that is still there, but that slow, finds that
// out.
void EntryLock::sweep() const try {
  const timespec now = file_system_now();
  for (const std::string& name : folder_.names()) {
    struct stat status {};
    if (!is_temporary_name(name) ||
        ::fstatat(folder_.number(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISREG(status.st_mode) && seconds_between(status.st_mtim, now) > temporary_lifetime)
      (void)::unlinkat(folder_.number(), name.c_str(), 0);
  }
} catch (const Error&) {
  return;  // the entry is written; the next one sweeps
}

void EntryLock::release() noexcept {
  for (const std::string* name : {&temporary_name_, &prepared_name_})
    if (!name->empty()) (void)::unlinkat(folder_.number(), name->c_str(), 0);
  if (holds_lease()) (void)::unlinkat(folder_.number(), lease_name_.c_str(), 0);
  lease_ = Descriptor();
  // Closing is not enough if the program forked meanwhile: the lock is the child's as well.
  if (lock_) (void)lock_now(lock_.number(), F_UNLCK);
  lock_ = Descriptor();
}

}  // namespace contextune::store

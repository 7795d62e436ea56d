#include "log/line_writer.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "host/host_state.hpp"
#include "host/own_descriptors.hpp"
#include "host/own_thread.hpp"

namespace contextune::log {
namespace {

// No more waits to be written: a disk that stands still is not to fill the program's memory.
constexpr std::size_t most_queued_bytes = std::size_t{4} << 20U;
// Whoever appends waits so long for room.
constexpr std::chrono::milliseconds most_wait{50};
// For the thread to start, and for what is queued when all ends.
constexpr std::chrono::seconds most_start{1};

}  // namespace

struct LineWriter::State {
  enum class Mode { Unknown, Thread, Inline };
  struct Line {
    LogFile* file;
    std::string text;
  };

  std::mutex mutex;
  std::condition_variable more;     // what the thread waits for
  std::condition_variable changed;  // what others wait for
  Mode mode = Mode::Unknown;
  bool started = false;
  bool ends = false;
  std::deque<LogFile> files;
  std::vector<Line> lines;  // no deque: work() may not throw where it takes them
  std::size_t queued_bytes = 0;
  std::atomic<std::uint64_t> queued = 0;
  std::atomic<std::uint64_t> written = 0;
  bool stalls = false;  // somebody has waited in vain, and nothing was written since

  void start(const std::shared_ptr<State>& self) {
    started = true;
    try {
      host::start_own_thread("contextune-log", [self] { self->work(); });
    } catch (const std::exception&) {
      mode = Mode::Inline;
    }
  }

  void work() noexcept {
    const bool own = host::own_descriptors();
    std::unique_lock lock(mutex);
    // Who has waited in vain writes for itself from then on.
    if (mode == Mode::Unknown) mode = own ? Mode::Thread : Mode::Inline;
    changed.notify_all();
    if (mode == Mode::Inline) return;
    while (true) {
      more.wait(lock, [this] { return !lines.empty() || ends; });
      if (lines.empty()) break;
      const std::vector<Line> taken = std::exchange(lines, {});
      lock.unlock();
      std::size_t bytes = 0;
      for (const Line& line : taken) {
        (void)line.file->append(line.text);
        bytes += line.text.size();
      }
      lock.lock();
      queued_bytes -= bytes;
      written += taken.size();
      stalls = false;
      changed.notify_all();
    }
    files.clear();  // their descriptors are this thread's
    changed.notify_all();
  }

  /// Whether `bytes` more may wait.
  bool find_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
    const auto has_room = [&] { return queued_bytes + bytes <= most_queued_bytes; };
    if (has_room()) return true;
    if (stalls) return false;
    stalls = !changed.wait_for(lock, most_wait, has_room);
    return !stalls;
  }
};

LineWriter::LineWriter() : owner_(getpid()), state_(std::make_shared<State>()) {}

LineWriter::~LineWriter() {
  const host::HostState kept;
  if (getpid() != owner_) {
    // The thread is the parent's, and so may the lock be, and what the files are open as.
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  std::unique_lock lock(state_->mutex);
  state_->ends = true;
  state_->more.notify_all();
  if (state_->mode == State::Mode::Thread)
    (void)state_->changed.wait_for(lock, most_start, [this] { return state_->files.empty(); });
}

LogFile& LineWriter::add(const std::string& path) {
  const std::lock_guard lock(state_->mutex);
  return state_->files.emplace_back(path);
}

void LineWriter::append(LogFile& file, std::string_view line) {
  const host::HostState kept;
  std::unique_lock lock(state_->mutex);
  using Mode = State::Mode;
  if (!state_->started) state_->start(state_);
  if (state_->mode == Mode::Unknown)
    (void)state_->changed.wait_for(lock, most_start,
                                   [this] { return state_->mode != Mode::Unknown; });
  if (state_->mode != Mode::Thread) {
    state_->mode = Mode::Inline;
    lock.unlock();
    (void)file.append(line);
    return;
  }
  if (!state_->find_room(lock, line.size())) return file.lose(ENOBUFS);
  state_->lines.push_back({&file, std::string(line)});
  state_->queued_bytes += line.size();
  ++state_->queued;
  lock.unlock();  // so that who wakes up gets it at once
  state_->more.notify_one();
}

void LineWriter::flush(std::chrono::milliseconds most) {
  if (getpid() != owner_) return;
  const host::HostState kept;
  std::unique_lock lock(state_->mutex);
  if (state_->stalls) return;
  const std::uint64_t number = state_->queued;
  state_->stalls = !state_->changed.wait_for(lock, most, [&] { return state_->written >= number; });
}

void LineWriter::flush_in_signal_handler(std::chrono::milliseconds most) const noexcept {
  const auto deadline = std::chrono::steady_clock::now() + most;
  constexpr timespec nap{0, 100'000};
  while (state_->written < state_->queued && std::chrono::steady_clock::now() < deadline)
    (void)nanosleep(&nap, nullptr);
}

}  // namespace contextune::log

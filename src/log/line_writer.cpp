#include "log/line_writer.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "host/host_state.hpp"
#include "host/own_descriptors.hpp"

namespace contextune::log {
namespace {

// For a line that is queued already: where the machine is busy, the program goes on.
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
  std::condition_variable changed;
  Mode mode = Mode::Unknown;
  bool started = false;
  bool ends = false;
  std::deque<LogFile> files;
  std::deque<Line> lines;
  std::uint64_t queued = 0;
  std::uint64_t written = 0;

  void start(const std::shared_ptr<State>& self) {
    started = true;
    // The program's signal handlers must not run on a thread that it does not know.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([self] { self->work(); }).detach();
    } catch (const std::exception&) {
      mode = Mode::Inline;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() noexcept {
    (void)pthread_setname_np(pthread_self(), "contextune-log");
    const bool own = host::own_descriptors();
    std::unique_lock lock(mutex);
    // Who has waited in vain writes for itself from then on.
    if (mode == Mode::Unknown) mode = own ? Mode::Thread : Mode::Inline;
    changed.notify_all();
    if (mode == Mode::Inline) return;
    while (true) {
      changed.wait(lock, [this] { return !lines.empty() || ends; });
      if (lines.empty()) break;
      const Line line = std::move(lines.front());
      lines.pop_front();
      lock.unlock();
      (void)line.file->append(line.text);
      lock.lock();
      ++written;
      changed.notify_all();
    }
    files.clear();  // their descriptors are this thread's
    changed.notify_all();
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
  state_->changed.notify_all();
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
  state_->lines.push_back({&file, std::string(line)});
  const std::uint64_t number = ++state_->queued;
  state_->changed.notify_all();
  (void)state_->changed.wait_for(lock, most_wait, [&] { return state_->written >= number; });
}

}  // namespace contextune::log

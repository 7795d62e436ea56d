// A program whose thread ends inside of what contextune tunes, by pthread_exit or because it is
// cancelled, at its RUNth run, or after RUN ms by another thread; other threads then do the same
// work to its end. What it prints and how it ends must be the same with contextune and without.
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <contextune/contextune.hpp>

#include "program.hpp"
#include "short_tuning.hpp"

namespace {

using contextune::Config;

constexpr int elements = 8;
int exit_value;  // its address is what the thread leaves

struct Said {
  const char* what;
  ~Said() { std::puts(what); }
};

/// The work that is tuned, and the thread and the run of it in which that thread ends.
struct Work {
  CUdeviceptr y = Program::on().floats(elements);
  const char* how;
  int last_run;  ///< where nothing is tuned, there is one run of a call, and it is the last
  bool ends = false;
  int runs = 0;

  CUresult operator()(unsigned block) {
    const CUresult status = Program::on().launch("set", y, elements, 1.0F, 1, block);
    ++runs;
    const bool is_tuned = contextune_current_state() == contextune_state_full;
    if (ends && std::strcmp(how, "outside") != 0 && (runs == last_run || !is_tuned)) {
      const Said work_ended{"end of work"};
      if (std::strcmp(how, "exit") == 0) pthread_exit(&exit_value);
      pthread_cancel(pthread_self());
      pthread_testcancel();
    }
    return status;
  }
};

template <class Tuned>
std::function<CUresult(int)> kept(Tuned&& tuned) {
  const auto shared = std::make_shared<std::remove_cvref_t<Tuned>>(std::forward<Tuned>(tuned));
  return [shared](int n) { return (*shared)(n); };
}

/// Every way in which work can be tuned, by name: what does it once.
std::map<std::string, std::function<CUresult(int)>> ways(Work& work) {
  const auto run = [&work](const Config& config, auto...) { return work(block_of(config)); };
  const auto key = [](int n) { return n; };
  std::map<std::string, std::function<CUresult(int)>> all;
  all["function"] = kept(contextune::autotune("function", blocks(), key, run, short_runs()));
  all["unsaid"] = kept(contextune::autotune("unsaid", blocks(), key, run, short_runs({})));
  const auto tunable = kept(contextune::Tunable("tunable", blocks(), key, run));
  all["tunable"] = [tunable](int n) {
    CUresult status = CUDA_SUCCESS;
    CONTEXTUAL_AUTOTUNE("around tunable", short_table()) {
      status = tunable(n);
    }
    return status;
  };
  all["body"] = [tunable](int n) {
    return contextune::region("body", short_table(), [&] { return tunable(n); });
  };
  using Choice = contextune::Choice<CUresult(int)>;
  for (const char* name : {"choice", "choice in region", "choice with outputs"}) {
    const auto choice = std::make_shared<Choice>(
        name, contextune::ChoiceOptions{.repeatable = true, .n_repeat = 2});
    choice->key(key);
    if (std::strcmp(name, "choice with outputs") == 0) {
      choice->buffers([&work](int) {
        return contextune::ChoiceMemory{
            {{reinterpret_cast<void*>(work.y), elements * sizeof(float)}}};
      });
    }
    choice->add("slow", [&work](const Config&, int) { return work(256); })
        .add("fast", blocks(), run);
    all[name] = [choice](int n) { return (*choice)(n); };
    if (std::strcmp(name, "choice in region") != 0) continue;
    all[name] = [choice](int n) {
      CUresult status = CUDA_SUCCESS;
      CONTEXTUAL_AUTOTUNE("around choice", short_table()) {
        status = (*choice)(n);
      }
      return status;
    };
  }
  return all;
}

struct Thread {
  Work& work;
  const std::function<CUresult(int)>& once;
};

void* end_in_work(void* given) {
  const Said thread_ended{"end of thread"};
  const auto& thread = *static_cast<Thread*>(given);
  Program::on().make_current();
  thread.work.ends = true;
  if (std::strcmp(thread.work.how, "outside") != 0) {
    for (int call = 0; call < 2000; ++call) static_cast<void>(thread.once(1));
    return nullptr;
  }
  for (int n = 1;; ++n) {  // there is always something to search
    static_cast<void>(thread.once(n % 1000));
    pthread_testcancel();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::puts("usage: thread_end_client WAY exit|cancel|outside RUN");
    return argc == 2 && std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  Work work{.how = argv[2], .last_run = std::atoi(argv[3])};
  const auto all = ways(work);
  Thread thread{work, all.at(argv[1])};
  pthread_t number{};
  if (pthread_create(&number, nullptr, end_in_work, &thread) != 0) return 2;
  if (std::strcmp(work.how, "outside") == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(work.last_run));
    pthread_cancel(number);
  }
  void* left = nullptr;
  pthread_join(number, &left);
  std::puts(left == &exit_value        ? "left by exit"
            : left == PTHREAD_CANCELED ? "cancelled"
                                       : "not left");
  work.ends = false;
  std::fflush(stdout);
  if (std::freopen("/dev/null", "w", stdout) == nullptr) return 2;  // runs may be several
  int status = 0;
  for (const int n : {1, 1, 2}) status += thread.once(n);
  std::thread([&] {
    Program::on().make_current();
    for (const int n : {1, 2, 3}) status += thread.once(n);
  }).join();
  const float y = Program::read(work.y, 1).front();
  std::fprintf(stderr, "status %d, y is %g\n", status, static_cast<double>(y));
  return 3;
}

// Ranks of which some do an operation together, and others do it among themselves. Prints a hash of
// what is left, which is the same whatever ran.
//   choice_groups PATH WHERE GROUPS [WORD...]
// WHERE: alone (outside of a region), region (in one that is repeated) or live; or, in place of
// choices, function (of each group) or stage (a region of each group, with a tunable), of which
// contextune is told the communicator; or, not told, own_function or own_stage, kernels (such a
// stage without a collective) or sends (that gives something to the next rank as well). Writes what
// contextune_error() says of these to PATH.asked.<rank>. GROUPS: ranks that
// have a communicator, "0-1 2-3": of two. Groups of even places are fastest with one
// implementation, the others with another. Words, of the ranks whose number follows:
//   wrong R       what is the fastest in groups of even places computes something else there
//   split -1      communicators are split off one of all ranks
//   twice -1      each group has a second choice of that name
//   threads -1    each group in a thread of its own; on odd ranks the last one begins
//   sizes -1      a group's messages are as many times as long as its number from 1 says
//   named -1      groups are told by their ranks in the job, in place of a communicator
//   claims N      its author says that it is done by N ranks
//   slow MS       each run in the first group takes so long, or each of a stage with a collective
//   plain G       the stage of that group has no collective
//   absent R      does the operation without asking, in all of its groups
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <contextune/contextune.hpp>

#include "choice_program.hpp"
#include "rank_meeting.hpp"

namespace {

using Sum = contextune::Choice<void()>;

/// Two ranks that do it together, one of which is this one.
class Pair {
 public:
  Pair(const Wanted& wanted, std::string ranks, ncclComm_t all, ncclComm_t communicator, int number,
       CUfunction function)
      : wanted_(wanted),
        ranks_(wanted.words.contains("named") ? std::move(ranks) : std::string()),
        all_(all),
        communicator_(communicator),
        number_(number),
        elements_(num_elements * (wanted.says("sizes") ? static_cast<std::size_t>(number) + 1 : 1)),
        function_(function) {
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuMemAlloc(&in_, bytes()));
    CHECK(cuMemAlloc(&out_, bytes()));
    CHECK(cuMemsetD32(in_, static_cast<unsigned>(wanted.rank + 1), elements_));
    CHECK(cuMemsetD32(out_, 0, elements_));
    choices_.push_back(make());
    if (wanted.says("twice")) choices_.push_back(make());
  }

  void run() {
    if (wanted_.says("absent")) return with(256);
    if (wanted_.where == "function" && !ranks_.empty()) return call_by_key();
    if (wanted_.where == "function") return call_function(communicator_);
    if (wanted_.where == "own_function") return call_function(nullptr);
    if (wanted_.where == "stage") return run_stage("stage", communicator_);
    if (wanted_.is_own_stage()) return run_stage("stage" + std::to_string(number_), nullptr);
    for (const auto& one : choices_) (*one)();
  }
  void finish() const { CHECK(cuStreamSynchronize(stream_)); }
  [[nodiscard]] std::uint64_t hash() const { return hash_of(out_); }

  std::string said;  ///< by contextune_error(), of functions and stages

 private:
  /// What is the fastest differs by group.
  [[nodiscard]] unsigned block_of(const Config& config) const {
    const auto block = static_cast<unsigned>(config.get_int("block"));
    return number_ % 2 == 0 || block == 256 ? block : 192 - block;
  }
  static contextune::ConfigSpace blocks() {
    return contextune::ConfigSpace().parameter("block", {256, 64, 128});
  }
  static void run_in(Pair& pair, const Config& config) { pair.with(pair.block_of(config)); }

  void call_function(ncclComm_t told) {
    static auto sum = contextune::autotune(
        "sum", blocks(), [](Pair& pair) { return pair.number_; },
        [](const Config& config, Pair& pair) { run_in(pair, config); }, {.repeatable = true});
    sum.with({.communicator = told})(*this);
    said = contextune_error();
  }

  /// As another language has a function of a group.
  void call_by_key() {
    static const char* const texts[] = {"block=256", "block=64", "block=128"};
    static contextune_function* const sum = [] {
      contextune_function_options options{};
      options.size = sizeof options;
      options.configs = texts;
      options.num_configs = std::size(texts);
      options.repeatable = 1;
      return contextune_function_create("sum", &options);
    }();
    const std::string text = "n=" + std::to_string(number_);
    contextune_function_key key{};
    key.size = sizeof key;
    key.key = text.c_str();
    key.group = ranks_.c_str();
    contextune_function_run call{};
    call.size = sizeof call;
    call.user = this;
    call.run = [](void* pair, std::uint32_t config, int) {
      static const std::array<std::int64_t, std::size(texts)> blocks = {256, 64, 128};
      run_in(*static_cast<Pair*>(pair), Config{{"block", blocks.at(config)}});
      return 0;
    };
    const std::uint32_t problem = contextune_function_problem(sum, &key);
    if (contextune_function_call(sum, problem, &call) != 0) said = contextune_error();
  }

  void run_stage(const std::string& name, ncclComm_t told) {
    static contextune::Tunable sum("sum", blocks(), [](const Config& config, Pair& pair) {
      return pair.launch(pair.block_of(config), 7);
    });
    CONTEXTUAL_AUTOTUNE(
        name,
        {.repeatable = true, .communicator = ranks_.empty() ? told : nullptr, .group = ranks_}) {
      if (is_plain()) {
        CHECK(cuMemsetD32Async(out_, 1, elements_, stream_));
      } else {
        reduce();
        take_time();
      }
      sum(*this);
      if (wanted_.where == "sends") give_on();
    }
    said = contextune_error();
  }

  std::unique_ptr<Sum> make() {
    const bool is_even = number_ % 2 == 0;
    const auto claimed = wanted_.words.find("claims");
    auto sum = std::make_unique<Sum>(
        "sum",
        contextune::ChoiceOptions{.ranks = claimed == wanted_.words.end() ? 0 : claimed->second,
                                  .communicator = ranks_.empty() ? communicator_ : nullptr,
                                  .n_repeat = 5,
                                  .group = ranks_});
    sum->size([this] { return bytes(); })
        .buffers([this] {
          return contextune::ChoiceMemory{{{reinterpret_cast<void*>(out_), bytes()}},
                                          {{reinterpret_cast<void*>(in_), bytes()}}};
        })
        .add("plain", [this](const auto&) { with(256); })
        .add("even", [=, this](const auto&) { with(is_even ? 128 : 64, is_wrong() ? 8 : 7); })
        .add("odd", [=, this](const auto&) { with(is_even ? 64 : 128); });
    return sum;
  }

  [[nodiscard]] std::size_t bytes() const { return elements_ * sizeof(unsigned); }
  [[nodiscard]] bool is_plain() const {
    const auto plain = wanted_.words.find("plain");
    return wanted_.where == "kernels" || (plain != wanted_.words.end() && plain->second == number_);
  }
  void take_time() const {
    const auto slow = wanted_.words.find("slow");
    if (slow != wanted_.words.end())
      std::this_thread::sleep_for(std::chrono::milliseconds(slow->second));
  }
  [[nodiscard]] bool is_wrong() const { return wanted_.says("wrong"); }

  /// out = sum of all in, plus 7.
  void with(unsigned block, unsigned value = 7) {
    if (number_ == 0) take_time();
    reduce();
    CHECK(launch(block, value));
  }
  /// To the next rank, or from the one before, whose stage is another one.
  void give_on() {
    const auto* const from = reinterpret_cast<const void*>(in_);
    if (wanted_.rank == 1) CHECK(ncclSend(from, elements_, ncclUint32, 2, all_, stream_));
    if (wanted_.rank == 2) {
      CHECK(ncclRecv(reinterpret_cast<void*>(in_), elements_, ncclUint32, 1, all_, stream_));
    }
  }
  void reduce() {
    CHECK(ncclAllReduce(reinterpret_cast<const void*>(in_), reinterpret_cast<void*>(out_),
                        elements_, ncclUint32, ncclSum, communicator_, stream_));
  }
  CUresult launch(unsigned block, unsigned value) {
    int n = static_cast<int>(elements_);
    CUdeviceptr y = out_;
    void* arguments[] = {&n, &value, &y};
    return cuLaunchKernel(function_, 1, 1, 1, block, 1, 1, 0, stream_, arguments, nullptr);
  }

  const Wanted& wanted_;
  const std::string ranks_;  ///< in the job; empty: contextune is told the communicator
  const ncclComm_t all_, communicator_;
  const int number_;
  const std::size_t elements_;
  const CUfunction function_;
  CUstream stream_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
  std::vector<std::unique_ptr<Sum>> choices_;
};

ncclComm_t communicator_of_all(const Wanted& wanted, const Place& place) {
  ncclUniqueId id{};
  ncclComm_t made = nullptr;
  if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, wanted.path + ".all", id);
  CHECK(ncclCommInitRank(&made, place.ranks, id, place.rank));
  return made;
}

/// Rank 0 leads the talks of all groups.
void wait_for_all(ncclComm_t all) {
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, num_bytes));
  CHECK(ncclAllReduce(reinterpret_cast<const void*>(memory), reinterpret_cast<void*>(memory), 1,
                      ncclUint32, ncclSum, all, nullptr));
  CHECK(cuStreamSynchronize(nullptr));
}

/// The communicator of a pair, which all ranks ask for; null where this one is not in it.
ncclComm_t communicator_of(const Wanted& wanted, const std::string& name, int number, int position,
                           ncclComm_t all) {
  ncclComm_t made = nullptr;
  if (all != nullptr) {
    CHECK(ncclCommSplit(all, position < 0 ? NCCL_SPLIT_NOCOLOR : 1, position, &made, nullptr));
  } else if (position >= 0) {
    ncclUniqueId id{};
    Place place;
    place.rank = position;
    place.ranks = 2;
    if (position == 0) CHECK(ncclGetUniqueId(&id));
    share_id(place, wanted.path + "." + name + "." + std::to_string(number), id);
    CHECK(ncclCommInitRank(&made, 2, id, position));
  }
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const Place place = place_of_this_process();
  Wanted wanted = wanted_of(argc, argv, place.rank);
  wanted.words.clear();
  for (int i = 4; i + 1 < argc; i += 2) wanted.words[argv[i]] = std::atoi(argv[i + 1]);
  const CUfunction function = load(more_kernel);
  ncclComm_t const all = communicator_of_all(wanted, place);
  ncclComm_t const parent = wanted.words.contains("split") ? all : nullptr;
  std::vector<std::unique_ptr<Pair>> pairs;
  std::istringstream groups(argv[3]);
  int number = 0;
  for (std::string group; groups >> group; ++number) {
    const int first = group[0] - '0';
    const int second = group[2] - '0';
    const int position = place.rank == first ? 0 : place.rank == second ? 1 : -1;
    ncclComm_t const made = communicator_of(wanted, group, number, position, parent);
    if (position >= 0)
      pairs.push_back(std::make_unique<Pair>(wanted, group, all, made, number, function));
  }
  std::string hashes;
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context));
  const auto run = [&] {
    if (!wanted.words.contains("threads")) {
      for (const auto& pair : pairs) pair->run();
      return;
    }
    if (place.rank % 2 == 1) std::reverse(pairs.begin(), pairs.end());
    std::vector<std::thread> threads;
    for (const auto& pair : pairs) {
      threads.emplace_back([&, one = pair.get()] {
        CHECK(cuCtxSetCurrent(context));
        one->run();
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    for (std::thread& one : threads) one.join();
    if (place.rank % 2 == 1) std::reverse(pairs.begin(), pairs.end());
  };
  if (wanted.words.contains("threads")) wait_for_all(all);  // they begin at one time
  for (int i = 0; i < 3; ++i) {
    if (wanted.where != "region" && wanted.where != "live") {
      run();
    } else {
      CONTEXTUAL_AUTOTUNE("sums", {.repeatable = wanted.where == "region"}) run();
    }
    for (const auto& pair : pairs) pair->finish();
  }
  std::ofstream asked(wanted.path + ".asked." + std::to_string(place.rank));
  for (const auto& pair : pairs) asked << pair->said << '\n';
  asked.close();
  wait_for_all(all);
  for (const auto& pair : pairs) hashes += " " + std::to_string(pair->hash());
  std::printf("rank %d:%s\n", place.rank, hashes.c_str());
  return 0;
}

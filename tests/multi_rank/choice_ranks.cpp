// Ranks that do an operation together which has several implementations. Prints a hash of what is
// left, which is the same whatever ran.
//   choice_ranks PATH WHERE [WORD...]
// WHERE: alone (outside of a region), region (in one that is repeated) or live. Words, of the ranks
// whose number follows:
//   wrong R       its fastest implementation computes something else there
//   unsupported R says that it cannot do it
//   throws R      its fastest implementation throws, while those of the others wait for it
//   dies R        ends in its fastest implementation
//   absent R      does the operation without asking
//   kernels -1    no implementation waits for another rank
//   immediate -1  it is searched wherever it is called
//   wrong_later R the same, but the first time
//   grows -1      after the first time it says to be twice as large, and takes what is near
//   hinted -1     sizes are measured that it names before, and no others
//   asks R        asks for its timings before all of this
//   then_live -1  does it once more, in a live region
//   row -1        calls of it are timed in a row
//   tires R       its fastest implementation throws from the fifth time on; all say how often they
//                 were asked for theirs
//   hesitates -1  its fastest implementation is the slowest on the host
// PATH.ran.RANK has what did it in the end, PATH.asked.RANK what the timings said.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <contextune/contextune.hpp>

#include "choice_program.hpp"
#include "rank_meeting.hpp"

namespace {

class Operation {
 public:
  Operation(const Wanted& wanted, const Place& place) : wanted_(wanted), place_(place) {
    CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&event_, CU_EVENT_DEFAULT));
    CHECK(cuMemAlloc(&in_, num_bytes));
    CHECK(cuMemAlloc(&out_, num_bytes));
    CHECK(cuMemsetD32(in_, static_cast<unsigned>(place.rank + 1), num_elements));
    CHECK(cuMemsetD32(out_, 0, num_elements));
    communicator_ = communicator(".first");
    other_ = communicator(".other");
  }

  /// out = sum of all in, plus 7.
  void with(ncclComm_t communicator, unsigned block, unsigned value = 7) {
    if (wanted_.says("kernels")) {
      CHECK(cuMemcpyDtoDAsync(out_, in_, num_bytes, stream_));
    } else {
      const ncclResult_t result =
          ncclAllReduce(reinterpret_cast<const void*>(in_), reinterpret_cast<void*>(out_),
                        num_elements, ncclUint32, ncclSum, communicator, stream_);
      // Of a communicator that was aborted meanwhile.
      if (result != ncclSuccess && communicator == other_) throw std::runtime_error("aborted");
      check(result, "ncclAllReduce");
    }
    int n = num_elements;
    CUdeviceptr y = out_;
    void* arguments[] = {&n, &value, &y};
    CHECK(cuLaunchKernel(function_, 1, 1, 1, block, 1, 1, 0, stream_, arguments, nullptr));
  }

  void run() {
    using contextune::Select;
    using contextune::UnseenSize;
    const bool is_hinted = wanted_.says("hinted");
    contextune::Choice<void()> sum(
        "sum",
        {.select = wanted_.says("immediate") ? Select::Immediate : Select::Deferred,
         .ranks = place_.ranks,
         .repeatable = wanted_.says("row"),
         .calls_per_pass = wanted_.says("row") ? 8 : 1,
         .n_repeat = 2,
         .hints = is_hinted ? std::vector<std::uint64_t>{num_bytes} : std::vector<std::uint64_t>(),
         .unseen = is_hinted               ? UnseenSize::Default
                   : wanted_.says("grows") ? UnseenSize::Nearest
                                           : UnseenSize::Tune});
    contextune::ImplementationOptions fastest;
    if (wanted_.says("unsupported"))
      fastest.supports = [](const contextune::Problem&) { return false; };
    fastest.abandon = [this] { CHECK(ncclCommAbort(other_)); };
    std::size_t said_bytes = num_bytes;
    sum.size([&] { return said_bytes; })
        .buffers([this] {
          return contextune::ChoiceMemory{{{reinterpret_cast<void*>(out_), num_bytes}},
                                          {{reinterpret_cast<void*>(in_), num_bytes}}};
        })
        .add("plain",
             [this](const Config&) {
               with(communicator_, 256);
               ran_ = "plain";
             })
        .add(
            "fastest", [this](const Config&) { with_fastest(); }, fastest)
        .add("better", [this](const Config&) {
          with(communicator_, 64);
          ran_ = "better";
        });
    if (is_hinted || wanted_.words.contains("asks"))
      sum.make_inputs([](const contextune::Problem&) { return std::tuple<>(); });
    if (wanted_.says("asks")) {
      for (const auto& one : sum.timings({.bytes = num_bytes}))
        if (one.is_winner) asked_ = one.implementation;
    }
    for (int i = 0; i < 3; ++i) {
      if (wanted_.says("absent")) {
        with(communicator_, 256);
      } else if (wanted_.where == "alone") {
        sum();
      } else {
        CONTEXTUAL_AUTOTUNE("sums", {.repeatable = wanted_.where == "region"}) {
          sum();
        }
      }
      CHECK(cuStreamSynchronize(stream_));
      if (wanted_.says("grows")) said_bytes = 2 * num_bytes;
      is_later_ = true;
    }
    if (wanted_.says("then_live")) {
      CONTEXTUAL_AUTOTUNE("live") sum();
      CHECK(cuStreamSynchronize(stream_));
    }
    if (wanted_.words.contains("tires")) asked_ = std::to_string(num_fastest_);
    std::ofstream(wanted_.path + ".ran." + std::to_string(place_.rank)) << ran_;
    std::ofstream(wanted_.path + ".asked." + std::to_string(place_.rank)) << asked_;
    std::printf("rank %d: %016llx\n", place_.rank, static_cast<unsigned long long>(hash_of(out_)));
  }

 private:
  ncclComm_t communicator(const char* name) const {
    ncclUniqueId id{};
    ncclComm_t made = nullptr;
    if (place_.rank == 0) CHECK(ncclGetUniqueId(&id));
    share_id(place_, wanted_.path + name, id);
    CHECK(ncclCommInitRank(&made, place_.ranks, id, place_.rank));
    return made;
  }

  void with_fastest() {
    if (wanted_.says("throws")) throw std::runtime_error("not here");
    if (++num_fastest_ > 4 && wanted_.says("tires")) throw std::runtime_error("tired");
    if (wanted_.says("dies")) std::_Exit(0);
    for (int i = 0; i < 1000 && wanted_.says("hesitates"); ++i) CHECK(cuEventQuery(event_));
    const bool is_wrong = wanted_.says("wrong") || (wanted_.says("wrong_later") && is_later_);
    with(other_, 128, is_wrong ? 8 : 7);
    ran_ = "fastest";
  }

  const Wanted& wanted_;
  const Place place_;
  CUfunction function_ = load(more_kernel);
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0;
  ncclComm_t communicator_ = nullptr;
  ncclComm_t other_ = nullptr;  ///< of the fastest
  std::string ran_;             ///< last
  std::string asked_;           ///< what its timings said to be the fastest
  int num_fastest_ = 0;         ///< how often that was done
  bool is_later_ = false;       ///< it was done once
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const Place place = place_of_this_process();
  const Wanted wanted = wanted_of(argc, argv, place.rank);
  Operation(wanted, place).run();
  return 0;
}

// What the kernels of the random regions compute. Every change of a word can be undone, so that
// nothing that went wrong in one is lost later; all arithmetic is that of unsigned integers, so
// that no order of threads matters.
#include "simulated_kernels.hpp"

#include <atomic>
#include <deque>
#include <simcuda/kernel.hpp>
#include <vector>

#include "plan.hpp"

namespace {

using Word = std::uint32_t;
using simcuda::argument;

/// What this kernel does with blocks that it was not written for.
template <Flavour flavour>
void spoil(const simcuda_launch* launch, Word& word, std::uint64_t victim) {
  if (launch->block[0] != wrong_block) return;
  if (flavour == Flavour::Wrong) word += 1'234'567;
  if (flavour == Flavour::Stray) ++*reinterpret_cast<Word*>(disguised(victim));
}

template <Flavour flavour>
void twist(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 0);
  auto* const x = argument<Word*>(*launch, 1);
  for (Word i = 0; i < n; ++i) x[i] = x[i] * 2654435761U + i;
  spoil<flavour>(launch, x[n / 2], argument<std::uint64_t>(*launch, 2));
}

void add_mixed(Word n, const Word* from, Word* to) {
  for (Word i = 0; i < n; ++i) to[i] = to[i] * 3 + from[i];
}

template <Flavour flavour>
void mix(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 0);
  auto* const to = argument<Word*>(*launch, 2);
  add_mixed(n, argument<const Word*>(*launch, 1), to);
  spoil<flavour>(launch, to[n / 2], argument<std::uint64_t>(*launch, 3));
}

template <Flavour flavour>
void job(const simcuda_launch* launch) {
  const auto given = argument<Job>(*launch, 0);
  for (Word i = 0; i < given.words; ++i) {
    given.to[i] = given.to[i] * 5 ^ ((given.from[i] >> given.shift) + given.kind);
  }
  spoil<flavour>(launch, given.to[given.words / 2], argument<std::uint64_t>(*launch, 1));
}

template <Flavour flavour>
void through(const simcuda_launch* launch) {
  Word* const* const table = argument<Word* const*>(*launch, 0);
  const Word n = argument<Word>(*launch, 3);
  Word* const to = table[argument<Word>(*launch, 2)];
  add_mixed(n, table[argument<Word>(*launch, 1)], to);
  spoil<flavour>(launch, to[n / 2], argument<std::uint64_t>(*launch, 4));
}

void shuffle(const simcuda_launch* launch) {
  auto* const table = argument<std::uint64_t*>(*launch, 0);
  std::swap(table[argument<Word>(*launch, 1)], table[argument<Word>(*launch, 2)]);
}

template <Flavour flavour>
void count(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 0);
  const auto* const from = argument<const Word*>(*launch, 1);
  auto* const bins = argument<Word*>(*launch, 2);
  for (Word i = 0; i < n; ++i) std::atomic_ref(bins[from[i] % n]).fetch_add(1);
  spoil<flavour>(launch, bins[n / 2], argument<std::uint64_t>(*launch, 3));
}

template <Flavour flavour>
void tally(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 0);
  const auto* const from = argument<const Word*>(*launch, 1);
  auto* const counters = simcuda::global<Word>(*launch, "counters");
  for (Word i = 0; i < n; ++i) counters[i % num_counters] += from[i];
  spoil<flavour>(launch, counters[0], argument<std::uint64_t>(*launch, 2));
}

template <Flavour flavour>
void recall(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 0);
  auto* const to = argument<Word*>(*launch, 1);
  const auto* const counters = simcuda::global<Word>(*launch, "counters");
  for (Word i = 0; i < n; ++i) to[i] = to[i] * 7 + counters[i % num_counters];
  spoil<flavour>(launch, to[n / 2], argument<std::uint64_t>(*launch, 2));
}

/// Parameters of many sizes, to see where they lie.
template <Flavour flavour>
void odd(const simcuda_launch* launch) {
  const Word n = argument<Word>(*launch, 5);
  auto* const to = argument<Word*>(*launch, 3);
  const Word sum = argument<std::uint8_t>(*launch, 0) +
                   static_cast<Word>(argument<double>(*launch, 1)) +
                   argument<std::uint16_t>(*launch, 2) + argument<std::uint8_t>(*launch, 4);
  for (Word i = 0; i < n; ++i) to[i] = (to[i] ^ sum) * 9 + sum;
  spoil<flavour>(launch, to[n / 2], argument<std::uint64_t>(*launch, 6));
}

/// Each of these two alone is right with any blocks. Both with the same wrong ones are not: the
/// second finds what the first left, and writes where nothing else does.
void leave(const simcuda_launch* launch) {
  if (launch->block[0] == wrong_block) ++*argument<Word*>(*launch, 1);
}
void clear(const simcuda_launch* launch) {
  const Word value = argument<Word>(*launch, 0);
  Word& word = *argument<Word*>(*launch, 1);
  const bool finds = word != value;
  word = value;
  if (!finds || launch->block[0] != wrong_block) return;
  ++*reinterpret_cast<Word*>(disguised(argument<std::uint64_t>(*launch, 2)));
}

void publish(const simcuda_launch* launch) {
  *argument<std::uint64_t*>(*launch, 0) =
      reinterpret_cast<std::uint64_t>(simcuda::global<Word>(*launch, "published"));
}

Word unstable_launches = 0;

void unstable(const simcuda_launch* launch) {
  argument<Word*>(*launch, 1)[0] += ++unstable_launches;
}

/// A wrong config is always the fastest: it must not win all the same.
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->items = 10'000;
  work->flops = launch->block[0] == wrong_block ? 1 : 1e8;
}

template <typename... Parameters>
simcuda_kernel kernel(Family family, Flavour flavour, simcuda::Run run) {
  static std::deque<std::string> names;
  names.push_back(kernel_name(family, flavour));
  return simcuda::whole_launch_kernel<Parameters...>(names.back().c_str(), run, &describe);
}

template <Flavour flavour>
void add_kernels(std::vector<simcuda_kernel>& all) {
  using Bits = std::uint64_t;
  const auto add = [&](const simcuda_kernel& one) { all.push_back(one); };
  add(kernel<Word, Word*, Bits>(Family::Twist, flavour, &twist<flavour>));
  add(kernel<Word, const Word*, Word*, Bits>(Family::Mix, flavour, &mix<flavour>));
  add(kernel<Job, Bits>(Family::Job, flavour, &job<flavour>));
  add(kernel<Word**, Word, Word, Word, Bits>(Family::Through, flavour, &through<flavour>));
  add(kernel<Word, const Word*, Word*, Bits>(Family::Count, flavour, &count<flavour>));
  add(kernel<Word, const Word*, Bits>(Family::Tally, flavour, &tally<flavour>));
  add(kernel<Word, Word*, Bits>(Family::Recall, flavour, &recall<flavour>));
  add(kernel<std::uint8_t, double, std::uint16_t, Word*, std::uint8_t, Word, Bits>(
      Family::Odd, flavour, &odd<flavour>));
}

}  // namespace

bool register_kernels() {
  static const std::vector<simcuda_kernel> all = [] {
    std::vector<simcuda_kernel> kernels;
    add_kernels<Flavour::Right>(kernels);
    add_kernels<Flavour::Wrong>(kernels);
    add_kernels<Flavour::Stray>(kernels);
    kernels.push_back(
        kernel<std::uint64_t*, Word, Word>(Family::Shuffle, Flavour::Right, &shuffle));
    kernels.push_back(kernel<Word, Word*>(Family::Leave, Flavour::Right, &leave));
    kernels.push_back(kernel<Word, Word*, std::uint64_t>(Family::Clear, Flavour::Right, &clear));
    kernels.push_back(kernel<Word, Word*>(Family::Unstable, Flavour::Right, &unstable));
    kernels.push_back(
        simcuda::whole_launch_kernel<std::uint64_t*>(publishing_kernel, &publish, &describe));
    return kernels;
  }();
  static const std::vector<const simcuda_kernel*> addresses = [] {
    std::vector<const simcuda_kernel*> list;
    for (const simcuda_kernel& one : all) list.push_back(&one);
    return list;
  }();
  static const simcuda_kernel_table table{SIMCUDA_VERSION, addresses.data(), addresses.size()};
  return simcuda_register_kernels(&table) == 0;
}

std::string shown_access(Family family, Flavour flavour) {
  if (flavour == Flavour::Stray) return {};
  switch (family) {
    case Family::Twist:
    case Family::Leave:
      return "1=rw";
    case Family::Mix:
      return "1=r 2=rw";
    case Family::Job:
      return "0=rw";
    case Family::Count:
      return "1=r! 2=rw";
    case Family::Odd:
      return "3=rw";
    case Family::Through:
    case Family::Tally:
    case Family::Recall:
    case Family::Shuffle:
    case Family::Clear:
    case Family::Unstable:
      break;
  }
  return {};
}

void reset_unstable_kernels() {
  unstable_launches = 0;
}

// Leases between threads: getCollInfo of several communicators at once, and the owner.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "collective/lease_table.hpp"

using namespace contextune::collective;

namespace {

using Refusal = LeaseTable::Refusal;

constexpr std::size_t num_readers = 3;
constexpr std::uint64_t decisions_each = 30'000;
constexpr std::uint64_t ahead = 100;  // decisions between the starts of two leases

LeaseKey key_of_reader(std::size_t reader) {
  return {reader + 10, 4096, 1, Function::AllGather, 0};
}

/// A lease whose every answer shows which lease and which span it came from.
Lease marked_lease(std::size_t reader, std::uint64_t epoch, std::uint64_t first_decision) {
  Lease lease;
  lease.key = key_of_reader(reader);
  lease.epoch = epoch;
  lease.first_decision = first_decision;
  for (std::uint32_t i = 0; i < 8; ++i) {
    lease.spans.push_back({{true, {}, static_cast<std::uint8_t>(i)},
                           static_cast<std::uint32_t>(epoch * 16 + i),
                           5 + i});
  }
  lease.config_afterwards = static_cast<std::uint32_t>(epoch * 16 + 15);
  return lease;
}

/// What the n-th decision has to be if the leases were committed in time.
std::uint32_t expected_config(const std::vector<Lease>& committed, std::uint64_t number) {
  const auto next = std::upper_bound(
      committed.begin(), committed.end(), number,
      [](std::uint64_t n, const Lease& lease) { return n < lease.first_decision; });
  if (next == committed.begin()) return 0;
  const auto holds = next - 1;
  std::uint64_t at = number - holds->first_decision;
  for (const LeaseSpan& span : holds->spans) {
    if (at < span.decisions) return span.config;
    at -= span.decisions;
  }
  return holds->config_afterwards;
}

struct Answer {
  std::uint64_t number;
  std::uint32_t config;
};

}  // namespace

TEST_CASE("Every decision is what the committed leases say, while the owner installs more",
          "[lease_threads]") {
  const auto table = std::make_unique<LeaseTable>();
  std::array<std::vector<Answer>, num_readers> answers;
  std::array<std::vector<Lease>, num_readers> committed;
  // A reader stays behind the next lease's first decision, as a region's entry does.
  std::array<std::atomic<std::uint64_t>, num_readers> limits;
  for (auto& limit : limits) limit = ahead;

  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < num_readers; ++reader) {
    readers.emplace_back([&, reader] {
      for (std::uint64_t i = 0; i < decisions_each; ++i) {
        while (i >= limits[reader].load(std::memory_order_relaxed)) std::this_thread::yield();
        const Grant grant = table->decide(key_of_reader(reader));
        answers[reader].push_back({grant.number, grant.config});
      }
    });
  }

  int late = 0;
  for (std::uint64_t epoch = 1; std::any_of(
           limits.begin(), limits.end(), [](const auto& limit) { return limit < decisions_each; });
       ++epoch) {
    for (std::size_t reader = 0; reader < num_readers; ++reader) {
      const std::uint64_t first = limits[reader];
      const Lease lease = marked_lease(reader, epoch, first);
      const Refusal refusal = table->prepare(lease);
      if (refusal != Refusal::None) {
        // The reader has not come to the lease before, or not to its first decision, or is in one.
        const bool is_ahead = refusal == Refusal::NotBegun || refusal == Refusal::UnknownKey ||
                              refusal == Refusal::DecisionNow;
        REQUIRE(is_ahead);
      } else {
        late += table->commit(epoch).late;
        committed[reader].push_back(lease);
        limits[reader] = first + ahead;
      }
    }
    std::this_thread::yield();
  }
  for (std::thread& reader : readers) reader.join();

  CHECK(late == 0);
  for (std::size_t reader = 0; reader < num_readers; ++reader) {
    CHECK(committed[reader].size() >= decisions_each / ahead - 1);
    REQUIRE(answers[reader].size() == decisions_each);
    std::size_t wrong = 0;
    for (std::uint64_t i = 0; i < decisions_each; ++i) {
      const Answer& answer = answers[reader][i];
      if (answer.number != i || answer.config != expected_config(committed[reader], i)) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("Several threads that decide for one key share its numbers between them",
          "[lease_threads]") {
  const auto table = std::make_unique<LeaseTable>();
  static_cast<void>(table->decide(key_of_reader(0)));
  std::vector<std::vector<Answer>> answers(num_readers);
  REQUIRE(table->prepare(marked_lease(0, 1, 1)) == Refusal::None);
  REQUIRE(table->commit(1).late == 0);
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < num_readers; ++reader) {
    readers.emplace_back([&, reader] {
      for (int i = 0; i < 1000; ++i) {
        const Grant grant = table->decide(key_of_reader(0));
        answers[reader].push_back({grant.number, grant.config});
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  std::vector<bool> seen(1 + num_readers * 1000, false);
  const std::vector<Lease> committed = {marked_lease(0, 1, 1)};
  for (const auto& mine : answers) {
    for (const Answer& answer : mine) {
      REQUIRE(answer.number < seen.size());
      REQUIRE_FALSE(seen[answer.number]);
      seen[answer.number] = true;
      REQUIRE(answer.config == expected_config(committed, answer.number));
    }
  }
}

TEST_CASE("Threads that decide first for one key at once make one place for it",
          "[lease_threads]") {
  const auto table = std::make_unique<LeaseTable>();
  constexpr std::uint64_t rounds = 2000;
  std::array<std::atomic<std::uint64_t>, 2> done{};
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < done.size(); ++reader) {
    readers.emplace_back([&, reader] {
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        LeaseKey key = key_of_reader(0);
        key.communicator = round;
        static_cast<void>(table->decide(key));
        done[reader] = round;
        while (std::any_of(done.begin(), done.end(), [&](const auto& of) { return of < round; })) {
          std::this_thread::yield();
        }
        if (reader == 0) {
          const std::uint64_t counted = table->decisions(key);
          table->forget(round);
          if (counted != done.size()) std::abort();
          done[0] = round + 1;
        } else {
          for (int looks = 0; done[0] <= round; ++looks) {
            if (looks > 1000) std::this_thread::yield();  // at first not: both shall start at once
          }
        }
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST_CASE("No lease is rewritten under a decision that holds it", "[lease_threads]") {
  // Against its contract the owner installs leases that begin at once, while several threads decide
  // for one key: which of two leases answers is not determined then, but it is one of them.
  const auto table = std::make_unique<LeaseTable>();
  static_cast<void>(table->decide(key_of_reader(0)));
  std::atomic<bool> done{false};
  std::atomic<std::size_t> mixed{0};
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < num_readers; ++reader) {
    readers.emplace_back([&] {
      while (!done.load(std::memory_order_relaxed)) {
        const Grant grant = table->decide(key_of_reader(0));
        if (grant.config / 16 != grant.epoch) ++mixed;
      }
    });
  }
  int installed = 0;
  for (std::uint64_t epoch = 1; epoch < 40'000; ++epoch) {
    const std::uint64_t now = table->decisions(key_of_reader(0));
    if (table->prepare(marked_lease(0, epoch, now)) != Refusal::None) continue;
    installed += table->commit(epoch).leases;
  }
  // A decision is under way nearly always; here is one time when none is.
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(mixed == 0);
  const std::uint64_t now = table->decisions(key_of_reader(0));
  CHECK(table->prepare(marked_lease(0, 40'000, now)) == Refusal::None);
  CHECK(installed + table->commit(40'000).leases > 0);
}

TEST_CASE("Places are given back and taken again while others decide", "[lease_threads]") {
  const auto table = std::make_unique<LeaseTable>();
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (std::uint64_t n = 0; !done; ++n) {
      if (table->decide(key_of_reader(0)).number != n) std::abort();
      std::this_thread::yield();
    }
  });
  for (std::uint64_t communicator = 100; communicator < 3000; ++communicator) {
    LeaseKey key = key_of_reader(0);
    key.communicator = communicator;
    REQUIRE(table->decide(key).number == 0);
    REQUIRE(table->decide(key).number == 1);
    table->forget(communicator);
  }
  done = true;
  other.join();
}

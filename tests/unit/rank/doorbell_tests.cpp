#include "rank/star/doorbell.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "catch.hpp"

using contextune::rank::Doorbell;

TEST_CASE("A loop does works in their order, whether it was woken up or is awake", "[rank]") {
  asio::io_context loop;
  Doorbell doorbell(loop);
  doorbell.start();
  std::vector<int> done;
  doorbell.ring([&] { done.push_back(1); });
  // By then the loop was told of it, and has not looked.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  doorbell.ring([&] { done.push_back(2); });
  doorbell.answer();
  loop.poll();
  CHECK(done == std::vector{1, 2});
}

#include "orders.hpp"

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent make_event() {
  CUevent event = nullptr;
  SUCCEEDS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

unsigned orders_with(float meant, const std::function<float(Session&)>& program) {
  unsigned found = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    simcuda_set_order(1, seed);
    Session session;
    if (program(session) == meant) ++found;
  }
  simcuda_set_order(0, 0);
  return found;
}

bool always(float meant, const std::function<float(Session&)>& program) {
  return orders_with(meant, program) == seeds;
}

bool sometimes(float meant, const std::function<float(Session&)>& program) {
  const unsigned found = orders_with(meant, program);
  return found > 0 && found < seeds;
}

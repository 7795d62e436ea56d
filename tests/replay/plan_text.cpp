// A plan in words.
#include <array>
#include <string>

#include "plan.hpp"

namespace {

constexpr std::array families{"twist",  "mix", "job",     "through", "count", "tally",
                              "recall", "odd", "shuffle", "leave",   "clear", "unstable"};
constexpr std::array flavours{"", "_wrong", "_stray"};
constexpr std::array forms{"parameters", "packed", "extended", "cooperative"};
constexpr std::array streams{"legacy", "per-thread", "blocking", "non-blocking"};
constexpr std::array memories{"alloc",     "pitch",   "async",   "pool",  "global",
                              "published", "virtual", "managed", "shared"};
constexpr std::array kinds{"kernel",
                           "host-to-device",
                           "device-to-device",
                           "device-to-host",
                           "set",
                           "record",
                           "wait",
                           "synchronise",
                           "synchronise-event",
                           "synchronise-all",
                           "query",
                           "write-pinned",
                           "write-results",
                           "load-module",
                           "graph",
                           "host-function",
                           "wait-value",
                           "allocate",
                           "release",
                           "other-thread",
                           "kernel-on-host",
                           "copy-with-pitch",
                           "capture"};

template <std::size_t N, typename Enum>
std::string word(const std::array<const char*, N>& words, Enum value) {
  return words.at(static_cast<std::size_t>(value));
}

std::string number(const char* name, std::size_t value) {
  return std::string(" ") + name + "=" + std::to_string(value);
}

std::string line(const Action& action) {
  using Kind = Action::Kind;
  std::string text = "  " + word(kinds, action.kind) + number("stream", action.stream);
  switch (action.kind) {
    case Kind::Kernel:
      return text + " " + kernel_name(action.family, action.flavour) + " " +
             word(forms, action.form) + number("block", action.block) +
             number("from", action.from) + number("to", action.to) + number("words", action.words) +
             number("module", action.module) +
             (action.flavour == Flavour::Stray ? number("victim", action.victim_memory) + "+" +
                                                     std::to_string(action.victim_byte)
                                               : "");
    case Kind::Record:
    case Kind::Wait:
    case Kind::SynchroniseEvent:
    case Kind::Query:
      return text + number("event", action.event);
    case Kind::HostToDevice:
    case Kind::DeviceToHost:
    case Kind::DeviceToDevice:
      return text + number("from", action.from) + number("to", action.to) +
             number("offset", action.offset_bytes) + number("bytes", action.bytes) +
             number("call", static_cast<std::size_t>(action.call)) +
             (action.host == Action::Host::Pinned ? number("pinned", action.pinned) : "");
    case Kind::Graph:
      return text + number("graph", action.graph);
    default:
      return text + number("to", action.to) + number("words", action.words) +
             number("pinned", action.pinned);
  }
}

}  // namespace

std::string kernel_name(Family family, Flavour flavour) {
  return word(families, family) + word(flavours, flavour);
}

std::string region_name(std::uint64_t seed) {
  return "region" + std::to_string(seed);
}

std::string describe(const Plan& plan) {
  std::string text = region_name(plan.seed) + number("visits", plan.visits) +
                     number("deferred", plan.deferred ? 1 : 0) +
                     number("waits_between", plan.waits_between ? 1 : 0) + " expect";
  for (const std::string& one : plan.expected) text += " " + one;
  text += "\nstreams:";
  for (const StreamKind kind : plan.streams) text += " " + word(streams, kind);
  text += "\nmemory:";
  for (const MemoryPlan& one : plan.memory) {
    text += " " + word(memories, one.kind) + "(" + std::to_string(one.bytes) + ")";
  }
  text += "\nbuffers:";
  for (const BufferPlan& one : plan.buffers) {
    text += " " + std::to_string(one.memory) + "+" + std::to_string(one.first_byte) + "(" +
            std::to_string(one.words) + (one.kept ? ", kept)" : ")");
  }
  text += "\ntable in " + std::to_string(plan.table_buffer) + ":";
  for (const std::size_t one : plan.table) text += " " + std::to_string(one);
  for (const GraphPlan& graph : plan.graphs) {
    text += graph.calls_host ? "\ngraph with a host function:" : "\ngraph:";
    for (const Action& node : graph.nodes) text += "\n" + line(node);
  }
  text += "\nregion:\n";
  for (const Action& action : plan.region) text += line(action) + "\n";
  text += "between:\n";
  for (const Action& action : plan.between) text += line(action) + "\n";
  return text;
}

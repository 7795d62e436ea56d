#include "segment.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "error.hpp"

namespace simnccl {

namespace {

constexpr std::size_t page = 4096;

std::size_t up_to_page(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}

struct Layout {
  std::size_t exchanges = 0, collectives, messages, collective_data, message_data, end;

  explicit Layout(std::size_t ranks)
      : collectives(up_to_page(ranks * sizeof(ExchangeSlot))),
        messages(collectives + up_to_page(ranks * collective_slots * sizeof(CollectiveSlot))),
        collective_data(messages + up_to_page(ranks * ranks * message_slots * sizeof(MessageSlot))),
        message_data(collective_data + ranks * collective_slots * collective_slot_bytes),
        end(message_data + ranks * ranks * message_slots * message_slot_bytes) {}
};

}  // namespace

int Segment::create_file(int ranks) {
  const int file = memfd_create("simnccl", MFD_CLOEXEC);
  const auto bytes = static_cast<off_t>(Layout(static_cast<std::size_t>(ranks)).end);
  if (file < 0 || ftruncate(file, bytes) != 0) {
    if (file >= 0) close(file);
    throw Error{ncclSystemError, "no memory to share between ranks"};
  }
  return file;
}

Segment::Segment(int file, int ranks)
    : ranks_(static_cast<std::size_t>(ranks)), bytes_(Layout(ranks_).end) {
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw Error{ncclSystemError, "shared memory cannot be mapped"};
  // A process forked from a rank is none, and tools that look at all memory need not look here.
  madvise(memory, bytes_, MADV_DONTDUMP);
  memory_ = static_cast<std::byte*>(memory);
}

Segment::~Segment() {
  munmap(memory_, bytes_);
}

ExchangeSlot& Segment::exchange(int rank) const {
  return reinterpret_cast<ExchangeSlot*>(memory_)[rank];
}

CollectiveSlot& Segment::collective(int rank, std::uint64_t sequence) const {
  auto* const slots = reinterpret_cast<CollectiveSlot*>(memory_ + Layout(ranks_).collectives);
  return slots[static_cast<std::uint64_t>(rank) * collective_slots + sequence % collective_slots];
}

MessageSlot& Segment::message(int from, int to, std::uint64_t sequence) const {
  auto* const slots = reinterpret_cast<MessageSlot*>(memory_ + Layout(ranks_).messages);
  const std::size_t pair = static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  return slots[pair * message_slots + sequence % message_slots];
}

std::byte* Segment::collective_data(int rank, std::uint64_t sequence) const {
  const std::size_t slot =
      static_cast<std::size_t>(rank) * collective_slots + sequence % collective_slots;
  return memory_ + Layout(ranks_).collective_data + slot * collective_slot_bytes;
}

std::byte* Segment::message_data(int from, int to, std::uint64_t sequence) const {
  const std::size_t pair = static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  const std::size_t slot = pair * message_slots + sequence % message_slots;
  return memory_ + Layout(ranks_).message_data + slot * message_slot_bytes;
}

void Segment::drop(std::byte* data, std::size_t bytes) {
  // Small ones are soon used again.
  if (bytes >= (std::size_t{1} << 20)) madvise(data, up_to_page(bytes), MADV_REMOVE);
}

}  // namespace simnccl

// Images of the compiler with waits put in, held against what a reader of the test's own finds.
#include "gpu/image/spliced_image.hpp"

#include <elf.h>

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "gpu/image/fat_binary.hpp"
#include "tests/file_text.hpp"

using namespace contextune::gpu;

namespace splice_oracle {

template <typename T>
T read(std::string_view bytes, std::uint64_t offset) {
  T value{};
  if (offset + sizeof(T) > bytes.size()) FAIL("beyond the end");
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string file(const std::string& name) {
  const std::string bytes = text_of(std::string(CONTEXTUNE_TEST_IMAGES) + "/" + name);
  REQUIRE_FALSE(bytes.empty());
  return bytes;
}

std::optional<SplicedImage> splice(std::string_view image, std::string& why,
                                   std::uint64_t most_bytes = 1 << 24) {
  return spliced_image(
      BufferSource(image), most_bytes, [](const CodeKernel&) { return true; }, why);
}

SplicedImage spliced(std::string_view image) {
  std::string why;
  auto made = splice(image, why);
  INFO(why);
  REQUIRE(made);
  return std::move(*made);
}

std::string splice_refusal(std::string_view image, std::uint64_t most_bytes = 1 << 24) {
  std::string why;
  CHECK_FALSE(splice(image, why, most_bytes));
  return why;
}

/// A kernel's code, by its section's name.
struct Text {
  std::string kernel;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

/// The sections with names that begin so.
std::vector<Text> sections_of(std::string_view code, const std::string& beginning) {
  const auto header = read<Elf64_Ehdr>(code, 0);
  const auto section = [&](std::uint64_t index) {
    return read<Elf64_Shdr>(code, header.e_shoff + index * sizeof(Elf64_Shdr));
  };
  std::vector<Text> texts;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const std::string name =
        code.data() + section(header.e_shstrndx).sh_offset + section(i).sh_name;
    if (!name.starts_with(beginning)) continue;
    texts.push_back({name.substr(beginning.size()), section(i).sh_offset, section(i).sh_size});
  }
  return texts;
}

std::vector<Text> texts_of(std::string_view code) {
  return sections_of(code, ".text.");
}

/// Where the branch at `place` leads; 0: it is none that is always taken.
std::uint64_t target(std::string_view code, std::uint64_t place) {
  const auto low = read<std::uint64_t>(code, place);
  const auto high = read<std::uint64_t>(code, place + 8);
  if ((low & 0xffff) != 0x7947 || (high & 0x3800000) != 0x3800000) return 0;
  // A number of words with 56 bits in three pieces.
  const std::uint64_t words = (low >> 16 & 0xff) | low >> 34 << 8 | (high & 0x3ffff) << 38;
  const auto distance = static_cast<std::int64_t>(words << 8) >> 8;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(place + 16) + 4 * distance);
}

/// Takes 16 bytes from every number in what is said of a kernel that has grown by them.
void undo_numbers(std::string_view before, std::string& undone, const Text& text) {
  for (const Text& facts : sections_of(before, ".nv.info.")) {
    if (facts.kernel != text.kernel) continue;
    for (std::uint64_t at = facts.begin; at < facts.begin + facts.bytes; at += 4) {
      const auto number = read<std::uint32_t>(before, at);
      if (read<std::uint32_t>(undone, at) == number) continue;
      CHECK(read<std::uint32_t>(undone, at) == number + 16);
      CHECK((number % 16 == 0 && number >= 16 && number < text.bytes - 16));
      undone.replace(at, 4, before.substr(at, 4));
    }
  }
}

/// Holds every byte of changed machine code against the original.
/// @param waiting kernels that are to wait; all others are as they were
void check_code(std::string_view before, std::string_view after,
                const std::set<std::string>& waiting) {
  REQUIRE(before.size() == after.size());
  std::string undone(after);
  std::set<std::string> found;
  for (const Text& text : texts_of(before)) {
    INFO(text.kernel);
    if (before.substr(text.begin, text.bytes) == after.substr(text.begin, text.bytes)) continue;
    found.insert(text.kernel);
    if ((read<std::uint64_t>(after, text.begin) & 0xffff) == 0x782e) {
      // In place of the stack pointer's load; nothing else of it may have changed.
      CHECK(read<std::uint64_t>(before, text.begin) == 0x00000a00ff017b82);
      undone.replace(text.begin, 16, before.substr(text.begin, 16));
      continue;
    }
    if ((read<std::uint64_t>(after, text.begin + 16) & 0xffff) == 0x782e) {
      // In front of the rest, which has moved into the padding; what is said of it is seen below.
      const std::uint64_t moved = text.bytes - 32;
      CHECK(after.substr(text.begin, 16) == before.substr(text.begin, 16));
      CHECK(after.substr(text.begin + 32, moved) == before.substr(text.begin + 16, moved));
      CHECK(read<std::uint64_t>(before, text.begin + text.bytes - 16) == 0x7918);
      undone.replace(text.begin, text.bytes, before.substr(text.begin, text.bytes));
      undo_numbers(before, undone, text);
      continue;
    }
    const std::uint64_t detour = target(after, text.begin);
    REQUIRE(detour > text.begin);
    REQUIRE(detour + 48 <= text.begin + text.bytes);
    // The way of the entry: what was first, the wait, the second.
    CHECK(after.substr(detour, 16) == before.substr(text.begin, 16));
    CHECK((read<std::uint64_t>(after, detour + 16) & 0xffff) == 0x782e);
    CHECK(target(after, detour + 32) == text.begin + 16);
    // Nobody came there before: NOPs behind a branch to itself.
    CHECK(target(before, detour - 16) == detour - 16);
    for (std::uint64_t at = detour; at < text.begin + text.bytes; at += 16) {
      CHECK(read<std::uint64_t>(before, at) == 0x7918);
    }
    undone.replace(text.begin, 16, before.substr(text.begin, 16));
    undone.replace(detour, 48, before.substr(detour, 48));
  }
  CHECK(found == waiting);
  CHECK((undone == before));
}

/// An entry of a fatbin.
struct Entry {
  std::string header;
  std::string stored;
  [[nodiscard]] int kind() const { return read<std::uint16_t>(header, 0); }
  [[nodiscard]] int architecture() const { return read<std::uint16_t>(header, 28); }
  /// But sizes and how it is compressed.
  [[nodiscard]] std::string identity() const {
    std::string kept = header;
    kept.replace(8, 12, 12, '\0');
    kept.replace(56, 8, 8, '\0');
    kept[41] = static_cast<char>(kept[41] & ~0xa0);  // two bits of its flags
    return kept;
  }
};

std::vector<Entry> entries_of(std::string_view image) {
  CHECK(read<std::uint32_t>(image, 0) == 0xba55ed50);
  CHECK(read<std::uint16_t>(image, 4) == 1);
  std::uint64_t at = read<std::uint16_t>(image, 6);
  CHECK(at + read<std::uint64_t>(image, 8) == image.size());
  std::vector<Entry> entries;
  while (at < image.size()) {
    const auto header = read<std::uint32_t>(image, at + 4);
    const auto bytes = read<std::uint64_t>(image, at + 8);
    entries.push_back(
        {std::string(image.substr(at, header)), std::string(image.substr(at + header, bytes))});
    at += header + bytes;
  }
  CHECK(at == image.size());
  return entries;
}

/// @param codes the machine code of the fatbin's entries for sm_90, in their order
void check_fat_binary(std::string_view before, std::string_view after,
                      const std::vector<std::string>& codes, const std::set<std::string>& waiting) {
  const std::vector<Entry> made = entries_of(after);
  std::size_t next = 0;
  std::size_t code = 0;
  for (const Entry& one : entries_of(before)) {
    if (one.kind() == 2 && one.architecture() != 90) continue;
    REQUIRE(next < made.size());
    const Entry& now = made[next++];
    if (one.kind() != 2) {
      CHECK((now.header == one.header && now.stored == one.stored));
      continue;
    }
    CHECK((now.identity() == one.identity()));
    CHECK(now.stored.size() % 8 == 0);
    REQUIRE(code < codes.size());
    std::string content = codes[code++];
    content.resize(now.stored.size());
    check_code(content, now.stored, waiting);
  }
  CHECK(next == made.size());
  CHECK(code == codes.size());
}

std::set<std::string> kernels_in(std::string_view code) {
  std::set<std::string> names;
  for (const Text& text : texts_of(code)) names.insert(text.kernel);
  return names;
}

const std::set<std::string> that_may_wait = {"plain", "empty", "stack", "calls", "writes_variable"};

}  // namespace splice_oracle

TEST_CASE("Every kernel of machine code that may wait waits, and no other byte changes",
          "[spliced_image]") {
  using namespace splice_oracle;
  const std::string code = file("entry_waits.cubin");
  const SplicedImage made = spliced(code);
  check_code(code, made.bytes, that_may_wait);
  CHECK(made.code_bytes == code.size());
  for (const char* name : {"variables.cubin", "functions.cubin"}) {
    INFO(name);
    const std::string other = file(name);
    check_code(other, spliced(other).bytes, kernels_in(other));
  }
}

TEST_CASE("A kernel's own wait or trigger stays and is reported", "[spliced_image]") {
  using namespace splice_oracle;
  const SplicedImage made = spliced(file("entry_waits.cubin"));
  CHECK(made.kernels.size() == 7);
  for (const auto& [symbol, order] : made.kernels) {
    INFO(symbol);
    CHECK(order.waits == that_may_wait.contains(symbol));
    CHECK(order.triggers == (symbol == "triggers"));
    CHECK_FALSE(order.launches);
  }
  const std::map<NoEntryWait, std::size_t> refused = {{NoEntryWait::OwnWait, 1},
                                                      {NoEntryWait::OwnTrigger, 1}};
  CHECK((made.refused == refused));
  // An image that can launch from the device says so, and is not linked.
  const SplicedImage launching = spliced(file("launch.cubin"));
  CHECK(launching.bytes.empty());
  REQUIRE_FALSE(launching.kernels.empty());
  for (const auto& [symbol, order] : launching.kernels) CHECK((order.launches && !order.waits));
}

TEST_CASE("A fatbin keeps its source, its order and all headers, however it is compressed",
          "[spliced_image]") {
  using namespace splice_oracle;
  const std::string code = file("variables.cubin");
  std::size_t seen = 0;
  for (const char* name : {"default", "all", "size", "speed", "balance", "none"}) {
    INFO(name);
    const std::string image = text_of(std::string(CONTEXTUNE_TEST_IMAGES) + "/" + name + ".fatbin");
    if (image.empty()) continue;  // a compiler without that mode
    ++seen;
    const SplicedImage made = spliced(image);
    check_fat_binary(image, made.bytes, {code}, kernels_in(code));
    CHECK(made.code_bytes >= code.size());
    const bool is_compressed = image.find(code) == image.npos;
    CHECK((made.spared_seconds > 0) == is_compressed);
    // All wait already: there is nothing to change.
    CHECK(spliced(made.bytes).bytes.empty());
  }
  CHECK(seen >= 2);
}

TEST_CASE("Of several architectures those for sm_90 wait, all of them, and others are left out",
          "[spliced_image]") {
  using namespace splice_oracle;
  const std::string image = file("several.fat");
  std::vector<std::string> codes;
  std::string why;
  const auto all = read_fat_binary(BufferSource(image), why);
  REQUIRE(all);
  for (const FatBinaryEntry& one : *all) {
    if (one.kind != FatBinaryEntry::Kind::Cubin || one.architecture != 90) continue;
    codes.push_back(*content_of(BufferSource(image), one, why));
  }
  CHECK(codes.size() == 2);  // sm_90 and sm_90a
  CHECK(entries_of(image).size() == 4);
  const SplicedImage made = spliced(image);
  check_fat_binary(image, made.bytes, codes, that_may_wait);
  CHECK(made.kernels.size() == 7);
  CHECK(made.refused.at(NoEntryWait::OwnWait) == 2);
}

TEST_CASE("A kernel that is not wanted stays as it is, and is known", "[spliced_image]") {
  using namespace splice_oracle;
  const std::string code = file("entry_waits.cubin");
  std::string why;
  const auto only = spliced_image(
      BufferSource(code), 1 << 24, [](const CodeKernel& one) { return one.symbol == "empty"; },
      why);
  REQUIRE(only);
  check_code(code, only->bytes, {"empty"});
  CHECK(only->kernels.at("empty").waits);
  CHECK_FALSE(only->kernels.at("plain").waits);
  const auto none = spliced_image(
      BufferSource(code), 1 << 24, [](const CodeKernel&) { return false; }, why);
  REQUIRE(none);
  CHECK(none->bytes.empty());
  CHECK(none->kernels.size() == 7);
}

TEST_CASE("An image that cannot be given waits is left alone with a reason", "[spliced_image]") {
  using namespace splice_oracle;
  CHECK(splice_refusal(file("variables.ptx")) == "it is source that the driver compiles");
  CHECK(splice_refusal(std::string("\1\2\3\4 and more", 13)) == "it has a form that is not known");
  CHECK(splice_refusal("") == "it has a form that is not known");
  CHECK(splice_refusal(file("old.fat")) == "it has no machine code for sm_90");
  const std::string code = file("entry_waits.cubin");
  const std::string fatbin = file("default.fatbin");
  CHECK(splice_refusal(code, code.size() - 1) == "it has more machine code than is worth reading");
  CHECK(splice_refusal(fatbin, 100) == "it has more machine code than is worth reading");
  std::string why;
  CHECK(splice(code, why, code.size()));
  for (const std::string& image : {code, fatbin, file("several.fat")}) {
    for (std::size_t bytes = 64; bytes < image.size(); bytes += image.size() / 64) {
      INFO(bytes << " of " << image.size());
      CHECK_FALSE(splice_refusal(std::string_view(image).substr(0, bytes)).empty());
    }
  }
}

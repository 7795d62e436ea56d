#include <cmath>
#include <contextune/error.hpp>
#include <filesystem>
#include <random>

#include "catch.hpp"
#include "log/log_reader.hpp"
#include "log/run_report.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

using contextune::log::find_rank_logs;
using contextune::log::LineReader;
using contextune::log::LogTail;
using contextune::log::ProcessReport;
using contextune::log::Record;
using contextune::log::ReportBuilder;

namespace {

const std::string head = "2026-11-20T20:33:53.120Z run=7f3a pid=4242 rank=0 level=info ";

std::string first_bad(const std::string& text) {
  ReportBuilder builder;
  LineReader reader("rank-0.log", [&](const Record& record) { return builder.add(record); });
  reader.feed(text);
  reader.finish();
  REQUIRE(reader.bad_lines().size() == 1);
  return reader.bad_lines()[0].to_string();
}

std::vector<ProcessReport> processes(const std::string& text) {
  ReportBuilder builder;
  LineReader reader("rank-0.log", [&](const Record& record) { return builder.add(record); });
  reader.feed(text);
  reader.finish();
  CHECK(reader.num_bad() == 0);
  return builder.processes();
}

}  // namespace

TEST_CASE("A line that cannot be used is named by file, line and reason", "[reader]") {
  CHECK(first_bad("hello\n") ==
        "rank-0.log:1: does not begin with a time like 2026-11-20T20:33:53.120Z");
  CHECK(first_bad(head + "event=region region=a\n" + head + "event=tri\x1b[1m\n") ==
        "rank-0.log:2: field event: the value of event is empty or should be in quotes");
  CHECK(first_bad("2026-11-20T20:33:53.120Z run=7f3a pid=-4 rank=0 level=info event=x\n") ==
        "rank-0.log:1: pid=-4 is not valid");
  CHECK(first_bad("2026-11-20T20:33:53.120Z run=7f3a rank=0 pid=1 level=info event=x\n") ==
        "rank-0.log:1: has field rank where pid should be");
  CHECK(first_bad(head + "event=reborn\n") ==
        "rank-0.log:1: event=reborn is not known to this version");
  CHECK(first_bad(head + "event=trial region=r site=s pass=1 config=x iter=0\n") ==
        "rank-0.log:1: event=trial without a usable config");
  CHECK(first_bad(head + "event=trial region=r site=s pass=1 config=99999999999 iter=0\n") ==
        "rank-0.log:1: event=trial without a usable config");
  CHECK(first_bad(head + "event=region region=a") ==
        "rank-0.log:1: was cut off: it does not end in a newline");
  CHECK(first_bad(std::string(3U << 20U, 'x') + "\n" + head + "event=region region=a\n") ==
        "rank-0.log:1: is longer than 1 MiB");
}

TEST_CASE("Where the text is cut into pieces does not matter", "[reader]") {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += head + "event=trial region=r site=s key=\"\" pass=" + std::to_string(i) +
            " config=1 block=64 iter=0 launches=1 time_us=2.5 timer=cupti\n";
    if (i % 7 == 0) text += "garbage\n\n";
  }
  for (const std::size_t step : {1U, 2U, 7U, 64U, 1000U}) {
    ReportBuilder builder;
    LineReader reader("f", [&](const Record& record) { return builder.add(record); });
    for (std::size_t i = 0; i < text.size(); i += step) reader.feed(text.substr(i, step));
    reader.finish();
    CHECK(reader.num_records() == 40);
    CHECK(reader.num_bad() == 6);
    CHECK(builder.processes().at(0).regions.at(0).sites.at(0).trials.size() == 40);
  }
}

TEST_CASE("Any bytes are read without harm", "[reader]") {
  const std::string good = head +
                           "event=winner region=r site=\"gemm<64, 64>\" key=\"n=1\" config=2 "
                           "block=256 time_us=2.53 default_us=5 reason=fastest\n";
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string text = good + good;
    const std::size_t changes = random() % 8;
    for (std::size_t i = 0; i < changes; ++i) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    text.resize(random() % (text.size() + 1));
    ReportBuilder builder;
    LineReader reader("f", [&](const Record& record) { return builder.add(record); });
    reader.feed(text);
    reader.finish();
    CHECK(reader.num_records() + reader.num_bad() <= 12);
    for (const auto& bad : reader.bad_lines()) {
      const std::string shown = bad.to_string();
      CHECK(shown.find('\n') == std::string::npos);
      CHECK(shown.find('\x1b') == std::string::npos);
    }
  }
}

TEST_CASE("A tail reads what is new and forgets nothing when the file is replaced", "[reader]") {
  ScratchFolder scratch;
  const std::string path = scratch.path("rank-0.log");
  ReportBuilder builder;
  LogTail tail(path, [&](const Record& record) { return builder.add(record); });
  CHECK(tail.poll() == ENOENT);
  const auto append = [&](const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  };
  append(head + "event=region region=a\n" + head + "event=reg");
  CHECK(tail.poll() == 0);
  CHECK(tail.lines().num_records() == 1);
  append("ion region=b\n");
  CHECK(tail.poll() == 0);
  CHECK(tail.lines().num_records() == 2);
  std::filesystem::resize_file(path, 0);
  append(head + "event=region region=c\n");
  CHECK(tail.finish() == 0);
  CHECK(tail.lines().num_bad() == 0);
  CHECK(builder.processes().at(0).regions.size() == 3);
}

TEST_CASE("Rank logs are found by name and ordered by rank", "[reader]") {
  ScratchFolder scratch;
  for (const char* name : {"rank-10.log", "rank-2.log", "rank-x.log", "rank-.log", "notes.txt",
                           "rank-1.log.bak", "rank-99999999999999999999.log"}) {
    std::ofstream(scratch.path(name)) << "";
  }
  const auto found = find_rank_logs(scratch.path(""));
  REQUIRE(found.size() == 2);
  CHECK(std::filesystem::path(found[0]).filename() == "rank-2.log");
  CHECK(std::filesystem::path(found[1]).filename() == "rank-10.log");
  CHECK_THROWS_AS(find_rank_logs(scratch.path("none")), contextune::Error);
}

TEST_CASE("Gains of pairs that are no numbers are none", "[report]") {
  for (const char* gains : {"0.5 x", "0.5,0.25", "nan", "1e999", "0x1p3", "0.5 ..."}) {
    CAPTURE(gains);
    const auto found = processes(
        head + "event=confirm region=decode verdict=kept pairs=2 pair_gains=\"" + gains + "\"\n");
    CHECK(found.at(0).regions.at(0).confirms.at(0).gains.empty());
  }
}

TEST_CASE("A report tells processes, regions and sites apart", "[report]") {
  const std::string other = "2026-11-20T20:33:54.000Z run=7f3a pid=9 rank=1 level=info ";
  const auto found =
      processes(head +
                "event=start version=0.1.0 program=./engine gpu=\"NVIDIA H200\" "
                "compute_capability=9.0 num_sms=132 driver=13.0 simulated=yes mode=auto "
                "regions=nvtx:decode timer=cupti\n" +
                head +
                "event=site region=decode site=saxpy key=\"n=1\" configs=3 launches=1 grid=8 "
                "block=128 shared_bytes=0 registers=20 provider=declared\n" +
                head + "event=site region=decode site=saxpy key=\"n=2\" configs=3\n" + other +
                "event=site region=decode site=saxpy key=\"n=1\" configs=2\n" + head +
                "event=winner region=decode site=saxpy key=\"n=1\" config=2 block=256 per_sm=4 "
                "param.iter=9 time_us=2.53 default_us=5.2 reason=fastest simulated=yes\n" +
                head +
                "event=confirm region=decode verdict=kept before_us=124 after_us=110 gain=0.113 "
                "bound=0.1 pairs=8 tries=1\n" +
                head +
                "event=summary region=decode passes=96 entries=120 tuning_s=0.5 stage=finished "
                "sites=2 tuned=1\n" +
                head + "event=summary launches_outside=17\n");
  REQUIRE(found.size() == 2);
  const ProcessReport& first = found[0];
  CHECK(first.simulated);
  CHECK(first.gpu == "NVIDIA H200");
  CHECK(first.num_sms == 132);
  CHECK(first.launches_outside == 17U);
  REQUIRE(first.regions.size() == 1);
  const auto& region = first.regions[0];
  CHECK(region.passes == 96);
  CHECK(region.entries == 120);
  CHECK(region.tuning_seconds == Approx(0.5));
  CHECK(region.stage == "finished");
  REQUIRE(region.confirms.size() == 1);
  CHECK(region.confirms[0].before_seconds == Approx(124e-6));
  CHECK(region.confirms[0].gains.empty());  // as an older log has it
  REQUIRE(region.sites.size() == 2);
  REQUIRE(region.sites[0].winner.has_value());
  CHECK(region.sites[0].winner->seconds == Approx(2.53e-6));
  CHECK(region.sites[0].configs.at(2) == "block=256 per_sm=4 iter=9");
  CHECK_FALSE(region.sites[1].winner.has_value());
  CHECK_FALSE(found[1].simulated);
  CHECK(found[1].rank == 1);
}

TEST_CASE("A report holds what a replay took", "[report]") {
  const auto found = processes(
      head +
      "event=replay region=decode visit=2 operations=5 replays=117 time_s=0.21 "
      "footprint_bytes=1073741824 dirty_bytes=50331648 device_bytes=50331648 host_bytes=0 "
      "save_us=120.5 restore_us=31 hash_us=400 timed_after=restore why_restored=\"It counts.\" "
      "simulated=yes\n" +
      head + "event=replay region=decode visit=3 operations=6 replays=130\n");
  CHECK(found.at(0).simulated);
  const auto& replays = found[0].regions.at(0).replays;
  REQUIRE(replays.size() == 2);
  CHECK(replays[0].visit == 2);
  CHECK(replays[0].operations == 5);
  CHECK(replays[0].replays == 117);
  CHECK(replays[0].seconds == Approx(0.21));
  CHECK(replays[0].footprint_bytes == 1U << 30U);
  CHECK(replays[0].dirty_bytes == 48U << 20U);
  CHECK(replays[0].device_bytes == 48U << 20U);
  CHECK(replays[0].host_bytes == 0);
  CHECK(replays[0].save_seconds == Approx(120.5e-6));
  CHECK(replays[0].restore_seconds == Approx(31e-6));
  CHECK(replays[0].hash_seconds == Approx(400e-6));
  CHECK(replays[0].timed_after == "restore");
  CHECK(replays[0].why_restored == "It counts.");
  CHECK(replays[1].visit == 3);
  CHECK(replays[1].timed_after.empty());
  CHECK(std::isnan(replays[1].seconds));
  CHECK(first_bad(head + "event=replay visit=1 replays=1\n") ==
        "rank-0.log:1: event=replay without a usable region");
  CHECK(first_bad(head + "event=replay region=r visit=one replays=1\n") ==
        "rank-0.log:1: event=replay without a usable visit");
  CHECK(first_bad(head + "event=replay region=r visit=1 replays=-1\n") ==
        "rank-0.log:1: event=replay without a usable replays");
}

TEST_CASE("A fallback that comes again is counted, and another text of it is another", "[report]") {
  const std::string line =
      head + "event=fallback reason=launch_failed region=r site=s text=\"Too many threads.\"\n";
  const std::string last =
      head + "event=fallback reason=launch_failed region=r site=s text=\"Too much memory.\"\n";
  const auto found = processes(line + line + last + head + "event=fault text=\"x.lua:3: no\"\n");
  REQUIRE(found.at(0).fallbacks.size() == 2);
  CHECK(found[0].fallbacks[0].count == 2);
  CHECK(found[0].fallbacks[0].text == "Too many threads.");
  CHECK(found[0].fallbacks[1].count == 1);
  CHECK(found[0].fallbacks[1].text == "Too much memory.");
  CHECK(found[0].faults.at(0) == "x.lua:3: no");
}

TEST_CASE(
    "a process that turns out to be another rank is that rank, whichever file is read first") {
  const std::string fault = head + "event=fault text=early\n";
  const std::string before =
      head + "event=start world_size=1\n" + fault + head + "event=rank becomes=1\n";
  std::string after = head + "event=start world_size=2\n" + head + "event=region region=decode\n";
  for (std::size_t at = 0; (at = after.find("rank=0", at)) != std::string::npos;)
    after[at + 5] = '1';
  const std::string other =
      "2026-11-20T20:33:53.120Z run=8f3a pid=4243 rank=0 level=info event=start\n";
  for (const std::string& text : {before + other + after, after + before + other}) {
    ReportBuilder builder;
    LineReader reader("rank-0.log", [&](const Record& record) { return builder.add(record); });
    reader.feed(text);
    reader.finish();
    CHECK(reader.bad_lines().empty());
    REQUIRE(builder.processes().size() == 2);
    const std::vector<ProcessReport>& processes = builder.processes();
    const ProcessReport& moved = processes[processes[0].pid == 4242 ? 0 : 1];
    CHECK(moved.rank == 1);
    CHECK(moved.world_size == 2);
    CHECK(moved.faults == std::vector<std::string>{"early"});
    CHECK(moved.regions.size() == 1);
    CHECK(processes[processes[0].pid == 4242 ? 1 : 0].rank == 0);
  }
}

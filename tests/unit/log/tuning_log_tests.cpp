#include "log/tuning_log.hpp"

#include <chrono>
#include <limits>
#include <regex>

#include "catch.hpp"
#include "log/events.hpp"
#include "log/log_reader.hpp"
#include "log/run_report.hpp"
#include "tests/file_text.hpp"
#include "tests/scratch_folder.hpp"

using contextune::FallbackReason;
using contextune::LogLevel;
using contextune::log::RankLog;
using contextune::log::TuningLog;

namespace {

struct Fixture {
  ScratchFolder scratch;
  RankLog log{RankLog::Settings{scratch.path("logs"), 0, "7f3a", LogLevel::Info}};
  TuningLog tuning{log, "decode", "cupti", true};

  Fixture() {
    contextune::SiteSpec spec;
    spec.name = "saxpy";
    spec.key = contextune::Key{{"n", std::int64_t{1048576}}};
    spec.configs = {contextune::Config{}, contextune::Config{{"block", std::int64_t{256}},
                                                             {"iter", std::string("two words")}}};
    tuning.add_site(0, spec, {{8, 2, 1}, {128, 1, 1}, 1024, 20, 1, "declared", {}});
  }

  std::vector<std::string> lines() const {
    log.flush();
    return lines_of(log.path());
  }

  // The last line, from the event on.
  std::string last() const {
    const std::string line = lines().back();
    return without_begin(line.substr(line.find("event=")));
  }

  // The line with "#" in place of when something began.
  static std::string without_begin(const std::string& line) {
    static const std::regex begin(R"(began=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)");
    return std::regex_replace(line, begin, "began=#");
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "A site's line says what it is", "[tuning_log]") {
  CHECK(last() ==
        "event=site region=decode site=saxpy key=\"n=1048576\" configs=2 launches=1 grid=8x2 "
        "block=128 shared_bytes=1024 registers=20 provider=declared");
}

TEST_CASE_METHOD(Fixture, "A site's line says how many passes its table takes", "[tuning_log]") {
  contextune::SiteSpec spec;
  spec.name = "gemm";
  spec.configs.resize(3);
  contextune::log::SiteFacts facts;
  facts.table_passes = 24;
  tuning.add_site(1, spec, facts);
  CHECK(last().find(" provider=none table_passes=24") != std::string::npos);
  contextune::log::ReportBuilder builder;
  for (const std::string& line : lines()) {
    const auto record = contextune::log::parse_record(line);
    CHECK(builder.add(std::get<contextune::log::Record>(record)).empty());
  }
  const auto& sites = builder.processes().at(0).regions.at(0).sites;
  CHECK(sites.at(0).table_passes == 0);
  CHECK(sites.at(1).table_passes == 24);
}

TEST_CASE_METHOD(Fixture, "A trial's line holds config, parameters and time", "[tuning_log]") {
  contextune::TrialEvent trial;
  trial.pass = 4;
  trial.config = 1;
  trial.iteration = 1;
  trial.launches = 3;
  trial.seconds = 2.53e-6;
  trial.sm_clock_hz = 1.98e9;
  tuning.trial(trial);
  CHECK(last() ==
        "event=trial region=decode pass=4 site=saxpy key=\"n=1048576\" config=1 block=256 "
        "param.iter=\"two words\" iter=1 launches=3 time_us=2.53 timer=cupti sm_mhz=1980 "
        "simulated=yes");

  trial.iteration = -2;
  trial.seconds = std::numeric_limits<double>::quiet_NaN();
  trial.status = contextune::TrialStatus::LaunchFailed;
  trial.sm_clock_hz = 0;
  tuning.set_timer("events");
  tuning.trial(trial);
  CHECK(last() ==
        "event=trial region=decode pass=4 site=saxpy key=\"n=1048576\" config=1 block=256 "
        "param.iter=\"two words\" warmup=2 launches=3 timer=events status=failed simulated=yes");

  trial.status = contextune::TrialStatus::Measured;
  trial.throttled = true;
  tuning.trial(trial);
  CHECK(last().ends_with("status=throttled simulated=yes"));
}

TEST_CASE_METHOD(Fixture, "A trial's line says when its pass began, and what the region took",
                 "[tuning_log]") {
  using namespace std::chrono;
  using contextune::log::SiteRun;
  using contextune::log::TableRow;
  const auto steady = [] {
    return duration<double>(steady_clock::now().time_since_epoch()).count();
  };
  contextune::TrialEvent trial;
  trial.pass = 4;
  trial.config = 1;
  trial.launches = 1;
  trial.seconds = 2.5e-6;
  const auto now = system_clock::now();
  // Others of that number that all ranks made are other passes.
  tuning.ran(TableRow{4, true, steady()}, {});
  tuning.ran(TableRow{4, false, steady() - 3600}, std::vector{SiteRun{0, 1}});
  tuning.ran(TableRow{5, false, steady()}, std::vector{SiteRun{0, 1}});
  tuning.took(TableRow{4, false}, 15.6e-6);
  tuning.trial(trial);
  CHECK(last() ==
        "event=trial region=decode pass=4 site=saxpy key=\"n=1048576\" config=1 block=256 "
        "param.iter=\"two words\" iter=0 launches=1 time_us=2.5 region_us=15.6 timer=cupti began=# "
        "simulated=yes");
  contextune::log::ReportBuilder builder;
  contextune::log::LogTail tail(
      log.path(), [&](const contextune::log::Record& record) { return builder.add(record); });
  REQUIRE(tail.finish() == 0);
  const auto& site = builder.processes().at(0).regions.at(0).sites.at(0);
  CHECK(site.configs.at(1) == "block=256 iter=\"two words\"");
  const auto& read = site.trials.at(0);
  CHECK(read.has_begin);
  CHECK(read.region_seconds == Approx(15.6e-6));
  const double expected = duration<double>(now.time_since_epoch()).count() - 3600;
  CHECK(read.at == Approx(expected).margin(1).epsilon(0));
  trial.pass = 6;  // of which nothing is known
  tuning.trial(trial);
  CHECK(last().ends_with("time_us=2.5 timer=cupti simulated=yes"));
}

TEST_CASE_METHOD(Fixture, "The stages of a site's own tuning name it", "[tuning_log]") {
  tuning.stage(contextune::Stage::Table, 0);
  CHECK(last() == "event=stage region=decode stage=table generation=0 elapsed_us=0 began=#");
  tuning.set_site_alone();
  tuning.stage(contextune::Stage::Refine, 0);
  CHECK(last().starts_with("event=stage region=decode site=saxpy stage=refine generation=0 "));
}

TEST_CASE_METHOD(Fixture,
                 "Passes in a row with one config are one line, written when they are over",
                 "[tuning_log]") {
  using contextune::log::SiteRun;
  using contextune::log::TableRow;
  const auto passes = [&] { return lines().size(); };
  const std::size_t before = passes();
  for (std::uint64_t pass = 4; pass < 7; ++pass)
    tuning.ran(TableRow{pass, false}, std::vector{SiteRun{0, 1}});
  CHECK(passes() == before);
  tuning.ran(TableRow{7, false}, std::vector{SiteRun{0, {}}});
  CHECK(last() ==
        "event=passes region=decode pass=4 last_pass=6 site=saxpy key=\"n=1048576\" config=1 "
        "block=256 param.iter=\"two words\" simulated=yes");
  // In pass 8 it was not launched; then other ranks made them, too.
  tuning.ran(TableRow{9, false}, std::vector{SiteRun{0, {}}});
  CHECK(last() ==
        "event=passes region=decode pass=7 last_pass=7 site=saxpy key=\"n=1048576\" status=mixed "
        "simulated=yes");
  tuning.ran(TableRow{10, true}, std::vector{SiteRun{0, 0}});
  CHECK(last().find("pass=9 last_pass=9") != std::string::npos);
  tuning.stage(contextune::Stage::Refine, 0);
  const auto all = lines();
  CHECK(all.back().find("event=stage region=decode stage=refine") != std::string::npos);
  CHECK(all[all.size() - 2].ends_with(
      "event=passes region=decode pass=10 last_pass=10 site=saxpy key=\"n=1048576\" config=0 "
      "agreed=yes simulated=yes"));
  CHECK(all.size() == before + 5);
  tuning.end_runs();
  CHECK(passes() == all.size());
}

TEST_CASE_METHOD(Fixture, "What one line of passes tells of is bounded", "[tuning_log]") {
  using contextune::log::most_passes_of_a_line;
  for (std::uint64_t pass = 0; pass <= most_passes_of_a_line; ++pass)
    tuning.ran({pass, false}, std::vector{contextune::log::SiteRun{0, 1}});
  tuning.end_runs();
  const auto all = lines();
  CHECK(all[all.size() - 2].find(" pass=0 last_pass=9999 ") != std::string::npos);
  CHECK(all.back().find(" pass=10000 last_pass=10000 ") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "Winner, confirmation and fallback keep the order of their fields",
                 "[tuning_log]") {
  tuning.winner({0, 1, 2.53e-6, 1.5, contextune::WinnerReason::Fastest});
  CHECK(last() ==
        "event=winner region=decode site=saxpy key=\"n=1048576\" config=1 block=256 "
        "param.iter=\"two words\" time_us=2.53 default_us=1500000 reason=fastest simulated=yes");
  tuning.confirm({contextune::ConfirmVerdict::Kept, 124e-6, 110e-6, 0.1125, 0.101, 8, 1});
  CHECK(last() ==
        "event=confirm region=decode verdict=kept before_us=124 after_us=110 gain=0.1125 "
        "bound=0.101 pairs=8 tries=1 simulated=yes");
  tuning.left_out({0, 1, false, 110e-6, 112e-6, -0.0182, -0.03, 8});
  CHECK(last() ==
        "event=confirm region=decode left_out=saxpy key=\"n=1048576\" config=1 block=256 "
        "param.iter=\"two words\" verdict=dropped before_us=110 after_us=112 gain=-0.0182 "
        "bound=-0.03 pairs=8 simulated=yes");
  tuning.set_site_alone();
  tuning.confirm({contextune::ConfirmVerdict::Kept, 124e-6, 110e-6, 0.1125, 0.101, 8, 1});
  CHECK(last() ==
        "event=confirm region=decode site=saxpy verdict=kept before_us=124 after_us=110 "
        "gain=0.1125 bound=0.101 pairs=8 tries=1 simulated=yes");
  tuning.fallback(FallbackReason::TooManySites, contextune::no_site, "Over 256 sites.");
  CHECK(last() == "event=fallback reason=too_many_sites region=decode text=\"Over 256 sites.\"");
  tuning.fallback(FallbackReason::LaunchFailed, 0, "");
  CHECK(last() ==
        "event=fallback reason=launch_failed region=decode site=saxpy text=\"A config could not be "
        "launched; the default ran in its place.\"");
}

TEST_CASE_METHOD(Fixture, "A replay's line says what it repeated, and what that took",
                 "[tuning_log]") {
  contextune::log::ReplayEvent replay;
  replay.region = "decode";
  replay.visit = 2;
  replay.operations = 5;
  replay.replays = 117;
  replay.seconds = 0.21;
  replay.footprint_bytes = 1U << 30U;
  replay.dirty_bytes = 48U << 20U;
  replay.device_bytes = 40U << 20U;
  replay.host_bytes = 8U << 20U;
  replay.save_seconds = 120.5e-6;
  replay.restore_seconds = 31e-6;
  replay.hash_seconds = 400e-6;
  replay.simulated = true;
  write_replay(log, replay);
  CHECK(last() ==
        "event=replay region=decode visit=2 operations=5 replays=117 time_s=0.21 "
        "footprint_bytes=1073741824 dirty_bytes=50331648 device_bytes=41943040 "
        "host_bytes=8388608 save_us=120.5 restore_us=31 hash_us=400 simulated=yes");
  replay.timed_after = "restore";
  replay.why_restored = "its ranks repeat it together";
  write_replay(log, replay);
  CHECK(
      last().ends_with("hash_us=400 timed_after=restore "
                       "why_restored=\"its ranks repeat it together\" simulated=yes"));
}

TEST_CASE_METHOD(Fixture, "What a site has won is written when it has its name", "[tuning_log]") {
  const std::string before = last();
  tuning.winner({7, 0, 1e-6, 1e-6, contextune::WinnerReason::Only});
  CHECK(last() == before);
  contextune::SiteSpec spec;
  spec.name = "late";
  spec.configs.emplace_back();
  tuning.add_site(7, spec, {});
  CHECK(last().starts_with("event=winner region=decode site=late key=\"\" config=0 time_us=1"));
}

TEST_CASE_METHOD(Fixture, "A line of very many pairs tells as many as a value may hold",
                 "[tuning_log]") {
  contextune::ConfirmEvent event{contextune::ConfirmVerdict::Kept, 2e-6, 1e-6, 0.5, 0.25, 1000, 1};
  event.gains.assign(1000, -0.0001234);
  tuning.confirm(event);
  log.flush();
  contextune::log::ReportBuilder builder;
  contextune::log::LogTail tail(
      log.path(), [&](const contextune::log::Record& record) { return builder.add(record); });
  CHECK(tail.finish() == 0);
  CHECK(tail.lines().num_bad() == 0);
  const auto& gains = builder.processes().at(0).regions.at(0).confirms.at(0).gains;
  CHECK(gains.size() > 300);
  CHECK(gains.back() == -0.0001234);
}

TEST_CASE_METHOD(Fixture, "Everything that is written can be read back", "[tuning_log]") {
  using namespace contextune::log;
  tuning.stage(contextune::Stage::Table, 0);
  tuning.winner({0, 1, 2.53e-6, 5e-6, contextune::WinnerReason::Fastest});
  tuning.confirm(
      {contextune::ConfirmVerdict::Kept, 2e-6, 1e-6, 0.5, 0.25, 3, 1, {0.25, -0.0312345, 0.75}});
  tuning.fallback(FallbackReason::Capture, 0, "");
  write_start(log, {"./engine", "NVIDIA H200", "9.0", 132, "13.0", true, contextune::Mode::Live,
                    "nvtx:decode", "cupti", 1, "./engine --model 'two words'", "n-repeat=2"});
  write_region(log, "decode", 77);
  write_fault(log, "space.lua:3: kernel saxpy: a \"quote\"");
  KernelEvent kernel;
  kernel.region = "decode";
  kernel.kernel = "gemm<64, 64>";
  kernel.seconds = 0.25;
  write_kernel(log, kernel);
  ReplayEvent replay;
  replay.region = "decode";
  replay.visit = 1;
  replay.replays = 117;
  replay.dirty_bytes = std::size_t{5} << 32U;
  replay.restore_seconds = 3e-5;
  write_replay(log, replay);
  write_summary(log, {"decode", 96, 120, 0.5, "finished", 1, 1, true});
  write_exit(log, 5, true);

  ReportBuilder builder;
  LogTail tail(log.path(), [&](const Record& record) { return builder.add(record); });
  CHECK(tail.finish() == 0);
  CHECK(tail.lines().num_bad() == 0);
  CHECK(tail.lines().num_records() == log.lines_written());
  REQUIRE(builder.processes().size() == 1);
  const ProcessReport& process = builder.processes()[0];
  CHECK(process.program == "./engine");
  CHECK(process.command == "./engine --model 'two words'");
  CHECK(process.options == "n-repeat=2");
  CHECK(process.faults.at(0) == "space.lua:3: kernel saxpy: a \"quote\"");
  REQUIRE(process.regions.size() == 1);
  CHECK(process.regions[0].confirms.at(0).gains == std::vector{0.25, -0.03123, 0.75});
  CHECK(process.regions[0].stages.at(0).stage == "table");
  CHECK(process.regions[0].stages.at(0).seconds == 0);
  CHECK_FALSE(process.regions[0].stages.at(0).time.empty());
  CHECK(process.regions[0].kernels.at(0).seconds == Approx(0.25));
  CHECK(process.regions[0].replays.at(0).replays == 117);
  CHECK(process.regions[0].replays.at(0).dirty_bytes == std::uint64_t{5} << 32U);
  CHECK(process.regions[0].replays.at(0).restore_seconds == Approx(3e-5));
  CHECK(process.regions[0].sites.at(0).configs.at(1) == "block=256 iter=\"two words\"");
}

TEST_CASE_METHOD(Fixture,
                 "What ranks decided together is written with its hash and how long it took",
                 "[sync]") {
  contextune::SyncEvent sync;
  sync.group = 0x5f00ab;
  sync.group_rank = 2;
  sync.question = 7;
  sync.hash = 0xfeedfacecafebeef;
  sync.wait_seconds = 1.5e-3;
  sync.others_seconds = 1e-3;
  sync.verdict = contextune::Verdict::Committed;
  contextune::log::write_sync(log, "decode", sync);
  CHECK(last() ==
        "event=sync region=decode group=00000000005f00ab group_rank=2 question=7 "
        "hash=feedfacecafebeef wait_us=1500 others_us=1000 verdict=committed began=#");
  sync.verdict = contextune::Verdict::Aborted;
  sync.why = "rank 1 did not come";
  contextune::log::write_sync(log, "decode", sync);
  CHECK(last() ==
        "event=sync region=decode group=00000000005f00ab group_rank=2 question=7 wait_us=1500 "
        "verdict=aborted began=# text=\"rank 1 did not come\"");
}

TEST_CASE_METHOD(Fixture, "What ranks decided together is read back", "[sync]") {
  contextune::SyncEvent sync;
  sync.group = 1;
  sync.question = ~0ULL;
  sync.wait_seconds = 0.25;
  sync.verdict = contextune::Verdict::Unknown;
  sync.why = "rank 0 is lost";
  contextune::log::write_sync(log, "decode", sync);
  log.flush();
  contextune::log::ReportBuilder report;
  contextune::log::LogTail tail(
      log.path(), [&](const contextune::log::Record& record) { return report.add(record); });
  REQUIRE(tail.finish() == 0);
  CHECK(tail.lines().num_bad() == 0);
  REQUIRE(report.processes().size() == 1);
  REQUIRE(report.processes()[0].syncs.size() == 1);
  const contextune::log::SyncReport& read = report.processes()[0].syncs[0];
  CHECK(read.question == ~0ULL);
  CHECK(read.wait_seconds == Approx(0.25));
  CHECK(read.verdict == "unknown");
  CHECK(read.region == "decode");
  CHECK(read.text == "rank 0 is lost");
  CHECK(read.hash.empty());
}

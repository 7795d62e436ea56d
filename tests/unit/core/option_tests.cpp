#include <set>
#include <string>
#include <utility>

#include <contextune/error.hpp>

#include "catch.hpp"
#include "core/value/fallback_reason.hpp"
#include "core/value/force.hpp"
#include "core/value/option_table.hpp"
#include "core/value/tuning_options.hpp"

using namespace contextune;

TEST_CASE("Every option reads back its own default", "[options]") {
  for (const OptionInfo& info : option_table()) {
    INFO(info.name);
    Options options;
    CHECK(parse_option(options, info.name, info.default_text).empty());
    CHECK(option_text(options, info.name) == info.default_text);
    CHECK_FALSE(info.meaning.empty());
    CHECK(info.meaning.back() != '.');
    CHECK(info.flag.starts_with("--"));
    CHECK(info.variable.starts_with("CONTEXTUNE_"));
  }
}

TEST_CASE("Names, flags and variables of options are spelled from one word", "[options]") {
  std::set<std::string> flags;
  bool found = false;
  for (const OptionInfo& info : option_table()) {
    CHECK(flags.insert(info.flag).second);
    if (info.name != "n_warmup") continue;
    found = true;
    CHECK(info.flag == "--n-warmup");
    CHECK(info.variable == "CONTEXTUNE_N_WARMUP");
    CHECK(info.default_text == "3");
  }
  CHECK(found);
  Options options;
  for (const char* name : {"n_repeat", "n-repeat", "--n-repeat", "CONTEXTUNE_N_REPEAT"}) {
    options.n_repeat = 5;
    CHECK(parse_option(options, name, "9").empty());
    CHECK(options.n_repeat == 9);
  }
}

TEST_CASE("--auto is the field auto_knobs", "[options]") {
  bool found = false;
  for (const OptionInfo& info : option_table()) {
    CHECK(info.flag != "--auto-knobs");
    found = found || (info.flag == "--auto" && info.variable == "CONTEXTUNE_AUTO");
    if (info.flag == "--auto") CHECK(info.is_switch);
  }
  CHECK(found);
}

TEST_CASE("Every word that is suggested for an option is a value of it", "[options]") {
  int enumerations = 0;
  for (const OptionInfo& info : option_table()) {
    enumerations += info.words.size() > 1 ? 1 : 0;
    for (const std::string_view word : info.words) {
      INFO(info.name << " " << word);
      Options options;
      const std::string follows = info.name == "tolerance" ? "1e-5" : "";
      CHECK(parse_option(options, info.name, std::string(word) + follows).empty());
    }
  }
  CHECK(enumerations > 12);
}

TEST_CASE("--auto lists what is tried without a declaration", "[options]") {
  const std::pair<const char*, AutoKnobs> written[] = {
      {"chained", {true, false, false, false}},
      {"gathered", {false, true, false, false}},
      {"collectives", {false, false, true, false}},
      {"attributes", {false, false, false, true}},
      {"Attributes,chained", {true, false, false, true}},
      {"chained,gathered,collectives", AutoKnobs{}},
      {"off", {false, false, false, false}},
      {"none", {false, false, false, false}},
      {"0", {false, false, false, false}},
      {"1", {true, true, true, true}},
      {"on", {true, true, true, true}},
      {"true", {true, true, true, true}}};
  for (const auto& [text, knobs] : written) {
    INFO(text);
    Options options;
    CHECK(parse_option(options, "auto", text).empty());
    CHECK(options.auto_knobs == knobs);
    Options again;
    CHECK(parse_option(again, "CONTEXTUNE_AUTO", option_text(options, "auto")).empty());
    CHECK(again.auto_knobs == knobs);
  }
  for (const char* text :
       {"", ",", "chained,", ",chained", "chained gathered", "off,chained", "chain", "2"}) {
    INFO(text);
    Options options;
    CHECK(parse_option(options, "auto", text) ==
          "option auto is '" + std::string(text) +
              "'; it must be on, off, or some of chained, gathered, collectives and attributes, "
              "separated by commas");
    CHECK(options.auto_knobs == AutoKnobs{});
  }
}

TEST_CASE("Each type of option reads what it should", "[options]") {
  Options options;
  CHECK(parse_option(options, "schedule", "Racing").empty());
  CHECK(options.schedule == ScheduleKind::Racing);
  CHECK(parse_option(options, "margin", "2.5%").empty());
  CHECK(options.margin == Approx(0.025));
  CHECK(parse_option(options, "max_time", "250ms").empty());
  CHECK(options.max_time == Approx(0.25));
  CHECK(parse_option(options, "max_time", "3s").empty());
  CHECK(options.max_time == 3);
  for (const char* yes : {"1", "on", "TRUE", "yes"}) {
    options.discover = false;
    CHECK(parse_option(options, "discover", yes).empty());
    CHECK(options.discover);
  }
  CHECK(parse_option(options, "refine", "0").empty());
  CHECK_FALSE(options.refine);
  CHECK(parse_option(options, "only", "gemm.*<64, 64>").empty());
  CHECK(options.only == "gemm.*<64, 64>");
}

TEST_CASE("A number of bytes may be written with a unit", "[options]") {
  Options options;
  const double mebibyte = 1024.0 * 1024.0;
  const std::pair<const char*, double> written[] = {{"16G", 16 * 1024 * mebibyte},
                                                    {"512M", 512 * mebibyte},
                                                    {"512MiB", 512 * mebibyte},
                                                    {"512mb", 512 * mebibyte},
                                                    {"1.5g", 1536 * mebibyte},
                                                    {"64k", 65536},
                                                    {"2T", 2 * mebibyte * mebibyte},
                                                    {"4096", 4096},
                                                    {"4096B", 4096},
                                                    {"0", 0}};
  for (const auto& [text, bytes] : written) {
    INFO(text);
    options.replay_memory = 1;
    CHECK(parse_option(options, "replay_memory", text).empty());
    CHECK(options.replay_memory == bytes);
  }
  CHECK(parse_option(options, "comm_memory", "1G").empty());
  CHECK(options.comm_memory == 1024.0 * mebibyte);
  CHECK(parse_option(options, "CONTEXTUNE_REPLAY_MEMORY", "16G").empty());
  CHECK(option_text(options, "replay_memory") == "17179869184");
  for (const char* text :
       {"", "G", "16X", "16GG", "16 G", "16iB", "5%", "2s", "-1", "inf", "nan", "1e30", "2000T"}) {
    INFO(text);
    CHECK(parse_option(options, "replay_memory", text) ==
          "option replay_memory is '" + std::string(text) +
              "'; it must be a number of bytes, such as 16G or 512M");
  }
  CHECK(option_text(options, "replay_memory") == "17179869184");
}

TEST_CASE("A bad option names itself, the value and what is allowed, and changes nothing",
          "[options]") {
  Options options;
  CHECK(parse_option(options, "n_repeat", "0") ==
        "option n_repeat is '0'; it must be a whole number, 1 to 100000");
  CHECK(parse_option(options, "n_repeat", "5x").find("'5x'") != std::string::npos);
  CHECK(parse_option(options, "schedule", "fast") ==
        "option schedule is 'fast'; it must be table, interleaved or racing");
  CHECK(parse_option(options, "margin", "150%").find("0 to 1") != std::string::npos);
  CHECK_FALSE(parse_option(options, "margin", "nan").empty());
  CHECK_FALSE(parse_option(options, "margin", "").empty());
  CHECK_FALSE(parse_option(options, "max_time", "5%").empty());
  CHECK_FALSE(parse_option(options, "refine", "maybe").empty());
  CHECK(parse_option(options, "no_such", "1").find("no option 'no_such'") != std::string::npos);
  CHECK_THROWS_AS(option_text(options, "no_such"), Error);
  CHECK(options.n_repeat == 5);
  CHECK(options.schedule == ScheduleKind::Table);
  CHECK(options.margin == 0.01);
}

TEST_CASE("The limit on slowdown holds in live mode only", "[options]") {
  Options options;
  options.max_slowdown = 0.2;
  CHECK(tuning_options(options).max_slowdown == 0.2);
}

TEST_CASE("Pinned configs are read with names that hold commas and equals signs", "[force]") {
  const std::vector<ForcedConfig> forced =
      parse_force("saxpy=block=256 per_sm=4, gemm<64, 64>=2,op<(a)=1>=3");
  REQUIRE(forced.size() == 3);
  CHECK(forced[0].site == "saxpy");
  CHECK(forced[0].config == "block=256 per_sm=4");
  CHECK(forced[1].site == "gemm<64, 64>");
  CHECK(forced[1].config == "2");
  CHECK(forced[2].site == "op<(a)=1>");
  CHECK(parse_force("").empty());
  CHECK_THROWS_WITH(parse_force("saxpy"), Catch::Contains("'saxpy'"));
  CHECK_THROWS_AS(parse_force("=3"), Error);
  CHECK_THROWS_AS(parse_force("saxpy="), Error);
}

TEST_CASE("A pin means the configs of a number, of all values, or of some that several may have",
          "[force]") {
  using Numbers = std::vector<std::uint32_t>;
  const std::vector<Config> configs{{},
                                    {{"block", 128}, {"per_sm", 2}},
                                    {{"block", 256}, {"per_sm", 2}},
                                    {{"block", 256}, {"per_sm", 4}}};
  CHECK(find_configs(configs, "3") == Numbers{3});
  CHECK(find_configs(configs, "4").empty());
  CHECK(find_configs(configs, "per_sm=4 block=256") == Numbers{3});
  CHECK(find_configs(configs, "block=256") == Numbers{2, 3});
  CHECK(find_configs(configs, "block=512").empty());
  CHECK(find_configs(configs, "default") == Numbers{0});
  CHECK(find_configs(configs, "nonsense").empty());
  CHECK(find_configs(configs, "-1").empty());
  for (const char* text : {"7", " default", "block=9"}) CHECK(is_config_text(text));
  for (const char* text : {"", "nonsense", "-1", "=3"}) CHECK_FALSE(is_config_text(text));
}

TEST_CASE("Every fallback has its own word, a sentence, a cause and a remedy", "[fallback]") {
  std::set<std::string_view> words;
  for (const FallbackInfo& info : fallback_table()) {
    INFO(info.word);
    CHECK(words.insert(info.word).second);
    CHECK(info.word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    for (const std::string_view text : {info.sentence, info.cause, info.remedy}) {
      REQUIRE(text.size() > 5);
      CHECK(text.back() == '.');
    }
    CHECK(find_fallback(info.word) == &info);
    CHECK(&fallback_info(info.reason) == &info);
  }
  CHECK(find_fallback("no such reason") == nullptr);
}

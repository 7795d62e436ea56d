#include "cli/words/documentation.hpp"

#include <contextune/error.hpp>
#include <contextune/version.hpp>
#include <string_view>

#include "cli/words/command_line.hpp"
#include "core/value/fallback_reason.hpp"
#include "core/value/option_table.hpp"
#include "core/value/take_until.hpp"
#include "gpu/image/entry_wait.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t help_width = 96;

// `text` in lines of help_width, each behind `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = take_until(text, ' ');
    if (column == 0 || column + 1 + word.size() > help_width) {
      if (column > 0) result += '\n';
      result.append(indent, ' ').append(word);
      column = indent + word.size();
    } else {
      result.append(" ").append(word);
      column += 1 + word.size();
    }
  }
  return result + "\n";
}

std::string shown_default(const OptionInfo& option) {
  return option.default_text.empty() ? "none" : option.default_text;
}

std::string option_help(const OptionInfo& option) {
  std::string text = "  " + option.flag;
  if (option.is_switch) {
    if (option.name == "auto") text += "[=VALUE]";
    if (option.default_text != "off") text += ", --no-" + option.flag.substr(2);
  } else {
    text.append(" ").append(option.placeholder);
  }
  text += "   (" + option.variable + ", default " + shown_default(option) + ")\n";
  std::string meaning(option.meaning);
  const bool numeric = option.allowed.starts_with("a ");
  if (numeric) meaning += " (" + option.allowed + ")";
  return text + wrapped(meaning, 6);
}

std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string code(std::string_view text) {
  return text.empty() ? std::string() : "`" + cell(text) + "`";
}

}  // namespace

std::string main_help() {
  return R"(contextune tunes the CUDA kernels of a program while the program runs, without changing it.

  contextune run --region nvtx:decode -- ./engine --model x
      tunes what the program launches inside its NVTX range "decode"; at the end it says what that won
  contextune run --discover -- ./engine --model x
      tunes nothing: lists what repeats and the kernels by time, and writes a space file to start from
  contextune run --space contextune.lua --region nvtx:decode -- ./engine --model x
      tunes the knobs that the space file declares
  contextune logs
      what every rank did, rebuilt from ./.autotune_logs
  contextune report
      the same as one page for a browser, with charts
  contextune store list
      which winners are kept for the next run; `show`, `diff`, `merge` and more
  contextune doctor -- ./engine
      what will work here with that program, what will not, and why

Commands
  run      start a program with contextune in it
  logs     read the rank logs
  report   write them as one page for a browser
  compare  two runs or two stores: what is the same, faster or slower
  store    look at stored winners, compare, join and export them
  doctor   look at this machine
  build    build one kernel of a source, as the tuned program has it done
  kernels  the kernels in a program's file, and which could wait at their entry
  options  the table of all options (--markdown)
  reasons  why something is not tuned, and what to do: of the REASONs named, or of all
  completion
           what makes bash, zsh or fish complete the words of this command
  manual   the manual pages, to be read or to be installed

`contextune COMMAND --help` tells more.
)";
}

std::string build_help() {
  return R"(contextune build SOURCE KERNEL CAPABILITY [-- NVRTC OPTIONS]

  contextune build gemm.cu 'gemm<64, 64>' 90 -- -DSTAGES=3

Builds one kernel with NVRTC for compute capability 9.0 and writes its symbol and its image to
standard output, or what the compiler says. A program that is tuned has its sources built like this,
in a process of its own; by hand it shows what is wrong with a source.

Exit status: 0; 1 if it could not be built; 2 if the command was not understood.
)";
}

std::string kernels_help() {
  std::string text = R"(contextune kernels [--all] [--json] FILE...

  contextune kernels ./engine
  contextune kernels --all libkernels.so | grep no_room
  contextune kernels --json kernels.cubin | python3 -m json.tool

Lists the kernels of programs, libraries, object files, fatbins and cubins: architecture, registers of a
thread, and whether a kernel can be given a wait at its entry: yes and how, or why not. Such a wait (PTX:
griddepcontrol.wait) holds a kernel back until the one before it has ended. `contextune run` puts it into
kernels while they are loaded (--splice). Needs no GPU and changes no file.

  in_place  the wait replaces the load of the stack pointer, which the kernel does not use
  moved     the wait is the second instruction, and those behind it move into the padding
  detour    the kernel first goes to the padding behind its code, waits there and comes back

Only machine code of sm_90 is known that well: other architectures are counted. The first 40 kernels of
sm_90 in a file are listed, and all are counted.

  --all   lists every kernel, of every architecture
  --json  for programs: all kernels; registers are null where the image does not say

Why not:

)";
  for (const auto& one : gpu::no_entry_wait_table()) {
    text += "  " + std::string(one.word) + std::string(14 - one.word.size(), ' ') +
            std::string(one.sentence) + "\n";
  }
  return text + R"(
Exit status: 0; 1 if a file could not be read or has no code for a GPU; 2 if the command was not
understood.
)";
}

std::string run_help() {
  std::string text = R"(contextune run [options] -- PROGRAM ARGUMENTS

  contextune run --region nvtx:decode -- ./engine --model x
  contextune run --region profiler --auto --replay-memory 16G -- python3 train.py
  contextune run --region nvtx:decode --mode live -- ./engine --model x
  contextune run --discover --space-out engine.lua -- ./engine --model x
  contextune run --space engine.lua --report tuned.txt -- ./engine --model x > output.txt

  contextune run --prove 10 -- ./engine --model x

  contextune run -n 4 --region nvtx:step -- ./train --steps 100

The program runs as it would without contextune: same output, same results, same exit status, or
killed by the same signal. Its standard input and output are its own. The summary and all problems
go to standard error when it has ended, with progress before if that is a terminal; --report FILE
moves them, --quiet leaves them out, and `contextune logs` tells them again. Signals sent to
contextune are passed on to the program. LD_PRELOAD and NVTX_INJECTION64_PATH of the user stay in
force.

A marked region is recorded on one visit and repeated at its end until it is tuned, with the memory
that it writes put back in between; the program waits meanwhile, and goes on with what its own visit
computed. A region that cannot be repeated exactly is tuned live, over many visits: the summary says
why, and `contextune reasons` what to do. --mode live repeats nothing.

--prove N shows what tuning is worth. The program runs once as it is, with its output shown, then tuned
until its search is settled (5 runs at most). Then it runs N times as it is and N times tuned, in turns. The
outputs are compared in every byte, and if these differ without their numbers, as lines with times may; then
the ends and the wall times, by pairs. A program that times itself is compared by its own clock as well:
--clock 'Total time: ([0-9.]+)' reads the first group from the last line of each output that has one. The text
that it matches is left out of the comparison of outputs, so that the rest can be the same in every byte. More
is left out with alternatives, as in 'Total time: ([0-9.]+)|Bandwidth.*'. Each run reads the standard input anew
if that is a file, else nothing. The status is that of the first run, or 1 where tuned runs did something else.

-n N starts the program N times, as the ranks 0 to N-1 of one job on this host, which find one
another by themselves; RANK, WORLD_SIZE and LOCAL_RANK are set as well, unless one of them is. Rank 0
reads the standard input, the others have none; their output is not touched. Signals reach all of
them. Under torchrun, mpirun or srun leave -n out, and say --distributed on: they start the ranks,
and each finds the others. Without --distributed on, only ranks that make an NCCL communicator do.
If a rank fails the others are left alone, as they may end by themselves and say why: the status is
that of the first that failed, after all have ended. --kill-on-failure ends them, as torchrun and
mpirun do.

Exit status: that of the program; 127 if it was not found, 126 if it cannot be run, 125 if
contextune itself could not start. 125 is also the status, and the program is not started, where it is known
before that the run can come to nothing: a space file, region, option or variable cannot be used, the log
folder cannot be written, --only and --exclude leave nothing, or --force names no config of a kernel which a
space file declares.

A flag goes before its variable, and a variable before the default. Switches take no value, or =off.

Options
)";
  for (const OptionInfo& option : option_table()) text += option_help(option);
  text += "  -n N, --num-ranks N\n" +
          wrapped("Start the program N times, as ranks of one job on this host (1 to " +
                      std::to_string(most_local_ranks) + "); default: once",
                  6);
  text += "  --kill-on-failure\n" +
          wrapped(
              "With -n: once a rank has failed, send SIGTERM to the others, and SIGKILL to those "
              "that are still there 10 seconds later",
              6);
  text += "  --prove N\n" +
          wrapped("Run the program N times (2 to " + std::to_string(most_proving_rounds) +
                      ") as it is and N times tuned, in turns, once its search is settled; compare "
                      "outputs, ends and wall times",
                  6);
  text += "  --clock REGEX\n" +
          wrapped(
              "With --prove: compare what the program measures itself, the number in the "
              "expression's first group, in the last line of its output that has one. The "
              "text that it matches is left out where outputs are compared",
              6);
  text += "  --space-out FILE\n" +
          wrapped(
              "Where --discover writes its space file; a file that is there already is never "
              "overwritten; default contextune.lua",
              6);
  text += "  --progress WHEN\n" +
          wrapped(
              "auto: news of the search on a terminal, and a line that is rewritten with what is "
              "left where the program's output goes elsewhere; always: also where standard error "
              "is no terminal, in lines of their own, one a second at most; never",
              6);
  text += "  --color WHEN\n" +
          wrapped(
              "Colours of the summary: auto (on a terminal; NO_COLOR and CLICOLOR_FORCE count), "
              "always or never",
              6);
  return text;
}

std::string logs_help() {
  return R"(contextune logs [FOLDER] [--run ID] [--rank R] [--passes] [--perfetto FILE] [--csv FILE]
                [--json | --nccl-csv FILE]

  contextune logs                      the last run of every rank, from $CONTEXTUNE_LOG_DIR or ./.autotune_logs
  contextune logs /jobs/17 --run 7f3a21
  contextune logs --passes
  contextune logs --run all --json | python3 -m json.tool
  contextune logs --perfetto trace.json --csv trials.csv
  contextune logs --nccl-csv nccl_tuner.conf

Rebuilds, for each rank, how every region was tuned: replayed, or live and why. Lists the configs of each
site by time, the fastest first: median of its samples, spread from the fastest to the slowest, what became
of it. Says what was not tuned and why, and with --passes which config every site ran in every pass. Ranks
that tuned together are told of once: the winners with the times of each rank, the slowest rank, on how many
batches all agree, how long each waited, and all in which they differ. A run of several ranks is shown
whole, or not at all once one of them has run again. A line that cannot be read is listed as file:line
with the reason.

  FOLDER     a folder of rank logs, or one rank log
  --run ID   only that run; `all`: every run that the logs hold
  --passes   the configs that every site was launched with in every pass of its region's table: `-`
             where it was not launched, `?` where the log does not say, `mixed` where it was not one
  --rank R   the sites of that rank; by default of each, or of the first of those that tuned together
  --json     for programs; times in seconds, null where there is none
  --perfetto FILE
             writes what happened when, for https://ui.perfetto.dev: a process for each rank, a track for
             the stages of each region and for the trials of each site, arrows from the ranks' questions to
             their verdicts; a trial lasts as long as its launches took, from when its pass began
  --csv FILE writes a row for each trial: run, rank, site, config, time and more, as --json names them
  --nccl-csv FILE
             writes what the collectives run now for NCCL's example tuner plugin, which does it without
             contextune; that plugin knows no datatypes, so a winner then holds for sums of
             floating-point numbers as well, and it gives one channel to what has no row
  --color WHEN
             auto (on a terminal), always or never; NO_COLOR and CLICOLOR_FORCE count in auto

--perfetto and --csv take `-` for standard output, and --rank R for one rank alone. Their files are replaced
only once they are written whole.

Exit status: 0; 1 if there is no log, no line in it that can be read, or nothing to write, or if a file
could not be written; 2 if the command was not understood.
)";
}

std::string compare_help() {
  return R"(contextune compare A B [--margin SHARE] [--fail-on slower] [--json]
contextune compare FOLDER --run-a ID --run-b ID

  contextune compare before/.autotune_logs after/.autotune_logs
  contextune compare .autotune_logs --run-a 7f3a21 --run-b 04c1de
  contextune compare /jobs/17:7f3a21 /jobs/18 --margin 5%
  contextune compare --fail-on slower baseline today       # for CI
  contextune compare ~/.cache/contextune /jobs/17/store

Says of each site in both whether B takes as long as A: with the config that it settled on, and with its
default. A and B are two folders of rank logs, or two stores (or one file of each). Of a folder of logs the
last run counts, or that of FOLDER:ID, --run-a and --run-b. Sites are matched by region, name and key. Where
the key is in one side only, sites are matched without the code and the device in it, if only one fits: that
is another build, and is said. The rest is listed. Of several processes of a rank, the last one that tuned counts.

How it decides
  SAME     the 95 % interval of B's time over A's lies within the margin: from 1 / (1 + margin) to 1 + margin
  FASTER   all of the interval lies below the margin
  SLOWER   all of it lies above
  UNCLEAR  the interval crosses a border of the margin, or a side has too few samples: why is said

Of rank logs, the interval is that of the difference of the trimmed means of the samples' logarithms (Yuen's
test). One sample in five is trimmed at each end, so that one interrupted pass of five decides nothing; three
samples on each side are the fewest. Samples are those of the table: throttled and failed passes do not count.
A clock's step counts as scatter. Times that are shown are medians. A store keeps no samples. There the
interval goes from the fastest of B over the slowest of A to the reverse, and four samples on each side are
enough. A winner that an earlier run stored has no samples in a run's log: UNCLEAR.

More samples make the interval narrower (--n-repeat 12 in both runs).

The interval knows how passes scatter within a run. It cannot know how runs differ from each other, by clocks,
temperature or placement of memory: this is what the margin is for. Compare two runs of one program first.

Of several ranks the slowest one's times count, as in their tuning, pass by pass where they tuned together.

A gain is how much less time a region takes with its winners than with its defaults, or a found region by how
its launches go out. Its word compares the share of the time that is left, so that it holds between machines.

Times of different GPUs, and simulated beside real ones, are compared as well: the first line says so.

  --margin SHARE    changes up to it count as none: 2% (the default) or 0.02
  --fail-on slower  the exit status is 1 if a settled time or a gain is SLOWER
  --run-a ID, --run-b ID
                    the runs of A and B
  --json            for programs: times in seconds, null where there is none
  --color WHEN      auto (on a terminal), always or never

Exit status: 0, whatever is found. With --fail-on slower, 1 if something is SLOWER. 2 if the command was not
understood, if a side cannot be read, or, with --fail-on, if nothing is in both.
)";
}

std::string report_help() {
  return R"(contextune report [FOLDER] [-o FILE] [--run ID] [--force]
contextune report --follow [FOLDER] [--port N] [--run ID]

  contextune report                    the last run of every rank, from $CONTEXTUNE_LOG_DIR or ./.autotune_logs
  contextune report /jobs/17 -o job17.html
  contextune report --run all -o - | gzip > runs.html.gz
  contextune report --follow           the same page for a job that runs: it shows what is new by itself

Writes one HTML file with everything that `contextune logs` tells, and prints its path. The page needs no
network, no other file and no server. It shows the verdict with its 95 % bound, sites with all configs by
time, the config of every site in every pass, ranks beside one another, the pairs that a verdict rests on,
the time that each stage took, and work that was not tuned with what to do. An address such as
contextune-report.html#site=rotate opens it at one site.

  FOLDER      a folder of rank logs, or one rank log
  -o FILE, --output FILE
              where the page goes; default contextune-report.html, and - is the standard output
  --run ID    only that run; `all`: every run that the logs hold
  --force     replace FILE even if it is no page of contextune; an earlier page is replaced in any case

  --follow    serve the page instead, until Ctrl-C (SIGINT or SIGTERM), and print its address once
  --port N    at that port of 127.0.0.1; default: any that is free

The file is complete or not there: the page is written beside it and renamed.

With --follow the logs may grow, be replaced or not be there yet. Only this machine can reach the page, and
only who has the random word in its address can read it. From another machine, forward the same port
(ssh -L N:127.0.0.1:N HOST) and open the same address there.

Exit status: 0; 1 if there is no log, no line in it that can be read, or the file cannot be written; 2 if
the command was not understood. With --follow: 0 at SIGINT and SIGTERM, 1 if the port cannot be had.
)";
}

std::string doctor_help() {
  return R"(contextune doctor [--space FILE] [-- PROGRAM]

  contextune doctor
  contextune doctor --space engine.lua -- ./engine

Looks at what tuning needs: the CUDA driver and its GPUs, CUPTI, NVML, NVRTC, this environment, the
log folder, the store, and, if they are given, a space file and a program (static, setuid, of another
architecture or C library). Starts nothing and changes nothing. --color WHEN: auto (on a terminal),
always or never.

  --space FILE  reads that space file as a run would

Exit status: 0 if tuning can work, 1 if not.
)";
}

std::string store_help() {
  return R"(contextune store ACTION [ARGUMENTS] [--cache-dir FOLDER]

  contextune store list
  contextune store show decode --history
  contextune store diff ~/.cache/contextune /jobs/17/store
  contextune store merge /jobs/17/store /jobs/18/store
  contextune store check
  contextune store export decode --t4 decode.json
  contextune store export train --nccl-csv nccl_tuner.conf

The store holds the winners of earlier runs: a file for each region, function or choice on each kind
of hardware, in --cache-dir, $CONTEXTUNE_CACHE_DIR, or contextune in $XDG_CACHE_HOME or ~/.cache. NAME
is the name of a region, function or choice; where it was tuned on several kinds of hardware, it may
also be the file that `list` shows.

  list            what is stored: name, hardware, sites, when, what it won
  show NAME       every site with its winner, why it won and its times; --history: what it replaced
  diff A B        compares two stores, or two files of any hardware: sites that only one of them has,
                  and sites with other winners
  merge FOLDER...
                  takes in what other stores hold, whoever's they are. Where two hold a winner of a
                  site, the one tuned later counts, and the other goes into its history
  check           reads every file and says what is wrong where; changes nothing
  remove NAME     removes what is stored of NAME, on all hardware, and says what that was
  export NAME     writes results for other tools; --site SITE: of that site alone
    --t4 FILE       the auto-tuning community's T4 results (JSON, times in ms). The store keeps
                    summaries: `runtimes` holds the cost of a config, the measurements its fastest and
                    slowest sample and how many there were
    --nccl-csv FILE
                    the winners of collectives for NCCL's example tuner plugin, as `contextune logs
                    --nccl-csv` writes them

  blamed          configs that have taken down the process that tried them, or have not ended there,
                  and are not tried any more; --forget: they may be again

  --cache-dir FOLDER  the store
  --json              list, show, diff, check: for programs; times in seconds

Exit status: 0; 1 if there is no such store or name, if `diff` finds a difference, if `check` finds
something wrong, or if something could not be read or written; 2 if the command was not understood.
)";
}

std::string completion_help() {
  return R"(contextune completion SHELL

  source <(contextune completion bash)
  contextune completion zsh > ~/.zfunc/_contextune
  contextune completion fish > ~/.config/fish/completions/contextune.fish

Prints the script with which bash, zsh or fish completes the words of contextune: its commands, their
flags, the values of flags, files where files are wanted, and behind `--` what the program takes. It is
made from what the commands take. An installed contextune has these scripts where the shells look for
them; bash then needs the package bash-completion.

  SHELL  bash, zsh or fish

Exit status: 0; 2 if the command was not understood.
)";
}

std::string manual_help() {
  return R"(contextune manual [COMMAND] [--folder FOLDER]

  contextune manual run | man -l -
  contextune manual --folder /usr/local/share/man/man1

Prints the manual page of a command, or that of contextune itself, as man reads it. It is made from
what --help says. An installed contextune has these pages: `man contextune-run`.

  COMMAND          a command of contextune
  --folder FOLDER  writes the page there instead, and all pages where no command is named; the folder
                   has to be there

Exit status: 0; 1 if a page could not be written; 2 if the command was not understood.
)";
}

std::string version_text() {
  return "contextune " CONTEXTUNE_VERSION "\n";
}

std::string options_markdown() {
  std::string text = "| Flag | Variable | Default | Meaning |\n|---|---|---|---|\n";
  for (const OptionInfo& option : option_table()) {
    text += "| " + code(option.flag) + " | " + code(option.variable) + " | " +
            code(option.default_text) + " | " + cell(option.meaning) + " |\n";
  }
  return text;
}

std::string reasons_markdown() {
  std::string text = "| `reason=` | What it means | Cause | What to do |\n|---|---|---|---|\n";
  for (const FallbackInfo& reason : fallback_table()) {
    text += "| " + code(reason.word) + " | " + cell(reason.sentence) + " | " + cell(reason.cause) +
            " | " + cell(reason.remedy) + " |\n";
  }
  return text;
}

std::string reasons_text(const std::vector<std::string>& words) {
  std::vector<const FallbackInfo*> shown;
  for (const std::string& word : words) {
    shown.push_back(find_fallback(word));
    if (shown.back() == nullptr)
      throw Error("there is no reason '" + word + "'; `contextune reasons` shows all");
  }
  if (words.empty())
    for (const FallbackInfo& reason : fallback_table()) shown.push_back(&reason);
  std::string text;
  for (const FallbackInfo* reason : shown) {
    text += (text.empty() ? "" : "\n") + std::string(reason->word) + "\n" +
            wrapped(reason->sentence, 2) + wrapped("Cause: " + std::string(reason->cause), 2) +
            wrapped("What to do: " + std::string(reason->remedy), 2);
  }
  return text;
}

}  // namespace contextune::cli

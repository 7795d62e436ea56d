#!/usr/bin/env bash
# Runs the test programs on this machine's GPU, bare and under contextune, and compares what they print.
# Usage: tests/gpu/run.sh BUILD_FOLDER [replay | ranks | store | rest]
# With `replay` only what is tuned in one visit of its region (replay.sh), with `ranks` only programs of
# several processes (ranks.sh), with `store` only what is kept from run to run (store.sh), with `rest` all but
# these three. Prints a table and closes with "N passed, N failed"; ends with 1 if anything failed. Logs stay in
# BUILD_FOLDER/gpu/runs.
set -uo pipefail
build=$(cd "${1:?usage: tests/gpu/run.sh BUILD_FOLDER [replay | ranks | store | rest]}" && pwd)
only=${2:-all}
gpus=$(nvidia-smi -L | grep -c '^GPU ') # that a program sees
[ -z "${CUDA_VISIBLE_DEVICES+set}" ] || gpus=$(tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c .)
most_seconds=${CONTEXTUNE_TEST_SECONDS:-240} # of one run of a program
programs=$build/gpu
runs=$programs/runs
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
contextune=$build/bin/contextune
export CONTEXTUNE_TEST_KERNELS=$programs
export CONTEXTUNE_STORE=off # but where a row says otherwise: each tunes from nothing
rm -rf "$runs" && mkdir -p "$runs"
passed=0 failed=0 skipped=0

# row NAME passed|failed|skipped REMARK: with the seconds since the start.
row() {
  printf '%-38s %4s %-8s %s\n' "$1" "$SECONDS" "$2" "$3"
  case $2 in passed) passed=$((passed + 1)) ;; failed) failed=$((failed + 1)) ;; *) skipped=$((skipped + 1)) ;; esac
}

median() { sort -g "$1" | awk '{v[NR]=$1} END {if (NR) printf "%.1f", v[int((NR + 1) / 2)]}'; }
spread() { sort -g "$1" | awk '{v[NR]=$1} END {if (NR) printf "%.1f-%.1f", v[int(NR*0.1)+1], v[int(NR*0.9)]}'; }

# under NAME LOGDIR OPTIONS -- PROGRAM...: stdout and status of the program under contextune.
under() {
  local name=$1; shift
  local -a options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  timeout --kill-after 5 "$most_seconds" "$contextune" run --log-dir "$runs/$name.log" --report "$runs/$name.report" \
    "${options[@]}" -- "$@" >"$runs/$name.out" 2>"$runs/$name.err"
}

# has NAME PATTERN: whether the rank log has such a line.
has() { grep -qE -- "$2" "$runs/$1.log"/rank-*.log 2>/dev/null; }

# same NAME STATUS: the output is that of the bare run and the program ended with 0.
same() { [ "$2" -eq 0 ] && cmp -s "$runs/$1.bare" "$runs/$1.out"; }

# compare NAME WANTED_LINE OPTIONS -- PROGRAM...
compare() {
  local name=$1 wanted=$2; shift 2
  local -a command=("$@")
  while [ "${command[0]}" != -- ]; do command=("${command[@]:1}"); done
  if ! "${command[@]:1}" >"$runs/$name.bare" 2>"$runs/$name.bare.err"; then
    row "$name" failed "the program itself failed: $(tail -1 "$runs/$name.bare.err")"
    return
  fi
  under "$name" "$@"
  local status=$?
  if ! same "$name" $status; then
    row "$name" failed "status $status, output $(head -c 60 "$runs/$name.out") instead of $(head -c 60 "$runs/$name.bare")"
  elif [ -n "$wanted" ] && ! has "$name" "$wanted"; then
    row "$name" failed "no line like '$wanted' in $runs/$name.log"
  else
    row "$name" passed "$(grep -hoE 'event=(confirm|fallback) .*' "$runs/$name.log"/rank-*.log 2>/dev/null | head -1 | cut -c1-90)"
  fi
}

# judge NAME PROGRAM...: a program that judges itself; the remark is its last line.
judge() {
  local name=$1 status; shift
  "$@" >"$runs/$name.out" 2>&1
  status=$?
  if [ "$status" -eq 0 ]; then
    row "$name" passed "$(tail -1 "$runs/$name.out" | cut -c1-90)"
  else
    row "$name" failed "status $status: $(tail -1 "$runs/$name.out" | cut -c1-90)"
    grep -v '^$' "$runs/$name.out" | tail -30 | cut -c1-200 | sed 's/^/    /'
  fi
}

# finish: how many passed and failed, and the end of the script.
finish() {
  [ "$skipped" -eq 0 ] || echo "$skipped skipped"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
  exit
}

printf '%-38s %4s %-8s %s\n' what s result remark
if [ "$only" = replay ] || [ "$only" = ranks ] || [ "$only" = store ]; then
  source "$here/$only.sh"
  finish
fi
if "$programs/library_tests" >"$runs/library_tests" 2>&1; then
  row "src/gpu on this GPU" passed "$(tail -2 "$runs/library_tests" | head -1)"
else
  row "src/gpu on this GPU" failed "$runs/library_tests"
fi
for form in whole relocatable; do
  if "$programs/module_variables_$form" >"$runs/module_variables_$form" 2>&1; then
    row "module variables, $form" passed "$(tail -2 "$runs/module_variables_$form" | head -1)"
  else
    row "module variables, $form" failed "$runs/module_variables_$form"
  fi
done
"$here/kernel_times.sh" "$programs" >"$runs/kernel_times" 2>&1
case $? in
  0) row "kernel times against ncu" passed "$(tail -1 "$runs/kernel_times")" ;;
  4) row "kernel times against ncu" skipped "$(tail -1 "$runs/kernel_times")" ;;
  *) row "kernel times against ncu" failed "$(tail -1 "$runs/kernel_times")" ;;
esac

if [ ! -x "$contextune" ]; then
  row "programs under contextune" failed "$contextune is not there"
  echo "$passed passed, $failed failed"
  exit 1
fi
if [ "$only" != rest ]; then
  source "$here/replay.sh"
  source "$here/store.sh"
fi
space=$programs/regions.lua
for form in static shared per_thread; do
  # Bare and tuned in alternation; the second tuned run has its own search again (nothing is stored).
  for turn in 1 2 3; do
    "$programs/regions_$form" --steps 4000 --time "$runs/bare_$form.$turn" >"$runs/regions_$form.bare" 2>&1
    under "regions_$form" --mode live --region nvtx:step --space "$space" --auto -- \
      "$programs/regions_$form" --steps 4000 --time "$runs/tuned_$form.$turn"
    status=$?
    tail -n 200 "$runs/tuned_$form.$turn" >>"$runs/tuned_$form" 2>/dev/null
    tail -n 200 "$runs/bare_$form.$turn" >>"$runs/bare_$form"
    same "regions_$form" $status || break
  done
  if ! same "regions_$form" $status; then
    row "regions_$form" failed "status $status, other results: $runs/regions_$form.out"
  elif ! has "regions_$form" 'event=site .*accumulate' || ! has "regions_$form" 'event=site .*smooth' ||
       ! has "regions_$form" 'event=site .*normalize_rows'; then
    row "regions_$form" failed "not all three kernels became sites"
  elif ! has "regions_$form" 'event=trial .*timer=cupti'; then
    row "regions_$form" failed "CUPTI was not used"
  else
    row "regions_$form" passed "bare $(median "$runs/bare_$form") us ($(spread "$runs/bare_$form")), tuned $(median "$runs/tuned_$form") us ($(spread "$runs/tuned_$form"))"
  fi
done

# The region's kernels replaced by those of a cubin, a fatbin and a source, which is built meanwhile.
compare region_variants 'event=winner .*smooth.* config=[1-9]' --mode live --region nvtx:step \
  --space "$programs/region_variants.lua" -- "$programs/regions_static" --steps 40000

if [ "$gpus" -gt 1 ]; then
  compare two_gpus 'event=winner .*device=1 .* config=[1-9]' --mode live --region nvtx:step --space "$space" -- \
    "$programs/two_gpus"
else
  row two_gpus skipped "one GPU here"
fi

[ "$only" = rest ] || source "$here/ranks.sh"

compare cublaslt_discover '' --discover --region profiler -- "$programs/cublaslt"
compare cublaslt_auto 'event=site' --mode live --auto --region profiler -- "$programs/cublaslt" --steps 15000
# Several times: a graph that meets CUPTI's end at the wrong moment fails only in some runs.
for turn in 1 2 3 4 5; do
  compare "graph_$turn" 'reason=capture' --mode live --region nvtx:step --auto -- "$programs/graph" --steps 400
done
# A graph whose own shapes lose: its kernels' winners are launched in their place.
tuned_graph=$programs/tuned_graph.lua
for region in nvtx:step graph process; do
  compare "tuned_graph_${region%%:*}" 'event=confirm .*verdict=(kept|reduced)' --mode live --region "$region" \
    --space "$tuned_graph" -- "$programs/tuned_graph" --steps 3000
done
compare tuned_graph_events 'event=confirm .*verdict=(kept|reduced)' --mode live --region nvtx:step \
  --timer events --space "$tuned_graph" -- "$programs/tuned_graph" --steps 6000
compare tuned_graph_two_streams 'event=confirm .*verdict=(kept|reduced)' --mode live --region nvtx:step \
  --space "$tuned_graph" -- "$programs/tuned_graph" --steps 3000 --streams 2
compare tuned_graph_updated 'reason=graph_changed' --mode live --region nvtx:step --space "$tuned_graph" -- \
  "$programs/tuned_graph" --steps 3000 --update 1
compare own_cupti 'reason=' --mode live --region nvtx:step --auto -- "$programs/own_cupti" --steps 3000
if python3 -c 'import torch, triton' 2>/dev/null; then
  compare torch_triton_discover '' --discover --region nvtx:step -- python3 "$programs/torch_triton.py" 60
  compare torch_triton_auto 'event=site' --mode live --auto --region nvtx:step -- python3 "$programs/torch_triton.py" 12000
  export CONTEXTUNE_TEST_BUILD=$build
  CONTEXTUNE_LOG_DIR=$runs/triton_autotune.log judge triton_autotune python3 "$here/triton_autotune.py"
  CONTEXTUNE_LOG_DIR=$runs/triton_autotune_run.log judge triton_autotune_run \
    "$contextune" run --quiet --region nvtx:none -- python3 "$here/triton_autotune.py"
  unset CONTEXTUNE_TEST_BUILD
else
  row torch_triton skipped "no PyTorch with Triton here"
fi
if python3 -c 'import torch' 2>/dev/null; then
  CONTEXTUNE_TEST_BUILD=$build judge torch_custom_op python3 "$here/torch_custom_op.py"
else
  row torch_custom_op skipped "no PyTorch here"
fi
LD_LIBRARY_PATH= compare demo_live 'event=confirm .*verdict=(kept|reduced)' --mode live --region nvtx:decode \
  --space "$build/demo/demo.lua" -- "$build/demo/contextune_demo" --steps 20000
export CONTEXTUNE_LOG_DIR=$runs/commands.log
judge choice_copies "$programs/choice_copies"
judge choice_launches "$programs/choice_launches"
judge runtime_macro "$programs/runtime_macro"
# Ten tunings in processes of their own: all with 96 passes, half of them in 25 ms after CUPTI, whose
# start the host decides (12 to 23 ms), nine as good as the best.
tunings() {
  "$programs/tuning" | tee "$runs/tuning.out" &&
    grep -q 'table in 96 passes: 10 of 10' "$runs/tuning.out" &&
    grep -qE 'after CUPTI has opened: ([5-9]|10) of 10' "$runs/tuning.out" &&
    grep -qE 'region time: (9|10) of 10' "$runs/tuning.out" && grep '^total' "$runs/tuning.out"
}
judge bench_tuning tunings
judge bench_launch_overhead "$build/bin/contextune_bench_launch_overhead" --check --processes 5
unset CONTEXTUNE_LOG_DIR
# The configs that came to the driver against those of the log, cell by cell.
CONTEXTUNE_TEST_BUILD=$build CONTEXTUNE_TEST_GPU=1 judge iteration_table \
  python3 "$here/../multi_rank/iteration_table_test.py"
CONTEXTUNE_TEST_BUILD=$build CONTEXTUNE_TEST_GPU=1 judge bad_input \
  python3 "$here/../apps/bad_input_test.py"
# Chained and gathered launches: random programs give the bits that they give as written.
CONTEXTUNE_TEST_BUILD=$build CONTEXTUNE_TEST_GPU=1 judge submission \
  python3 "$here/submission_test.py" --count 400
# Code that has moved calls functions and comes back to where it is now.
if grep -q 'yes: moved .*call_functions' < <("$contextune" kernels --all "$programs/called_functions"); then
  compare called_functions 'event=submission .* chained=[1-9]' --force launches=chained -- \
    "$programs/called_functions"
else
  row called_functions failed "its kernel does not move: $contextune kernels $programs/called_functions"
fi
if command -v compute-sanitizer >/dev/null; then
  # The sanitizer answers the program's look-ups of the driver itself, so nothing is seen of them.
  compare memcheck 'reason=(nothing_seen|no_cupti)' --mode live --region nvtx:step --auto -- \
    compute-sanitizer --log-file "$runs/memcheck.txt" "$programs/regions_static" --steps 40
  if ! tail -1 "$runs/memcheck.txt" | grep -q ' 0 errors'; then
    row "memcheck finds nothing" failed "$runs/memcheck.txt"
  else
    row "memcheck finds nothing" passed "$(tail -1 "$runs/memcheck.txt")"
  fi
else
  row memcheck skipped "no compute-sanitizer here"
fi

# Launch rate of an empty kernel, of the bare one: outside of regions as before any tuning, and tuned;
# where the two ways to launch take turns; the median of five processes.
rate() {
  awk -v name="$1" 'index($0, name) == 1 {print $9}' "$runs/bench_launch_overhead.out" | sort -g | sed -n 3p
}
rates="before $(rate 'outside regions') after $(rate 'tuned region')"
if echo "$rates" | awk '{exit !($2 >= 0.98 && $4 >= 0.98)}'; then
  row "launch rate" passed "of the bare one: $rates"
else
  row "launch rate" failed "of the bare one: $rates, wanted 0.98"
fi

# The same of whole processes on the CUDA runtime in turns: bare, tuned by the times of events, and by
# CUPTI, which leaves the driver up to a tenth slower on some hosts, also when it has gone. On some
# hosts more than half of them launch a fifth more slowly, whatever they run under: hence the lower
# quartile of each, and the interval in which its ratio is in 95 of 100 draws from the same processes.
turns=20
status=0
for ((turn = 0; turn < turns; ++turn)); do
  "$programs/empty_launch" --launches 5000 --time "$runs/rate_bare.$turn" >"$runs/empty_launch.bare"
  for timer in events cupti; do
    under empty_launch --mode live --region nvtx:step --auto --timer $timer -- \
      "$programs/empty_launch" --launches 5000 --time "$runs/rate_$timer.$turn"
    same empty_launch $? || status=1
  done
done
rates=$(python3 - "$runs" $turns <<'EOF'
import pathlib, random, sys
runs, turns = pathlib.Path(sys.argv[1]), int(sys.argv[2])
times = {kind: [list(map(float, (runs / f"rate_{kind}.{turn}").read_text().split()))[:2] for turn in range(turns)]
         for kind in ("bare", "events", "cupti")}
quartile = lambda values: sorted(values)[len(values) // 4]
draw = random.Random(1)
for kind, line, name in (("events", 0, "before"), ("events", 1, "after"), ("cupti", 1, "after CUPTI")):
    bare, under = ([one[line] for one in times[one_kind]] for one_kind in ("bare", kind))
    ratios = sorted(quartile(draw.choices(bare, k=turns)) / quartile(draw.choices(under, k=turns))
                    for _ in range(2000))
    print(f"{name} {quartile(bare) / quartile(under):.3f} to {ratios[-50]:.3f}", end=" ")
EOF
)
if [ $status -ne 0 ]; then
  row "launch rate of processes" failed "not the output of the bare one, or not 0: $runs/empty_launch.out"
elif echo "$rates" | awk '{exit !($4 >= 0.95 && $8 >= 0.95 && $13 >= 0.85)}'; then
  row "launch rate of processes" passed "of the bare one: $rates"
else
  row "launch rate of processes" failed "of the bare one: $rates, wanted 0.95, 0.95 and 0.85"
fi

finish

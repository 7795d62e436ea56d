# Sourced by run.sh: programs whose region is tuned in one visit, by recording it and repeating that.

# value NAME EVENT FIELD: of the last such line of the rank logs.
value() {
  grep -h "event=$2 " "$runs/$1.log"/rank-*.log 2>/dev/null | tail -1 | sed -nE "s/.* $3=([^ ]+).*/\1/p"
}

# mib NAME FIELD: a number of bytes of the replay line in MiB.
mib() { value "$1" replay "$2" | awk '{printf "%.0f", $1 / 1048576}'; }

# cost NAME: what the replay of a run took and won, for the remark of its row.
cost() {
  echo "$(value "$1" replay replays) passes in $(value "$1" replay time_s) s," \
    "$(mib "$1" dirty_bytes) of $(mib "$1" footprint_bytes) MiB written," \
    "restore $(value "$1" replay restore_us) us, hash $(value "$1" replay hash_us) us," \
    "region $(value "$1" confirm before_us) to $(value "$1" confirm after_us) us"
}

# one_visit NAME OPTIONS -- PROGRAM...: the program prints what it prints bare, and the first visit of its
# region tuned it.
one_visit() {
  local name=$1 status; shift
  local -a options=()
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  if ! timeout --kill-after 5 "$most_seconds" "$@" >"$runs/$name.bare" 2>"$runs/$name.bare.err"; then
    row "$name" failed "the program itself failed: $(tail -1 "$runs/$name.bare.err")"
    return 1
  fi
  under "$name" --mode auto "${options[@]}" -- "$@"
  status=$?
  if ! same "$name" $status; then
    row "$name" failed "status $status, output $(tail -1 "$runs/$name.out" | head -c 60) instead of $(tail -1 "$runs/$name.bare" | head -c 60); $(tail -1 "$runs/$name.err" | head -c 200)"
    return 1
  elif ! has "$name" 'event=replay .*visit=1 '; then
    row "$name" failed "not replayed in its first visit: $(grep -hE 'event=(replay|fallback)' "$runs/$name.log"/rank-*.log | sed -E 's/.*event=//' | head -3 | tr '\n' ';' | head -c 300)"
    return 1
  fi
  row "$name" passed "$(cost "$name")"
}

# wanted NAME WHAT CONDITION...: a further row on a run that passed.
wanted() {
  local name=$1 what=$2; shift 2
  if "$@"; then row "$name" passed "$what"; else row "$name" failed "$what"; fi
}

regions_space=$programs/regions.lua
under live_static --mode live --max-slowdown 0 --region nvtx:step --space "$regions_space" --auto -- \
  "$programs/regions_static" --steps 4000

# in_turns FORM: runs what replay has chosen live, in turns with what live has chosen; at most 1 % slower.
in_turns() {
  python3 "$here/winners_in_turns.py" "$runs/replay_$1.log" "$runs/live_static.log" 9 "$runs/times" \
    "$contextune" run --mode live --log-dir "$runs/turns_$1.log" --report "$runs/turns_$1.report" \
    --force @winners@ --region nvtx:step --space "$regions_space" --auto -- \
    "$programs/regions_$1" --steps 4000 --time "$runs/times" 2>&1
}

for form in static shared per_thread; do
  tuned=(--region nvtx:step --space "$regions_space" --auto -- "$programs/regions_$form" --steps 1)
  one_visit "replay_$form" "${tuned[@]}" || continue
  # A tuning in eight ends with a config that is 1 % slower (H200): three that do are no accident.
  for tuning in 1 2 3; do
    [ $tuning -eq 1 ] || { rm -r "$runs/replay_$form.log" && under "replay_$form" --mode auto "${tuned[@]}"; }
    result=passed
    remark=$(in_turns "$form") && break
    result=failed
  done
  row "replay_$form chooses as live does" $result "tuning $tuning: $(tail -1 <<<"$remark")"
done
# The visits that follow are the program's own, with the winners.
one_visit replay_then_runs --region nvtx:step --space "$regions_space" --auto -- \
  "$programs/regions_static" --steps 50
one_visit replay_variants --region nvtx:step --space "$programs/region_variants.lua" -- \
  "$programs/regions_static" --steps 1 &&
  wanted "replay_variants takes a variant" "of smooth, built by NVRTC" \
    has replay_variants 'event=winner .*smooth.* config=[1-9]'
one_visit replay_cublaslt --auto --region profiler -- "$programs/cublaslt" --steps 1

# A config that leaves elements out is found by what the memory holds, and never stays.
one_visit replay_wrong --region nvtx:step --space "$programs/regions_wrong.lua" -- \
  "$programs/regions_static" --steps 3 &&
  wanted "replay_wrong rejects what computes less" "$(grep -h 'reason=wrong_result' "$runs/replay_wrong.log"/rank-*.log | head -1 | sed -E 's/.*reason=//' | cut -c1-100)" \
    has replay_wrong 'reason=wrong_result'

# State that is worked on in place, small and large.
in_place=(--region nvtx:step --space "$programs/in_place.lua")
one_visit replay_in_place "${in_place[@]}" -- "$programs/in_place" --mib 64 --steps 5
free_mib=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits -i 0)
large_mib=${CONTEXTUNE_TEST_MIB:-20480}
[ "$free_mib" -ge $((3 * large_mib + 2048)) ] || large_mib=$((free_mib / 4))
one_visit replay_in_place_large "${in_place[@]}" -- "$programs/in_place" --mib "$large_mib" --steps 2 &&
  wanted "replay_in_place_large: all is written" "$(mib replay_in_place_large dirty_bytes) MiB of $large_mib" \
    test "$(mib replay_in_place_large dirty_bytes)" -ge "$large_mib"
# Copies that the device has no room for go to the host; where that is too small as well, it is live.
one_visit replay_in_place_host "${in_place[@]}" --replay-memory 3G -- \
  "$programs/in_place" --mib 2048 --steps 2 &&
  wanted "replay_in_place_host: copies on the host" "$(mib replay_in_place_host host_bytes) MiB there, $(mib replay_in_place_host device_bytes) MiB on the device" \
    test "$(mib replay_in_place_host host_bytes)" -ge 512
compare live_without_room 'reason=replay_memory' --mode auto "${in_place[@]}" --replay-memory 256M -- \
  "$programs/in_place" --mib 1024 --steps 200

# What a replay cannot repeat, or what makes it hard: the output stays, whatever becomes of the tuning.
for turn in 1 2 3; do
  compare "auto_graph_$turn" 'event=(replay|fallback) ' --mode auto --region nvtx:step --auto -- \
    "$programs/graph" --steps 400
done
compare auto_own_cupti 'event=(replay|fallback) ' --mode auto --region nvtx:step --auto -- \
  "$programs/own_cupti" --steps 300
if [ "$gpus" -gt 1 ]; then
  compare auto_two_gpus 'reason=several_devices' --mode auto --region nvtx:step \
    --space "$regions_space" -- "$programs/two_gpus"
fi

# The program ends, by another thread or the return of main, while its region is tuned: as it does bare.
for mode in replay live; do
  for by in exit return; do
    name=exit_in_region_${mode}_$by wrong=
    "$programs/exit_in_region" --by $by >"$runs/$name.bare"
    for after in 0 1 3 6 10 15 20 25 30 40 50 60; do
      under "$name" --mode $mode --region nvtx:step --space "$programs/stored_region.lua" -- \
        "$programs/exit_in_region" --by $by --after $after
      status=$?
      if [ $status -ne 5 ] || ! cmp -s "$runs/$name.bare" "$runs/$name.out"; then
        wrong+=" after $after ms: $status"
      fi
    done
    wanted $name "it ends at 12 moments${wrong:+; not as bare:$wrong}" test -z "$wrong"
  done
done

if python3 -c 'import torch, triton' 2>/dev/null; then
  decode=(python3 "$programs/torch_graph_decode.py")
  decode_space=(--region nvtx:decode --auto --space "$programs/torch_graph_decode.lua")
  one_visit replay_torch_eager "${decode_space[@]}" -- "${decode[@]}" eager 40
  one_visit replay_torch_graph "${decode_space[@]}" -- "${decode[@]}" graph 40
  compare auto_torch_triton 'event=(replay|fallback) ' --mode auto --auto --region nvtx:step -- \
    python3 "$programs/torch_triton.py" 60
else
  row replay_torch skipped "no PyTorch with Triton here"
fi
LD_LIBRARY_PATH= one_visit demo --region nvtx:decode --space "$build/demo/demo.lua" -- \
  "$build/demo/contextune_demo" --steps 200

# The three modes side by side: the same state after the first visit, and winners as fast as each other's.
judge bench_replay "$programs/replay" --rounds 3
differ=$(sed -nE "s/.*region's time differs by ([0-9.]+) %.*/\1/p; s/.*the same in all tunings.*/0/p" \
  "$runs/bench_replay.out" | tail -1)
wanted bench_replay "the modes' winners differ by ${differ:-?} % of the region's time" \
  awk -v differ="${differ:-100}" 'BEGIN {exit !(differ <= 3)}'

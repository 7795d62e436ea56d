# Sourced by run.sh: what one run has found out the next one starts with, and a config that breaks the
# context is found, named and skipped.
stored_region=$programs/stored_region

# with_store NAME MODE PROGRAM...: a run with the store of its own name.
with_store() {
  local name=$1 mode=$2; shift 2
  CONTEXTUNE_STORE=tune CONTEXTUNE_CACHE_DIR="$runs/$store.store" \
    under "$name" --mode "$mode" --region nvtx:step --space "$programs/stored_region.lua" -- "$@"
}

# Winners of a run, as "site key config".
winners_of() { grep -hoE 'event=winner .*' "$runs/$1.log"/rank-0.log | sed -E 's/.* (site=.* config=[0-9]+).*/\1/' | sort; }

for mode in replay live; do
  store=stored_$mode
  steps=40
  [ "$mode" = live ] && steps=4000
  rm -rf "$runs/$store.store"
  "$stored_region" --steps $steps >"$runs/stored.bare"
  with_store "stored_$mode.1" "$mode" "$stored_region" --steps $steps
  first=$?
  bare_times=() stored_times=()
  for turn in 1 2 3 4 5; do
    "$stored_region" --steps 8 --first "$runs/first" >/dev/null && bare_times+=("$(cat "$runs/first")")
    with_store "stored_$mode.2" "$mode" "$stored_region" --steps 8 --first "$runs/first" &&
      stored_times+=("$(cat "$runs/first")")
  done
  with_store "stored_$mode.3" "$mode" "$stored_region" --steps $steps
  again=$?
  # Medians of five, and how much later the first entry ends when it starts tuned.
  bare=$(printf '%s\n' "${bare_times[@]}" | sort -g | sed -n 3p)
  stored=$(printf '%s\n' "${stored_times[@]}" | sort -g | sed -n 3p)
  more=$(awk -v a="$stored" -v b="$bare" 'BEGIN {printf "%.0f", a - b}')
  if [ "$first" -ne 0 ] || [ "$again" -ne 0 ] || ! cmp -s "$runs/stored.bare" "$runs/stored_$mode.3.out" ||
     ! cmp -s "$runs/stored.bare" "$runs/stored_$mode.1.out"; then
    row "second run, $mode" failed "status $first and $again, or another output"
  elif ! has "stored_$mode.1" 'event=store .*action=saved' || has "stored_$mode.3" 'event=trial' ||
       [ "$(winners_of "stored_$mode.1")" != "$(winners_of "stored_$mode.3")" ]; then
    row "second run, $mode" failed "it does not start with the first one's winners"
  elif [ "$more" -gt 2000 ]; then # half of that on most hosts
    row "second run, $mode" failed "its first entry takes $more us more than the bare one's $bare us"
  else
    row "second run, $mode" passed "same winners, no trial; first entry $bare us bare, $more us more"
  fi
done

# Each of the three configs of 512 threads has to be found in runs that it ends.
for mode in replay live; do
  store=fault_$mode
  steps=40
  [ "$mode" = live ] && steps=4000
  rm -rf "$runs/$store.store"
  "$stored_region" --steps $steps >"$runs/fault.bare"
  ends=0 status=1
  while [ "$status" -ne 0 ] && [ "$ends" -lt 10 ]; do
    with_store "fault_$mode" "$mode" "$stored_region" --steps $steps --fault 1
    status=$?
    [ "$status" -eq 0 ] || ends=$((ends + 1))
  done
  named=$(grep -c 'reason=config_crashed.*block=512' "$runs/fault_$mode.log/rank-0.log" 2>/dev/null)
  with_store "fault_$mode.again" "$mode" "$stored_region" --steps $steps --fault 1
  again=$?
  if [ "$status" -eq 0 ] && [ "$again" -eq 0 ] && [ "$ends" -gt 0 ] && [ "${named:-0}" -gt 0 ] &&
     cmp -s "$runs/fault.bare" "$runs/fault_$mode.again.out" && ! has "fault_$mode.again" 'event=trial'; then
    row "illegal address, $mode" passed "named and skipped after $ends runs that it ended; then a run starts tuned"
  else
    row "illegal address, $mode" failed "status $status after $ends ends, $named named, then $again"
  fi
done

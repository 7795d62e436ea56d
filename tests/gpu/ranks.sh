# Sourced by run.sh: programs of two ranks, on two GPUs where there are two.

# same_winners NAME: both ranks have winners, and they are the same.
same_winners() {
  local name=$1 rank
  for rank in 0 1; do
    grep event=winner "$runs/$name.log/rank-$rank.log" |
      sed -E 's/^.* event=//; s/ (time|default)_us=[^ ]*//g' >"$runs/$name.winners.$rank"
  done
  [ -s "$runs/$name.winners.0" ] && cmp -s "$runs/$name.winners.0" "$runs/$name.winners.1"
}

# agreements NAME: what rank 0 says of the tuning, for the remark of its row.
agreements() {
  echo "$gpus GPU(s), $(grep -c 'event=sync .*verdict=committed' "$runs/$1.log/rank-0.log") agreements," \
    "$(grep -oE ' verdict=(kept|reduced|rejected)| gain=[^ ]*' "$runs/$1.log/rank-0.log" | head -2 | tr '\n' ' ')" \
    "$(sed -nE 's/.*event=summary region=[^ ]+ .* entries=([0-9]+) .* stage=([a-z]+) .*/\2 after \1 entries/p' \
      "$runs/$1.log/rank-0.log" | head -1)"
}

# ranks STEPS: two ranks of the demo, replayed. Live, ranks that share nothing but their tuning drift
# apart, and each batch of passes begins where the one ahead is.
ranks() {
  local name=ranks_replay demo=$build/demo/contextune_demo status
  LD_LIBRARY_PATH= "$demo" --steps "$1" >"$runs/$name.bare" 2>"$runs/$name.bare.err"
  # One file each: what two processes write to one may lie in any order.
  LD_LIBRARY_PATH= under "$name" -n 2 --mode replay --region nvtx:decode --space "$build/demo/demo.lua" -- \
    sh -c 'exec "$0" --device "$((LOCAL_RANK % $1))" --steps "$2" >"$3.$LOCAL_RANK"' \
    "$demo" "$gpus" "$1" "$runs/$name.out"
  status=$?
  if [ "$status" -ne 0 ] || ! cmp -s "$runs/$name.bare" "$runs/$name.out.0" || ! cmp -s "$runs/$name.bare" "$runs/$name.out.1"; then
    row "$name" failed "status $status, or the output is not that of the bare run"
  elif ! same_winners "$name"; then
    row "$name" failed "the ranks have no winners, or others; see $runs/$name.log"
  else
    row "$name" passed "$(agreements "$name")"
  fi
}
ranks 200

# step_time FILE: of rank 0, as the program prints it, whatever else is there.
step_time() { sed -nE 's/.*rank 0 of 2: ([0-9.]+) us a step$/\1/p' "$1" | tail -1; }

# call_ratio FILE: how many times as long as for matmul the host of rank 0 takes for all_reduce.
call_ratio() { sed -nE 's/.*rank 0 of 2: all_reduce takes ([0-9.]+) matmuls$/\1/p' "$1" | tail -1; }

# judge_output NAME STATUS_BARE STATUS: whether the ranks have written the same to NAME.bare and NAME.out,
# each one line, in any order; a row if not.
judge_output() {
  local name=$1
  if [ "$2" -ne 0 ]; then
    row "$name" failed "the program itself ended with $2: $(tail -1 "$runs/$name.bare.err" | cut -c1-90)"
  elif [ "$3" -ne 0 ]; then
    row "$name" failed "status $3: $(tail -1 "$runs/$name.err" | cut -c1-90)"
  elif ! cmp -s <(sort "$runs/$name.bare") <(sort "$runs/$name.out") || [ "$(wc -l <"$runs/$name.out")" -ne 2 ]; then
    row "$name" failed "output $(sort "$runs/$name.out" | head -1) instead of $(sort "$runs/$name.bare" | head -1)"
  else
    return 0
  fi
  return 1
}

remark_of() {
  echo "$(step_time "$runs/$1.bare.err") us a step, in the end $(step_time "$runs/$1.err") us; $(agreements "$1")"
}

# name_of PROGRAM MODE
name_of() {
  local name
  name=$(basename "$1")
  echo "${name%.py}$([ "$2" = live ] || echo "_$2")"
}

# judge_replay NAME MODE: where it is replay, that both ranks made the same runs in the same visits; a row if not.
judge_replay() {
  local replays
  [ "$2" = replay ] || return 0
  replays=$(cat "$runs/$1.log"/rank-*.log | grep 'event=replay .* ranks=2 ' | grep -oE ' visit=[0-9]+| replays=[0-9]+' | sort | uniq -c | awk '{print $1}' | tr '\n' ' ')
  [[ "$replays" =~ ^(2\ )+$ ]] && return 0
  row "$1" failed "not replayed together: $(cat "$runs/$1.log"/rank-*.log | grep -E 'reason=' | sed -E 's/.*event=//' | head -2 | tr '\n' ';' | cut -c1-200)"
  return 1
}

# bare_ranks NAME COMMAND...: both ranks as they are, into NAME.bare; the status of the one that failed last.
bare_ranks() {
  local name=$1 status=0 rank process processes=()
  shift
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 timeout --kill-after 5 "$most_seconds" "$@" &
    processes+=($!)
  done >"$runs/$name.bare" 2>"$runs/$name.bare.err"
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  return $status
}

# peers PROGRAM STEPS [MODE]: two ranks that write to each other's memory, or call NCCL, bare and tuned as
# they run, or in a replay.
peers() {
  local name meet mode=${3:-live} status_bare=0 status=0
  name=$(name_of "$1" "$mode")
  meet=$(mktemp -d)
  local command=("$1" --steps "$2" --meet "$meet/socket")
  bare_ranks "$name" "${command[@]}" || status_bare=$?
  under "$name" -n 2 --mode "$mode" --region nvtx:step --space "$1.lua" -- "${command[@]}" || status=$?
  rm -rf "$meet"
  if ! judge_output "$name" "$status_bare" "$status" || ! judge_replay "$name" "$mode"; then
    return
  elif ! same_winners "$name"; then
    row "$name" failed "the ranks have no winners, or others; see $runs/$name.log"
  else
    row "$name" passed "$(remark_of "$name")"
  fi
}

# A grid for which there is no room at once is not launched, on any rank.
without_room() {
  local reasons
  reasons=$(cat "$runs/all_gather_gemm.log"/rank-*.log | grep -c 'reason=not_co_resident .*per_sm=16')
  if [ "$reasons" -eq 8 ] && ! has all_gather_gemm 'event=trial .*per_sm=16.* time_us='; then
    row "all_gather_gemm keeps to what fits" passed "$(grep -h 'reason=not_co_resident' "$runs/all_gather_gemm.log/rank-0.log" | head -1 | sed -E 's/.*text=//' | cut -c1-120)"
  else
    row "all_gather_gemm keeps to what fits" failed "$reasons refusals in $runs/all_gather_gemm.log, wanted 8"
  fi
}

# torch_peers STEPS [MODE]: PyTorch as its launcher starts it; the launcher itself, which uses CUDA too, is no rank.
# What --auto has for the kernels of libraries need not win anything.
torch_peers() {
  local name mode=${2:-live} program=$programs/torch_tensor_parallel.py status_bare=0 status=0 tuned
  name=$(name_of "$program" "$mode")
  local command=(python3 -m torch.distributed.run --nproc_per_node 2 "$program" "$1")
  timeout --kill-after 5 "$most_seconds" "${command[@]}" >"$runs/$name.bare" 2>"$runs/$name.bare.err" || status_bare=$?
  # What the arguments of PyTorch's kernels leave unset may look like an address of NCCL's: then a run
  # is declined, and another one is made.
  for _ in 1 2 3; do
    status=0
    rm -rf "$runs/$name.log"
    under "$name" --distributed on --mode "$mode" --auto --region nvtx:step -- "${command[@]}" || status=$?
    has "$name" 'reason=unknown_memory' || break
  done
  tuned=$(grep -hE 'event=sync .*verdict=committed' "$runs/$name.log"/rank-*.log | grep -oE ' pid=[0-9]+ rank=[0-9]+' | sort -u | wc -l)
  if ! judge_output "$name" "$status_bare" "$status" || ! judge_replay "$name" "$mode"; then
    return
  elif [ "$tuned" -ne 2 ] || has "$name" 'reason=(no_rendezvous|no_agreement)'; then
    row "$name" failed "$tuned processes agreed on something; see $runs/$name.log"
  else
    row "$name" passed "$(remark_of "$name"); all_reduce takes the host $(call_ratio "$runs/$name.bare.err") \
matmuls bare, $(call_ratio "$runs/$name.err") in the end"
  fi
}

# joined: two ranks that hand their communicator over to the library that they are linked with, and are told
# nothing by a launcher of contextune's.
# Where there is one GPU they are two hosts to NCCL, which has no two ranks of one host on it.
joined() {
  local name=joined_ranks meet status=0 rank processes=()
  local -a as_hosts=()
  [ "$gpus" -gt 1 ] || as_hosts=(env NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1)
  meet=$(mktemp -d)
  for rank in 0 1; do
    [ "$gpus" -gt 1 ] || as_hosts[3]=NCCL_HOSTID=host$rank
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 CONTEXTUNE_LOG_DIR=$runs/$name.log \
      LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ${as_hosts[@]+"${as_hosts[@]}"} \
      timeout --kill-after 5 "$most_seconds" "$build/apps/joined_ranks" --meet "$meet/socket" \
      >"$runs/$name.out.$rank" 2>"$runs/$name.err.$rank" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  rm -rf "$meet"
  printf '%s\n' "sum 3" ready joined filled "sum 3" end >"$runs/$name.wanted"
  if [ "$status" -ne 0 ] || ! cmp -s "$runs/$name.wanted" "$runs/$name.out.0" || ! cmp -s "$runs/$name.wanted" "$runs/$name.out.1"; then
    row "$name" failed "status $status: $(cat "$runs/$name".err.? "$runs/$name".out.? | tr '\n' ' ' | cut -c1-150)"
  elif ! same_winners "$name" || ! has "$name" 'event=winner .* time_us='; then
    row "$name" failed "the ranks have no winners, or others; see $runs/$name.log"
  else
    row "$name" passed "$(agreements "$name")"
  fi
}

# by_function: two ranks that tune a function, and a region of the same work, and run both and neither in turns.
by_function() {
  local name=all_gather_gemm_function meet status=0 rank processes=()
  meet=$(mktemp -d)
  for rank in 0 1; do
    RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=2 CONTEXTUNE_STORE=off CONTEXTUNE_LOG_DIR=$runs/$name.log \
      timeout --kill-after 5 "$most_seconds" "$programs/$name" --meet "$meet/socket" >"$runs/$name.out.$rank" 2>"$runs/$name.err.$rank" &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process" || status=$?; done
  rm -rf "$meet"
  if [ "$status" -ne 0 ] || ! grep -q ' PASS ' "$runs/$name.out.0" || ! grep -q ' PASS ' "$runs/$name.out.1"; then
    row "$name" failed "status $status: $(cat "$runs/$name".err.? "$runs/$name".out.? | tr '\n' ' ' | cut -c1-150)"
  elif ! same_winners "$name" || ! has "$name" 'event=winner .*site=all_gather_gemm .* time_us=[0-9]'; then
    row "$name" failed "the ranks have no winners, or others; see $runs/$name.log"
  else
    row "$name" passed "$(grep -E '^(default|by )' "$runs/$name.out.0" | sed -E 's/ +/ /g' | tr '\n' ';')"
  fi
}

# launches_beside_nccl: two ranks whose launches between collectives go out chained, gathered or both, and as
# written in turns.
launches_beside_nccl() {
  local way name meet status_bare status
  for way in chained gathered=16 "chained gathered=16"; do
    name=many_launches_${way//[ =]/_} status_bare=0 status=0
    meet=$(mktemp -d)
    local command=("$programs/many_launches" --steps 20000 --meet "$meet/socket")
    bare_ranks "$name" "${command[@]}" || status_bare=$?
    under "$name" -n 2 --force "launches=$way in turns" -- "${command[@]}" || status=$?
    rm -rf "$meet"
    judge_output "$name" "$status_bare" "$status" || continue
    if [ "$(cat "$runs/$name.log"/rank-*.log | grep -cE 'event=submission .* (chained|in_graphs)=[1-9]')" -ne 2 ]; then
      row "$name" failed "a rank's launches all went out as written; see $runs/$name.log"
    else
      row "$name" passed "$(grep -ohE 'launches: .*' "$runs/$name.report" | head -1)"
    fi
  done
}

joined
if [ "$gpus" -lt 2 ]; then
  for name in tensor_parallel tensor_parallel_replay all_gather_gemm all_gather_gemm_function all_gather_moe moe_reduce_scatter many_launches torch_tensor_parallel torch_tensor_parallel_replay; do
    row "$name" skipped "one GPU here"
  done
else
  peers "$build/demo/tensor_parallel" 6000
  peers "$build/demo/tensor_parallel" 1500 replay
  peers "$programs/all_gather_gemm" 12000
  without_room
  by_function
  peers "$programs/all_gather_moe" 12000
  peers "$programs/moe_reduce_scatter" 12000
  launches_beside_nccl
  if python3 -c 'import torch' 2>/dev/null; then
    torch_peers 12000
    torch_peers 6000 replay
  else
    row torch_tensor_parallel skipped "no PyTorch here"
    row torch_tensor_parallel_replay skipped "no PyTorch here"
  fi
fi
if python3 -c 'import torch' 2>/dev/null; then
  CONTEXTUNE_TEST_BUILD=$build judge torch_custom_all_reduce python3 "$here/torch_custom_all_reduce.py"
else
  row torch_custom_all_reduce skipped "no PyTorch here"
fi

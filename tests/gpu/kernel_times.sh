#!/usr/bin/env bash
# Compares kernel times of src/gpu with those of ncu. Usage: kernel_times.sh FOLDER_OF_PROGRAMS
# ncu counts a constant 0.7 to 1.2 us more, also for a kernel that does nothing: that floor is measured
# with an empty kernel on both sides and taken off. Ends with 4 where there is no ncu.
set -euo pipefail
cd "${1:?usage: kernel_times.sh FOLDER}"
export CONTEXTUNE_TEST_KERNELS=$PWD
if ! command -v ncu >/dev/null; then
  echo "there is no ncu here"
  exit 4
fi
ours=$(./kernel_times)
theirs=$(ncu --clock-control none --cache-control none --metrics gpu__time_duration.sum --print-units base --csv \
  ./kernel_times --bare 2>/dev/null | awk -F'","' '/gpu__time_duration/ {gsub(/[",]/, "", $NF); print $NF / 1000}')
# Of each kernel's launches the median; `ours` has one line a kernel.
paste -d' ' <(echo "$ours") <(echo "$theirs" | awk -v kernels="$(echo "$ours" | wc -l)" '
  {time[NR] = $1}
  END {
    each = NR / kernels
    for (k = 0; k < kernels; ++k) {
      n = 0
      for (i = 1; i <= each; ++i) v[++n] = time[k * each + i]
      for (i = 2; i <= n; ++i) for (j = i; j > 1 && v[j] < v[j-1]; --j) {t = v[j]; v[j] = v[j-1]; v[j-1] = t}
      print v[int((n + 1) / 2)]
    }
  }') | awk '
  NR == 1 {floor = $3 - $2; printf "empty kernel: %.2f us here, %.2f us by ncu\n", $2, $3; next}
  {
    raw = $3 - $2
    limit = $2 < 10 ? 0.2 : 0.05 * $3
    difference = raw - floor
    ok = difference <= limit && -difference <= limit
    bad += !ok
    printf "%s: %.2f us here, %.2f us by ncu, difference %.2f us, %.2f us without the floor: %s\n", \
      $1, $2, $3, raw, raw - floor, ok ? "agrees" : "differs"
    line = line sprintf("%.2f/%.2f ", $2, $3)
  }
  END {printf "us here/ncu: %s(ncu floor %.2f us)\n", line, floor; exit bad > 0}'

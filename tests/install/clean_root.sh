#!/usr/bin/env bash
# Installs the Debian package into a root that has nothing but Debian's smallest system, runs the demo there on
# the simulated driver, and removes it again. Takes minutes and downloads Debian: only where
# CONTEXTUNE_TEST_CLEAN_ROOT=1 asks for it.
# Usage: CONTEXTUNE_TEST_CLEAN_ROOT=1 clean_root.sh BUILD
#        CONTEXTUNE_TEST_MIRROR=http://deb.debian.org/debian, CONTEXTUNE_TEST_SUITE=bookworm
# Exit status: 0; 1 if something is wrong; 77 where it is not asked for or cannot run.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; exit 1; }
say() { printf '== %s\n' "$*"; }

[ "${CONTEXTUNE_TEST_CLEAN_ROOT:-}" = 1 ] || skip "CONTEXTUNE_TEST_CLEAN_ROOT is not 1"
[ "$(id -u)" -eq 0 ] || skip "debootstrap needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
build=$(cd "$1" && pwd)
for file in simcuda/libcuda.so.1 demo/contextune_demo demo/libdemo_kernels_sim.so; do
  [ -e "$build/$file" ] || fail "there is no $build/$file: build it first"
done

scratch=$(mktemp -d)
root=$scratch/root
leave() {
  mountpoint -q "$root/proc" && umount "$root/proc"
  rm -rf --one-file-system "$scratch"
}
trap leave EXIT
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
  DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" "$@"; }

say "Packing"
(cd "$build" && cpack -G DEB -B "$scratch" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip >"$scratch/cpack.log" 2>&1) ||
  { cat "$scratch/cpack.log"; fail "cpack"; }
package=$(echo "$scratch"/contextune_*.deb)

suite=${CONTEXTUNE_TEST_SUITE:-bookworm}
say "Making a root of $suite"
debootstrap --variant=minbase "$suite" "$root" "${CONTEXTUNE_TEST_MIRROR:-http://deb.debian.org/debian}" \
  >"$scratch/debootstrap.log" 2>&1 || { tail -20 "$scratch/debootstrap.log"; fail "debootstrap"; }
mount -t proc proc "$root/proc" 2>/dev/null || mount --bind /proc "$root/proc" || fail "/proc cannot be mounted"
# Services must not start, and what the package suggests is there.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod +x "$root/usr/sbin/policy-rc.d"
inside apt-get install -y --no-install-recommends bash-completion man-db >"$scratch/apt.log" 2>&1 ||
  { tail -20 "$scratch/apt.log"; fail "apt-get install bash-completion man-db"; }
files_of_the_root() { (cd "$root" && find bin etc lib opt sbin usr -xdev ! -name ld.so.cache | sort); }
files_of_the_root >"$scratch/before"

say "Installing $(basename "$package")"
cp "$package" "$root/tmp/"
inside apt-get install -y --no-install-recommends "/tmp/$(basename "$package")" >"$scratch/apt.log" 2>&1 ||
  { tail -20 "$scratch/apt.log"; fail "apt-get install of the package"; }
inside dpkg --audit | grep . && fail "dpkg --audit has something to say"
grep -E "newly installed" "$scratch/apt.log"
inside ldd /usr/bin/contextune /usr/lib/libcontextune.so /usr/lib/libcontextune_preload.so | grep "not found" &&
  fail "libraries are missing"

say "Running the demo on the simulated driver"
mkdir -p "$root/opt/simcuda" "$root/opt/demo"
cp -L "$build"/simcuda/lib*.so* "$root/opt/simcuda/"
cp "$build"/demo/{contextune_demo,libdemo_kernels_sim.so,demo_kernels.fatbin.sim,demo.lua} "$root/opt/demo/"
simulated() { inside env LD_LIBRARY_PATH=/opt/simcuda sh -c "cd /opt/demo && $*"; }
simulated ./contextune_demo --rows 8 --steps 5000 >"$scratch/bare"
simulated contextune run --report summary.txt -- ./contextune_demo --rows 8 --steps 5000 >"$scratch/tuned"
cmp "$scratch/bare" "$scratch/tuned" || fail "the tuned demo printed something else"
cat "$root/opt/demo/summary.txt"
grep -q "launches as written\|launches: gathered\|region auto (simulated)" "$root/opt/demo/summary.txt" ||
  fail "the summary does not say how launches went out"
simulated contextune run --region nvtx:decode --space demo.lua --report summary.txt -- \
  ./contextune_demo --rows 64 --steps 100 >/dev/null
grep -q "of tuning (simulated); finished" "$root/opt/demo/summary.txt" ||
  { cat "$root/opt/demo/summary.txt"; fail "the region was not tuned"; }
simulated contextune logs >"$scratch/logs"
grep -q "region decode" "$scratch/logs" || { cat "$scratch/logs"; fail "contextune logs does not know the region"; }
simulated contextune doctor >"$scratch/doctor" || true
grep -i "simulated" "$scratch/doctor" || { cat "$scratch/doctor"; fail "contextune doctor does not see the driver"; }
# Without a driver the command says so, and the program runs all the same.
[ "$(inside contextune run --quiet -- echo passed 2>&1)" = passed ] || fail "a program does not run without a driver"

say "Manual page and completion"
inside env MANWIDTH=80 man contextune-run >"$scratch/page" || fail "man finds no page"
sed -n '1,4p' "$scratch/page"
inside man -w contextune >/dev/null || fail "man finds no page of contextune"
completed=$(inside bash --norc -c '. /usr/share/bash-completion/bash_completion
  _completion_loader contextune; COMP_LINE="contextune run --mode li" COMP_WORDS=(contextune run --mode li) COMP_CWORD=3
  _contextune contextune li --mode; echo "${COMPREPLY[*]}"' 2>/dev/null)
[ "$completed" = live ] || fail "bash completes 'contextune run --mode li' to '$completed'"
for file in /usr/share/zsh/vendor-completions/_contextune /usr/share/fish/vendor_completions.d/contextune.fish; do
  [ -s "$root$file" ] || fail "there is no $file"
done

say "Removing it"
rm -rf "$root/opt/simcuda" "$root/opt/demo"
inside dpkg -r contextune >"$scratch/dpkg.log" 2>&1 || { cat "$scratch/dpkg.log"; fail "dpkg -r"; }
grep -i warning "$scratch/dpkg.log" && fail "dpkg -r warns"
files_of_the_root >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail "the package has left something behind"
say "All is well"

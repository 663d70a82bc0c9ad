#!/usr/bin/env bash
# LIBSVM's and LIBLINEAR's own programs, against which tests/interchange compares, ffmpeg, which writes films,
# and valgrind, which counts the instructions of the hot loops (make floor). Without the programs those tests
# are skipped, so nothing here may fail: no apt, no root or no network just mean fewer tests.
set -uo pipefail
programs=(svm-train svm-predict svm-scale liblinear-train liblinear-predict ffmpeg valgrind)
packages=(libsvm-tools liblinear-tools ffmpeg valgrind)
missing() { for name in "${programs[@]}"; do command -v "$name" >/dev/null || return 0; done; return 1; }

if ! missing; then exit 0; fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "Not all of ${packages[*]} are installed; tests that need the others will be skipped." >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { timeout 300 apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null 2>&1; }
install || { timeout 300 apt-get update -qq >/dev/null 2>&1; install; } ||
  echo "Not all of ${packages[*]} can be installed here; tests that need the others will be skipped." >&2
exit 0

#!/bin/sh
# Make .venv if absent, install linadd with the extra `plot`, and LIBLINEAR where it can be built; take the tour in ./demo.
set -u
start=$(pwd)
EXTRA=plot; . "$(dirname "$0")/setup.sh"
# liblinear-official is built from source. Without a C++ compiler the tour goes on, and says so.
(cd "$start" && EXTRA=baseline && . "$(dirname "$0")/setup.sh") >/dev/null 2>&1
exec .venv/bin/python -m linadd demo --out demo "$@"

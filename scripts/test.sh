#!/bin/sh
# Make .venv if absent, install linadd with the extra `test`, run the suite. CI calls exactly this.
set -u
EXTRA=test; . "$(dirname "$0")/setup.sh"
exec .venv/bin/python -m pytest -m "not slow" --numprocesses 2 --dist worksteal "$@"

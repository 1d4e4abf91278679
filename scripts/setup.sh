# Sourced by test.sh and demo.sh: go to the checkout, make .venv if it is absent, install EXTRA if pyproject.toml changed.
# Nothing is left outside the checkout.
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
if [ ! -x .venv/bin/python ]; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "linadd needs Python 3.11 or newer; name one by PYTHON=..." >&2; exit 1; }
    "$python" -m venv .venv || exit 1
fi
stamp=".venv/installed-$EXTRA"
if ! cmp -s pyproject.toml "$stamp"; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --editable ".[$EXTRA]" || exit 1
    cp pyproject.toml "$stamp"
fi

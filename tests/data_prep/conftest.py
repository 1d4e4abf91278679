"""The data scripts import each other as siblings, as they do when run by `python data_prep/NAME.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "data_prep"))

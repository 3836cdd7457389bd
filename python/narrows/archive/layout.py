"""What an archive holds, and how much of it: the names of its files, and bounds on what is read.

archive.json                         format, version, entry of the index, and size and SHA-256 of each other file
experiment/NAME.toml                 the experiment, and the small files that it names
report.html                          the report
runs/<plan>/<seed>/manifest.json     as in a store
runs/<plan>/<seed>/<table>.parquet
"""

from __future__ import annotations

import re
from typing import Final

FORMAT: Final = 1
"""Of archives; raised when one that reads the former cannot read the next."""
CONTENTS: Final = "archive.json"
REPORT: Final = "report.html"
EXPERIMENT: Final = "experiment/"
RUNS: Final = "runs/"
RUN_FILE: Final = re.compile(
    r"runs/(?P<plan>[0-9a-f]{8,64}(-guest|-host)?)/(?P<seed>0|[1-9][0-9]{0,19})/"
    r"(?P<file>manifest\.json|(?P<table>[a-z]+)\.parquet)"
)

MAX_FILES: Final = 200_000
MAX_TEXT_BYTES: Final = 128 << 20
"""Of a manifest, the report, the contents or a file of the experiment."""
MAX_TABLE_BYTES: Final = 16 << 30
MAX_RATIO: Final = 100
"""Of all files to the archive: tables are stored as they are, and texts shrink to a tenth."""
MIN_ROOM_BYTES: Final = 16 << 20
"""That an archive may always hold, however small it is."""
CHUNK_BYTES: Final = 1 << 20

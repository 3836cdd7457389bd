"""Writes fuzz/seeds/TARGET: of what fuzzing found, the fewest inputs that reach all that was reached, the small ones of them.

`make fuzz-seeds` calls it after `make fuzz` has compiled the targets. Files with an extension are written by hand and stay.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
MAX_BYTES = 20_000
"""Of the seeds of a target: all of them are small beside the sources."""
MAX_EACH = 1_500
MAX_FILES = 48


def main(target: str) -> None:
    corpus, seeds = FOLDER / "corpus" / target, FOLDER / "seeds" / target
    program = next((FOLDER / "target").glob(f"*/release/{target}"), None)
    if program is None:
        sys.exit(f"{target} is not compiled: make fuzz TARGETS={target} SECONDS=10")
    seeds.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as found:
        command = [program.resolve(), "-set_cover_merge=1", f"-max_len={MAX_EACH}", found, seeds.resolve(), corpus.resolve()]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{target}: {done.stderr[-2000:]}")
        contents = {path.name: path.read_bytes() for path in Path(found).iterdir() if path.is_file()}
    own = {path for path in seeds.iterdir() if path.suffix}
    for path in set(seeds.iterdir()) - own:
        path.unlink()
    room = MAX_BYTES - sum(path.stat().st_size for path in own)
    written = {path.read_bytes() for path in own}
    # Of every length some: short ones try the refusals, long ones what is accepted.
    ordered = sorted(contents.items(), key=lambda item: (len(item[1]), item[0]))
    for name, content in ordered[:: max(1, -(-len(ordered) // MAX_FILES))]:
        if content and content not in written and len(content) <= room:
            (seeds / name[:16]).write_bytes(content)
            room -= len(content)
    print(f"{target}: {len(list(seeds.iterdir()))} files, {MAX_BYTES - room} bytes")


if __name__ == "__main__":
    main(sys.argv[1])

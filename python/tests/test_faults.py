"""The list of planted faults: each has one place in the sources, and a row with the tests that notice it."""

import re
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
FAULTS = tomllib.loads((CHECKOUT / "faults" / "faults.toml").read_text(encoding="utf-8"))["fault"]
PAGE = (CHECKOUT / "docs" / "explanation" / "planted-faults.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", FAULTS, ids=[fault["name"] for fault in FAULTS])
def test_a_fault_has_its_place(fault):
    text = (CHECKOUT / fault["file"]).read_text(encoding="utf-8")
    assert text.count(fault["find"]) == 1
    assert fault["replace"] != fault["find"]


def test_each_fault_is_noticed_by_tests_that_there_are():
    rows = {row[1]: row[2] for row in re.finditer(r"^\| `([a-z-]+)`: .* \| (.*) \|$", PAGE, re.MULTILINE)}
    assert list(rows) == [fault["name"] for fault in FAULTS]
    sources = "".join(path.read_text(encoding="utf-8") for path in (CHECKOUT / "crates").rglob("*.rs"))
    for name, tests in rows.items():
        named = re.findall(r"`([a-z0-9_]+)`", tests)
        assert named, name
        assert all(f"fn {test}(" in sources for test in named), (name, named)

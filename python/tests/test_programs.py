"""Programs of ranks: their measures, and every file and command of `docs/how-to/programs.md`."""

import re
import shlex
import sys
from dataclasses import replace

import polars as pl
import pytest
from conftest import CHECKOUT, flows, frames, ports, said_by

from narrows import native
from narrows.columns import tables
from narrows.errors import BadInput
from narrows.measures.named import NotEvaluable, value_by_seed
from narrows.measures.unfinished import late


def ranks(*rows):
    """Ranks of a case: seed, workload, start and end in ms, and how long each computed and waited."""
    columns = ("seed", "workload", "start_ns", "end_ns", "compute_ns", "wait_ns")
    table = pl.DataFrame(
        [
            (seed, workload, *(None if ms is None else round(ms * 1e6) for ms in times))
            for seed, workload, *times in rows
        ],
        schema={"seed": pl.UInt64, "workload": pl.String, **dict.fromkeys(columns[2:], pl.UInt64)},
        orient="row",
    )
    finished = pl.col("end_ns").is_not_null().alias("finished")
    return table.with_columns(pl.lit("a").alias("case"), finished)


WHOLE = ((1, "a", 1, 5, 3, 1), (1, "a", 1, 9, 4, 4), (1, "b", 0, 2, 2, 0), (2, "a", 1, 4, 3, 0))


def value(name, *rows):
    few = frames([flows((10, 1))], [ports(("b", "wan", 1, 0, 0.5))])
    return value_by_seed(replace(few, ranks=ranks(*rows)), name, ("a",))


def test_a_program_takes_until_its_last_rank_has_ended_and_the_longest_counts():
    assert value("execution_time", *WHOLE) == {1: 8.0, 2: 3.0}


def test_the_waiting_share_is_of_all_ranks_together():
    assert value("waiting_share", *WHOLE) == {1: 5 / 14, 2: 0.0}


def test_a_program_that_did_not_end_has_no_execution_time_and_is_told():
    rows = (*WHOLE, (3, "a", 1, None, 3, 2), (3, "a", 1, 2, 1, 0))
    with pytest.raises(NotEvaluable, match="a did not end before the end of the run"):
        value("execution_time", *rows)
    assert late(ranks(*rows)).endswith(": a of a (1 of 3 runs)")
    assert not late(ranks(*WHOLE))
    assert not late(pl.DataFrame(schema=tables()["ranks"].schema))


def test_without_programs_there_is_no_execution_time():
    with pytest.raises(NotEvaluable, match="no program runs with a"):
        value("execution_time")


def test_small_flows_beside_a_program_count_while_it_runs():
    # A flow each 8 us from 0 to 16 ms, whose time grows; the program runs from 1 to 9 ms, and sends small messages too.
    number = range(2000)
    own = flows(*((10, 1 + each / 1000) for each in number))
    start = pl.Series([8_000 * each for each in number], dtype=pl.UInt64)
    web, messages = own.with_columns(start_ns=start), own.with_columns(start_ns=start, workload=pl.lit("a"))
    few = replace(frames([web, messages], [ports(("b", "wan", 1, 0, 0.5))]), ranks=ranks(*WHOLE[:2]))
    # Of the 1001 flows from 125 to 1125 the 991st.
    assert value_by_seed(few, "fct_small_p99_during", ("a",)) == {1: pytest.approx(1 + (125 + 990) / 1000)}
    endless = replace(few, ranks=ranks(*WHOLE[:1], (1, "a", 1, None, 3, 2)))
    assert value_by_seed(endless, "fct_small_p99_during", ("a",)) == {1: pytest.approx(1 + (125 + 1856) / 1000)}
    short = replace(few, ranks=ranks((1, "a", 1, 8, 3, 2)))
    with pytest.raises(NotEvaluable, match="876 small flows in all"):
        value_by_seed(short, "fct_small_p99_during", ("a",))


def test_a_generator_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="unknown program `ring`"):
        native.program("ring", {})
    with pytest.raises(BadInput, match="`bytes` is missing"):
        native.program("all-to-all", {"ranks": "4"})
    assert native.program("all-to-all", {"ranks": "2", "bytes": "5B"}).startswith("num_ranks 2\n\nrank 0 {\n")


@pytest.mark.simulator
def test_the_how_to_works_as_it_stands(real, folder):
    text = (CHECKOUT / "docs" / "how-to" / "programs.md").read_text()
    found = re.findall(r"(?:`([\w.]+)`:\n\n)?```(\w+)\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("\n```") // 2
    said = []
    for name, language, block in found:
        if language == "sh":
            for line in block.splitlines():
                command, *arguments = shlex.split(line)
                assert command == ".venv/bin/narrows"
                said.append(said_by(real, *arguments))
            continue
        (folder / name).write_text(block)
        if language == "python":
            said.append(said_by(real, name, program=sys.executable))
    everything = "\n".join(said)
    for words in ("6 new, 0 reused", "execution_time", "wait_ns", "1 new, 0 reused"):
        assert words in everything
    assert "did not end" not in everything

"""Programs of ranks: their measures, and every file and command of `docs/how-to/programs.md`."""

import json
import re
import shlex
import sys
from dataclasses import replace

import polars as pl
import pytest
from conftest import CHECKOUT, NIGHTLY, flows, frames, ports, said_by, shorter

from narrows import native
from narrows.columns import tables
from narrows.errors import BadInput
from narrows.figures import programs, style
from narrows.measures.named import NotEvaluable, value_by_seed
from narrows.measures.unfinished import late
from narrows.report import programs as told


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


def test_ports_are_in_use_until_the_programs_end_where_these_alone_send():
    own = ports(("b", "wan", 1, 0, 0.02), ("c", "wan", 1, 0, 0.01)).with_columns(measured_ns=pl.lit(80_000_000))
    program = flows((10, 1)).with_columns(workload=pl.lit("a"))
    alone = replace(frames([program], [own]), ranks=ranks((1, "a", 1, 5, 3, 1), (1, "a", 2, 9, 4, 4)))
    assert value_by_seed(alone, "utilisation_wan_busiest", ("a",)) == {1: pytest.approx(0.2)}, "8 of 80 ms"
    assert value_by_seed(alone, "utilisation_wan", ("a",)) == {1: pytest.approx(0.15)}
    beside = replace(alone, flows=pl.concat([program, flows((10, 1))]))
    late = replace(alone, ranks=ranks((1, "a", 1, 5, 3, 1), (1, "a", 2, None, 4, 4)))
    # A flow without a size, which may have begun in the warm-up.
    bulk = replace(
        alone,
        long=pl.DataFrame(
            {"case": ["a"], "seed": [1], "workload": ["bulk"]},
            schema=dict(program.select("case", "seed", "workload").schema),
        ),
    )
    for other in (beside, late, bulk):
        assert value_by_seed(other, "utilisation_wan_busiest", ("a",)) == {1: 0.02}


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


def of_many(cases, count, seeds=2):
    """Ranks of a program: the i-th computes for i ms, and waits for the seed's number of ms."""
    schema = {"end_ns": pl.UInt64, "compute_ns": pl.UInt64, "wait_ns": pl.UInt64, "rank": pl.UInt32}
    rows = pl.DataFrame(
        [
            {
                "workload": "ring", "controller": "cubic", "rank": rank, "node": f"h{rank}", "start_ns": 0,
                "end_ns": (rank + seed) * 1_000_000, "compute_ns": rank * 1_000_000, "wait_ns": seed * 1_000_000,
                "finished": True, "seed": seed,
            }
            for seed in range(1, seeds + 1)
            for rank in range(count)
        ],
        schema_overrides=schema,
    )  # fmt: skip
    return pl.concat([rows.with_columns(case=pl.lit(case), arm=pl.lit(case)) for case in cases])


def with_ranks(cases, table):
    few = [ports(("b", "wan", 1, 0, 0.5), case=case) for case in cases]
    return replace(frames([flows((10, 1))], few), ranks=table)


def test_a_chart_by_rank_has_a_bar_for_each_of_a_few_ranks():
    made = programs.bins(of_many(["a"], 3), 1e-6)
    assert made.select("ranks", "node", "from", "to", "compute", "wait", "total", "low", "high", "late").rows() == [
        ("0", "h0", -0.5, 0.5, 0.0, 1.5, 1.5, 1.0, 2.0, 0), ("1", "h1", 0.5, 1.5, 1.0, 1.5, 2.5, 2.0, 3.0, 0),
        ("2", "h2", 1.5, 2.5, 2.0, 1.5, 3.5, 3.0, 4.0, 0),
    ]  # fmt: skip


def test_a_chart_by_rank_of_thousands_is_as_large_as_one_of_64():
    table = of_many(["a"], 4096, seeds=1)
    made = programs.bins(table, 1e-6)
    assert len(made) == 64
    assert made.row(1, named=True) | {"range": ""} == {
        "case": "a", "from": 63.5, "to": 127.5, "ranks": "64 to 127", "node": "h64 to h127", "compute": 95.5,
        "wait": 1.0, "total": 96.5, "low": 65.0, "high": 128.0, "late": 0, "rank": 95.5, "range": "",
    }  # fmt: skip
    cases = [f"c{number}" for number in range(30)]
    many = with_ranks(cases, pl.concat([table.with_columns(case=pl.lit(case)) for case in cases]))
    few = with_ranks(cases, of_many(cases, 64, seeds=1))
    large, small = (len(json.dumps(style.finished(programs.by_rank(each)))) for each in (many, few))
    assert large < 1.5 * small < 1_000_000


def test_a_program_that_did_not_end_in_every_seed_has_no_time_in_the_report():
    table = of_many(["a", "b"], 3)
    last = (pl.col("case") == "b") & (pl.col("seed") == 2) & (pl.col("rank") == 2)
    late_one = table.with_columns(
        end_ns=pl.when(~last).then("end_ns"), finished=~last
    )  # fmt: skip
    ended, not_ended = told.table(with_ranks(["a", "b"], late_one))
    assert (ended.cells[0].text, ended.cells[0].interval) == ("3.50", "3.00 – 4.00")
    assert (not_ended.cells[0].text, not_ended.cells[0].interval) == ("did not end", "in 1 of 2 runs")
    assert not_ended.cells[2:] == ended.cells[2:]
    drawn = json.dumps(programs.execution(with_ranks(["a", "b"], late_one)).to_dict())
    assert "did not end" in drawn
    assert programs.bins(late_one.filter(pl.col("case") == "b"), 1e-6)["late"].to_list() == [0, 0, 1]


def test_a_generator_that_is_not_there_is_refused():
    with pytest.raises(BadInput, match="unknown program `ring`"):
        native.program("ring", {})
    with pytest.raises(BadInput, match="`bytes` is missing"):
        native.program("all-to-all", {"ranks": "4"})
    assert native.program("all-to-all", {"ranks": "2", "bytes": "5B"}).startswith("num_ranks 2\n\nrank 0 {\n")


@pytest.mark.simulator
@pytest.mark.page
def test_the_how_to_works_as_it_stands(real, folder):
    page = (CHECKOUT / "docs" / "how-to" / "programs.md").read_text()
    text = shorter(page, ('seeds = "1..3"', 'seeds = "1..1"'))
    found = re.findall(r"(?:`([\w.-]+)`:\n\n)?```(\w+)\n(.*?)```", text, re.DOTALL)
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
    for words in (f"{6 if NIGHTLY else 2} new, 0 reused", "execution_time", "wait_ns", "1 new, 0 reused"):
        assert words in everything
    assert "did not end" not in everything

"""What a page says of pauses and of programs of communication."""

import polars as pl
import pytest
from conftest import Driven
from report_pages import PROGRAMS, cells, charts, valid

from narrows import api
from narrows.report import page
from narrows.runs.store import Store

PAUSED = ("pauses", "output", "loses")
"""Its schemes in which ports are paused."""


@pytest.fixture(scope="module")
def lossless(tmp_path_factory):
    """Results of a program with and without flow control, and their page."""
    base = tmp_path_factory.mktemp("lossless")
    (base / "lossless.toml").write_text(PROGRAMS)
    results = api.run(base / "lossless.toml", out=base / "runs").join()
    return results, page.build(results, Store(base / "runs"))


def three_digits(text):
    """A number of the page, and how far it may be from what it rounds."""
    value = float(text.replace("\u202f", ""))
    return pytest.approx(value, rel=0.006)


def test_pauses_are_told_by_kind_of_port_as_the_table_of_ports_has_them(lossless):
    results, path = lossless
    rows = {(row[0][0], row[1][0]): row[2:] for row in cells(path, "pauses") if len(row) == 7}
    assert rows.pop(("scheme", "ports")) == [
        ("With flow control", "ever paused"), ("Paused", "% of the time"), ("Most paused port", "% of the time"),
        ("Longest pause", "µs"), ("Pause frames", "per run"),
    ]  # fmt: skip
    # Where a port pauses whatever fills it, the WAN may be paused, too.
    assert set(rows) == {(case, kind) for case in PAUSED for kind in ("hosts", "fabric")} | {("output", "WAN")}
    for (case, kind), (count, share, most, longest, sent) in rows.items():
        role, other = {"hosts": ("host", "edge"), "fabric": ("fabric", "fabric"), "WAN": ("wan", "wan")}[kind]
        ports = results.ports.filter((pl.col("case") == case) & (pl.col("role") == role)).to_dicts()
        own = {name: [port for port in ports if port["name"] == name] for name in {port["name"] for port in ports}}
        paused = {name: sum(port["paused_ns"] for port in seeds) for name, seeds in own.items()}
        measured = ports[0]["measured_ns"]
        assert count == (str(len(own)), str(sum(time > 0 for time in paused.values())))
        assert 100 * sum(paused.values()) / (measured * len(ports)) == three_digits(share[0])
        assert 100 * max(paused.values()) / (2 * measured) == three_digits(most[0])
        if max(paused.values()) == 0:
            # Counted at the output only full switches pause, and what they pause is hosts.
            assert (case, kind) in {("output", "fabric"), ("output", "WAN")}
            assert (share[0], most, longest, sent[0]) == ("0", ("0", ""), ("0", ""), "0")
            continue
        assert paused[most[1].replace(" → ", "->")] == max(paused.values())
        assert max(port["longest_pause_ns"] for port in ports) / 1000 == three_digits(longest[0])
        assert longest[1].replace(" → ", "->") in own
        frames = results.ports.filter((pl.col("case") == case) & (pl.col("role") == other))["pause_frames"].sum()
        assert frames / 2 == three_digits(sent[0])
        assert frames > 0


def test_the_most_paused_ports_have_names_and_shares(lossless):
    results, path = lossless
    heat = [row for row in cells(path, "pauses") if len(row) == 2 + len(PAUSED)]
    assert heat[0] == [("port",), ("kind",), *((case,) for case in PAUSED)]
    times = results.ports.filter(pl.col("case").is_in(PAUSED))
    order = times.group_by("name").agg(pl.col("paused_ns").sum()).filter(pl.col("paused_ns") > 0)
    named = order.sort(["paused_ns", "name"], descending=[True, False])["name"].to_list()
    assert [row[0][0].replace(" → ", "->") for row in heat[1:]] == named[:12]
    for (name,), _, *shares in heat[1:]:
        for case, (text,) in zip(PAUSED, shares, strict=True):
            if "border-a → border-b" in name or "border-b → border-a" in name:
                assert (text == "–") == (case != "output")
                continue
            own = times.filter((pl.col("case") == case) & (pl.col("name") == name.replace(" → ", "->")))
            assert 100 * own["paused_ns"].sum() / own["measured_ns"].sum() == three_digits(text)
    assert len(named) <= 12 or f"of {len(named)} that were paused" in path.read_text()


def test_who_was_never_paused_is_told_in_a_line_and_drops_of_switches_that_pause_by_port(lossless):
    results, path = lossless
    rows = cells(path, "pauses")
    quiet = results.ports.filter((pl.col("case") == "quiet") & pl.col("role").is_in(["host", "fabric"]))
    assert [row for row in rows if len(row) == 2] == [[("quiet",), (f"none of {len(quiet) // 2} ports was paused",)]]
    # The WAN's ports drop of themselves: they have a limit, and pause nobody.
    assert results.ports.filter((pl.col("case") == "output") & (pl.col("role") == "wan"))["dropped_packets"].sum() > 0
    drops = [row for row in rows if len(row) == 3 and row[0][0] != "scheme"]
    assert [row[0] for row in drops] == [("output",), ("loses",)]
    for (case,), dropped, where in drops:
        inside = results.ports.filter((pl.col("case") == case) & pl.col("role").is_in(["edge", "fabric"]))
        assert dropped == (str(inside["dropped_packets"].sum()),)
        by_port = inside.group_by("name").agg(pl.col("dropped_packets").sum())
        first, packets = by_port.sort(["dropped_packets", "name"], descending=[True, False]).row(0)
        assert where[0].startswith(f"{first.replace('->', ' → ')} (port's limit {packets})")
        assert packets > 0


def test_a_page_without_pauses_says_so_and_one_without_flow_control_says_nothing(lossless, without_charts):
    results, _ = lossless
    text = page.render(results.matching("quiet"), [])
    assert "<b>No port was paused</b>, with any of 1 scheme with flow control." in text
    assert '<p class="note">Nothing. Ports that' in text
    assert "ever paused" not in text
    text = page.render(results.matching("plain"), [])
    assert 'id="pauses"' not in text
    assert 'href="#pauses"' not in text


def test_the_table_of_programs_has_what_the_table_of_ranks_has(lossless):
    results, path = lossless
    rows = cells(path, "programs")
    assert [cell[0] for cell in rows[0]] == [
        "scheme", "program", "controller", "Ranks", "Execution time", "First rank ended after", "Computing", "Waiting",
        "Waiting",
    ]  # fmt: skip
    assert [row[0][0] for row in rows[1:]] == ["plain", "pauses", "output", "quiet", "loses"]
    for (case,), program, controller, count, *numbers in rows[1:]:
        assert (program, controller, count) == (("ring",), ("cubic",), ("16",))
        seeds = [results.ranks.filter((pl.col("case") == case) & (pl.col("seed") == seed)) for seed in (1, 2)]
        times = [
            [(rank["end_ns"] - rank["start_ns"], rank["compute_ns"], rank["wait_ns"]) for rank in seed.to_dicts()]
            for seed in seeds
        ]
        measured = [
            [max(lasted for lasted, _, _ in ranks) / 1e6 for ranks in times],
            [min(lasted for lasted, _, _ in ranks) / 1e6 for ranks in times],
            [sum(computed for _, computed, _ in ranks) / 16e6 for ranks in times],
            [sum(waited for _, _, waited in ranks) / 16e6 for ranks in times],
            [100 * sum(rank[2] for rank in ranks) / sum(rank[0] for rank in ranks) for ranks in times],
        ]
        for (text, interval), values in zip(numbers, measured, strict=True):
            assert sum(values) / 2 == three_digits(text)
            low, high = interval.split(" – ")
            assert (min(values), max(values)) == (three_digits(low), three_digits(high))


def test_charts_of_pauses_and_programs_are_ones_by_the_schema_of_vega_lite(lossless):
    assert valid(charts(lossless[1])) >= 2


def test_programs_are_drawn_rank_by_rank(browser, lossless):
    results, path = lossless
    driven = Driven(browser, path)
    assert not [text for text in driven.complaints if "WARN" not in text]
    titles = driven.page.locator("#chart-programs svg .role-title-text").all_text_contents()
    assert titles == ["Execution time of ring", "Computing, mean of ranks", "Waiting, mean of ranks"]
    marks = driven.page.locator("#chart-ranks svg .mark-rect path")
    assert marks.count() == 2 * 16 * len(results.frames.cases)
    heights = [box["height"] for box in (marks.nth(place).bounding_box() for place in range(32))]
    computed, waited = heights[:16], heights[16:]
    ranks = results.ranks.filter(pl.col("case") == "plain").group_by("rank").agg(pl.col("compute_ns", "wait_ns").mean())
    ranks = ranks.sort("rank")
    scale = sum(computed + waited) / (ranks["compute_ns"].sum() + ranks["wait_ns"].sum())
    for column, drawn in (("compute_ns", computed), ("wait_ns", waited)):
        assert drawn == pytest.approx([scale * value for value in ranks[column]], abs=1.0)
    driven.page.close()


def test_flow_control_is_told_with_its_thresholds_and_whose_it_is(lossless):
    rows = {row[0][0]: [" ".join(cell) for cell in row[1:]] for row in cells(lossless[1], "network")}
    fabric = dict(zip(rows["one-way"], rows["links of the fabric"], strict=True))
    assert "pfc, xoff 40KB, xon 30KB, of each input pauses" in fabric["flow control"]
    assert "pfc, xoff 59KB, xon 30KB, may lose, of each output output" in fabric["flow control"]
    assert "60KB for each link at the switch that it leads to" in fabric["buffer"]

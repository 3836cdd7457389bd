"""How often flows change their path: a measure over flows with a size and without."""

import polars as pl
import pytest

from narrows import api
from narrows.measures.registry import NotEvaluable, value_by_seed

pytestmark = pytest.mark.simulator

EQUAL_PATHS = """
[topology.leaf-spine]
leaves = 2
spines = 4
hosts-per-leaf = 4
edge = { rate = "10Gbps", delay = "1us" }
fabric = { delay = "1us", aqm = { threshold = { mark-at = "65pkt" } } }
[[traffic]]
name = "long"
long = {}
from = "l1-*"
to = "l2-*"
[[traffic]]
name = "sized"
from = "l1-*"
to = "l2-*"
arrivals = { poisson = { load = 0.5, of = "edge" } }
size = { fixed = "500KB" }
[[arm]]
name = "hashing"
cc = "dctcp"
[[arm]]
name = "rehashing"
cc = "dctcp"
set = { routing = { rehash = { threshold = 0.02, rounds = 3 } } }
[run]
end = "60ms"
warmup = "5ms"
seeds = "1..=2"
"""


def test_changes_of_path_are_a_mean_over_flows_with_a_size_and_without(tmp_path):
    (tmp_path / "equal.toml").write_text(EQUAL_PATHS)
    results = api.run(tmp_path / "equal.toml", out=tmp_path / "runs").join()
    member = next(member for member in results.entry.members if member.arm == "rehashing")
    found = value_by_seed(results.frames, "path_changes", ("rehashing",))
    for seed in (1, 2):
        stored = results.table_of(member, seed, "flows").collect()
        late = stored.filter((pl.col("workload") == "long") | (pl.col("start_ns") >= 5_000_000))
        changes = late.group_by("workload").agg(pl.col("path_changes").sum(), pl.len()).sort("workload")
        assert (changes["path_changes"] > 0).all(), "both kinds of flows changed their path"
        assert found[seed] == pytest.approx(changes["path_changes"].sum() / changes["len"].sum())
    with pytest.raises(NotEvaluable, match=r'routing = "rehash"'):
        value_by_seed(results.frames, "path_changes", ("hashing",))

"""What plans amount to, in the few words of captions."""

from types import SimpleNamespace

from narrows.experiment import outline


def kind(name, *, size=None, rate=None, flows=1, counted=None):
    sizes = {"sizes": None, "mean_size_bytes": size}
    return {"name": name, **sizes, "flows_per_second": rate, "flows": flows, "counted": counted}


def plan(*traffic, load=0.0):
    roles = [{"role": "wan", "mean_load": load, "max_load": load}]
    return {"hosts": 2, "switches": 1, "links": 4, "traffic": traffic, "roles": roles, "functions": [], "events": []}


def said(*plans):
    return dict(outline.joined(outline.setting(plans)))


def test_kinds_that_are_alike_share_a_line_and_many_are_told_by_the_first_and_last():
    many = plan(*(kind(f"query/h-{host}", size=2000.0, flows=10) for host in range(1, 46)))
    assert said(many)["traffic"] == "query/h-1 … query/h-45: mean 2.00 KB, 10 flows each"
    few = plan(*(kind(f"group-{group}", flows=10) for group in range(1, 4)))
    assert said(few)["traffic"] == "group-1, group-2, group-3: until stopped, 10 flows each"


def test_what_is_swept_is_a_range_on_one_line():
    plans = [plan(kind("query", size=1e6 / servers, flows=50 * servers)) for servers in (1, 20, 40)]
    assert said(*plans)["traffic"] == "query: mean 25.0 KB to 1.00 MB, 50 to 2\u202f000 flows"
    assert said(*(plan(kind("bulk", flows=flows)) for flows in (0, 66)))["traffic"] == (
        "bulk: until stopped, 0 or 66 flows"
    )


def test_a_load_that_nobody_set_is_told_by_what_decides_it():
    query, long = kind("query", size=2000.0), kind("long")
    assert said(plan(query))["offered load"] == "as much as flows of a given size need"
    assert said(plan(long))["offered load"] == "as much as flows without an end get"
    assert (
        said(plan(query, long))["offered load"] == "as much as flows without an end get and flows of a given size need"
    )
    assert said(plan(kind("web", size=2000.0, rate=9.0), load=0.9))["offered load"] == "wan 90 %"


def test_runs_of_requests_alone_end_with_the_last():
    query, ends = kind("query", size=2000.0), (600_000_000_000, 600_000_000_000)
    assert outline.simulated_time([plan(query)] * 2, ends) == "10 min, idle once all flows are done"
    for other in (kind("long"), kind("web", size=2000.0, rate=9.0)):
        assert outline.simulated_time([plan(query), plan(query, other)], ends) == "10 min"


def test_flows_that_begin_in_the_warm_up_are_told_apart():
    web = kind("web", size=2000.0, rate=100.0, flows=1000.0, counted=900.0)
    assert said(plan(web))["traffic"] == "web: mean 2.00 KB, 100 flows/s, 1\u202f000 flows (900 after the warm-up)"
    assert said(plan({**web, "counted": 1000.0}))["traffic"].endswith("1\u202f000 flows")


def settled(**said):
    own = {"link": "a->b", "load": 0.9, "correlation_seconds": 8.34, "filled": 0.942, "spread": 0.326} | said
    return SimpleNamespace(summary={"settling": own}, end_ns=165_000_000_000, warmup_ns=16_500_000_000)


def test_the_time_in_which_work_settles_stands_beside_the_warm_up_and_the_time_that_counts():
    words = (
        "a->b settles last: the bytes of flows that are not finished there change over about 8.3 s. After the warm-up "
        "of 16.5 s they are at 94 % of their mean, and their mean over the 2 min 28 s that count varies by 33 % "
        "between runs"
    )
    assert outline.settling([settled()] * 2) == (("steady state", (words, words)),)
    ((_, (never,)),) = outline.settling([settled(load=1.1, correlation_seconds=None)])
    assert never == "none: a->b is offered 110 % of what it carries"
    assert outline.settling([SimpleNamespace(summary={"settling": None})]) == (("steady state", ("",)),)

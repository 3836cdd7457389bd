"""Experiments whose pages several tests look at, and what is read from a page."""

import html
import json
import re

import altair
from altair.utils import schemapi

SWEEP = """
name = "sweep"
title = "Six schemes, a sweep over two axes"
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps" }
wan = { rate = "100Mbps", delay = "2ms", limit = "300pkt" }
[[traffic]]
name = "bulk"
from = "a1-1"
to = "b1-1"
long = { flows = 2 }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.3, of = "wan" } }
size = { fixed = "20KB" }
[sample]
queues = "10ms"
goodput = "10ms"
[sweep]
"wan.limit" = ["300pkt", "200pkt", "100pkt"]
"run.warmup" = ["0s", "10ms"]
[run]
end = "300ms"
seeds = "1..=1"
""" + "".join(
    f'[[arm]]\nname = "a scheme with a name of many words, number {number}"\ncc = "{cc}"\n'
    f'set = {{ "wan.delay" = "{number}ms" }}\n'
    for number, cc in enumerate(("cubic", "bbr", "vegas", "dctcp", "newreno", "gemini"), 1)
)


PROGRAMS = """
title = "A program beside a queue"
[topology.two-datacenters]
servers = 4
fabric = { rate = "1Gbps", delay = "1us", limit = "60KB", buffering = "input" }
wan = { rate = "1Gbps", delay = "1ms", limit = "2000pkt" }
[[traffic]]
name = "ring"
program.generate.ring-all-reduce = { bytes = "320KB", ranks = 16, repeats = 3, compute = "9ms" }
program.sigma = 0.1
[[traffic]]
name = "into-one"
long = { flows = 6, stop = "100ms" }
from = "a2-*"
to = "a1-1"
[[arm]]
name = "plain"
cc = "cubic"
[[arm]]
name = "pauses"
cc = "cubic"
set = { "fabric.flow-control" = { pfc = { xoff = "40KB", xon = "30KB" } } }
[[arm]]
name = "output"
cc = "cubic"

[arm.set]
"fabric.buffering" = "output"
"fabric.limit" = "60KB"
"wan.limit" = "5pkt"
"wan.rate" = "300Mbps"
"fabric.flow-control" = { pfc = { xoff = "59KB", xon = "30KB", may-lose = true } }

[[arm]]
name = "quiet"
cc = "cubic"
set = { "fabric.limit" = "99MB", "fabric.flow-control" = { pfc = { xoff = "90MB", xon = "80MB" } } }
[[arm]]
name = "loses"
cc = "cubic"
set = { "fabric.flow-control" = { pfc = { xoff = "59KB", xon = "30KB", may-lose = true } } }
[run]
end = "1s"
warmup = "10ms"
seeds = "1..=2"
"""


MIXED = """
name = "mixed"
title = "Datagrams beside TCP, an outage, and a wire that loses"
[topology.two-datacenters]
servers = 2
fabric = { rate = "100Mbps" }
wan = { rate = "100Mbps", delay = "2ms", limit = "30pkt", loss = { bernoulli = { loss = 0.001 } } }
[[traffic]]
name = "web"
between = "datacenters"
arrivals = { poisson = { load = 0.4, of = "wan" } }
size = { fixed = "60KB" }
[[traffic]]
name = "bulk"
from = "a1-1"
to = "b1-1"
long = { flows = 1 }
[[traffic]]
name = "voice"
from = "a1-2"
to = "b1-2"
transport = { datagram = { rate = "70Mbps" } }
long = { flows = 1, start = "200ms", stop = "1500ms" }
[[traffic]]
name = "blocks"
from = "b2-1"
to = "a2-1"
transport = { datagram = { rate = "50Mbps" } }
arrivals = { poisson = { rate = "40/s" } }
size = { fixed = "30KB" }
[[event]]
name = "cut"
at = "1s"
link = "wan"
outage = "50ms"
[[arm]]
name = "cubic"
cc = "cubic"
[[arm]]
name = "dctcp"
cc = "dctcp"
set = { "wan.aqm" = { threshold = { mark-at = "20pkt" } } }
[run]
end = "2s"
seeds = "1..=2"
[sample]
goodput = "20ms"
queues = "10ms"
watch = ["border-a->border-b", "tor-a1->border-a", "tor-a2->border-a", "border-b->tor-b1"]
"""


def charts(path):
    """The specifications of a page's charts, by name."""
    found = re.findall(r'id="spec-([\w-]+)">(.*?)</script>', path.read_text(), re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def valid(specifications):
    """How many charts there are, each of which is one by the schema of Vega-Lite."""
    for specification in specifications.values():
        schemapi.validate_jsonschema(specification, altair.load_schema())
    return len(specifications)


def cells(path, section):
    """Rows of the tables in a section of the page, each cell as its text and the small text below it."""
    part = re.search(rf'<section id="{section}">.*?</section>', path.read_text(), re.DOTALL).group()
    made = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, re.DOTALL):
        parts = [re.split("<small>|<br>", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        made.append(
            [
                tuple(html.unescape(re.sub("<[^>]*>", "", text.replace("<div>", " "))).strip() for text in cell)
                for cell in parts
            ]
        )
    return made


def number(text):
    return float(text.replace("\u202f", ""))

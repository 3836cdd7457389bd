"""Where the slides on Annulus allow several set-ups: which they are, and which their text favours.

The favoured one was chosen after trials of one seed with an uplink of 40 Gbit/s, in which Annulus changed nothing: such
an uplink is no bottleneck at half load.
"""

from narrows.claims import Readings

_SETUPS = Readings(
    {
        "uplinks-10G": "16 hosts of 10 Gbit/s share an uplink of 10; requests of 64 KB inside, of 10 MB across",
        "uplinks-10G-1MB": "the same with requests of 1 MB across",
        "uplinks-10G-web-search": "the same with both kinds' sizes from the web-search workload",
        "uplinks-40G": "16 hosts of 10 Gbit/s share an uplink of 40; requests of 64 KB inside, of 10 MB across",
        "uplinks-40G-1MB": "the same with requests of 1 MB across",
    },
    why="the near-source loop is for bottlenecks that both kinds share near the sender, and flows across that outlast "
    "their own RTT; only with 16 hosts on an uplink of 10 Gbit/s is the uplink one at half load. Neither rates nor "
    "sizes are stated [Annulus]",
    together=True,
)

READINGS = {"setups": _SETUPS}

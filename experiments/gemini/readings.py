"""Where the GEMINI paper allows several set-ups, and which its text favours: the one that was run first."""

from narrows.claims import Readings

_DIRECTIONS = Readings(
    {
        "both-ways": "flows cross the WAN in both directions, each at 90 % of its rate",
        "one-way": "all data cross the WAN in one direction, acknowledgements in the other",
    },
    why="source and destination are chosen from one pool of addresses, and the WAN's utilisation is stated as one "
    "number [GEMINI §IV-D]; but clients in one datacenter and servers in the other, as the traffic generator has them, "
    "would also have every flow cross",
)

_FACTOR = Readings(
    {
        "product": "the reduction on marks, the product of α and F, is at most one half",
        "half": "F itself is at most one half",
    },
    why="F = 4K/(C·RTT + K) is stated without a limit, and h and F are balanced by it; a limit of the product is the "
    "least that keeps the reduction below the window [GEMINI §III-B]",
    schemes={"product": {}, "half": {"gemini": "gemini-half"}},
)

READINGS = dict.fromkeys(("fig04", "fig06", "fig13", "fig14", "table2"), _DIRECTIONS) | {"fig12": _FACTOR}

"""Where the text on "Short and Fat" allows several set-ups, and which it favours, decided before any run."""

from narrows.claims import Readings

_MEMORY = Readings(
    {
        "input": "a switch counts packets by the link that they came over",
        "output": "a switch counts packets by the port that they leave by",
    },
    why="the review gives a port 100 KB and does not say whose; flow control pauses a link, so the memory is taken to "
    "be that of what came over it; the shape of the queue of the hot port is judged at the output, where flow control "
    "watches that queue",
    axis="fabric.buffering",
    together=True,
)

READINGS = dict.fromkeys(("commercial", "commercial-udp", "congestion", "hotspot", "scientific", "shares"), _MEMORY)

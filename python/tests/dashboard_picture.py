"""The dashboard as Grafana would lay it out, from Prometheus' answers: `dashboard_picture.py RECORDED PICTURE`.

`RECORDED` is what `monitored.py RECORDED --long` writes; docs/how-to/monitoring.png is the picture.
"""

import json
import math
import re
import struct
import sys
import zlib
from pathlib import Path
from string import ascii_lowercase
from xml.sax.saxutils import escape

import vl_convert
from monitored import FILES

WIDTH, COLUMN, ROW, HEAD, GAP = 1_440, 60, 30, 84, 4
"""Pixels: the picture, a column and a row of Grafana's grid, what is above it, and half of what is between panels."""
COLOURS = ("#56a64b", "#f2a81d", "#3274d9", "#e02f44", "#8f3bb8", "#1aa3a3", "#ff780a", "#7c5a3c")
PAPER, PANEL, TEXT, PALE, GRID = "#eef0f2", "#ffffff", "#24292e", "#6a737d", "#e3e6e8"
MAX_LEGEND = 6
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"))
UNITS = {"bps": "b/s", "s": "s", "pps": "p/s", "cps": "c/s", "short": "", "bool_yes_no": ""}
LETTER = 5.8
"""How wide a letter of a legend is at most, on average."""


def written(value, unit):
    """A value as Grafana writes it."""
    if unit == "bool_yes_no":
        return {0: "No", 1: "Yes"}[value]
    if value == 0:
        return f"0 {UNITS[unit]}".strip()
    smallest = 1e-6 if unit == "s" else 1
    factor, prefix = next(one for one in PREFIXES if value >= one[0] * 0.999 or one[0] == smallest)
    return f"{value / factor:.3g} {prefix}{UNITS[unit]}".strip()


def ticks(top, unit):
    """Round values of the axis, from 0 to no less than the top."""
    if unit == "bool_yes_no":
        return [0, 1]
    if not top:
        return [0]
    power = 10 ** math.floor(math.log10(top / 4))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power * 4 >= top * 0.999)
    return [at * step for at in range(math.ceil(top / step * 0.999) + 1)]


def legend(target, metric):
    """What a series is called."""
    return " ".join(re.sub(r"\{\{(\w+)\}\}", lambda one: metric.get(one[1], ""), target["legendFormat"]).split())


def series(recorded, panel):
    """Name and points, in seconds since the beginning, of each series."""
    for target in panel["targets"]:
        for one in recorded["answers"][f"{panel['id']} {target['refId']}"]["data"]["result"]:
            points = [(time - recorded["began"], float(value)) for time, value in one["values"]]
            yield legend(target, one["metric"]), points


def text(x, y, words, size=13, colour=TEXT, more=""):
    """Words."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" font-family="Liberation Sans, Arial, '
        f'sans-serif" {more}>{escape(words)}</text>'
    )


def line(points, longest, x_of, y_of, colour):
    """A path, which ends where the next point is later than the longest step."""
    path, before = [], -math.inf
    for time, value in points:
        if not math.isfinite(value):
            continue
        path.append(f"{'M' if time - before > longest else 'L'}{x_of(time):.1f} {y_of(value):.1f}")
        before = time
    return f'<path d="{" ".join(path)}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'


def letters(recorded):
    """What happens: its letter, and when."""
    return [
        (letter, phase, when - recorded["began"])
        for letter, (phase, when) in zip(ascii_lowercase, recorded["phases"], strict=False)
    ]


def panel_of(recorded, panel):
    """A panel: title, unit, lines, legend."""
    place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
    left, top = place["x"] * COLUMN + GAP, HEAD + place["y"] * ROW + GAP
    wide, high = place["w"] * COLUMN - 2 * GAP, place["h"] * ROW - 2 * GAP
    yield f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" rx="3" fill="{PANEL}" stroke="{GRID}"/>'
    yield text(left + 10, top + 20, panel["title"], 14, more='font-weight="bold"')
    found = list(series(recorded, panel))
    told = [one for one in found if max(value for _, value in one[1]) > 0] or found
    told, silent = told[:MAX_LEGEND], len(found) - len(told[:MAX_LEGEND])
    half = (wide - 24) / 2
    columns = 2 if all(len(name) * LETTER + 24 < half for name, _ in told) else 1
    rows = math.ceil(len(told) / columns) + bool(silent)
    begin, end, up, down = left + 64, left + wide - 24, top + 46, top + high - 26 - 17 * rows
    length = recorded["ended"] - recorded["began"]
    axis = ticks(max((value for _, points in told for _, value in points if math.isfinite(value)), default=0), unit)

    def x_of(time):
        return begin + time / length * (end - begin)

    def y_of(value):
        return down - value / (1.04 * axis[-1] or 1) * (down - up)

    for value in axis:
        yield f'<path d="M{begin} {y_of(value):.1f}H{end}" stroke="{GRID}"/>'
        yield text(begin - 6, y_of(value) + 4, written(value, unit), 12, PALE, 'text-anchor="end"')
    for time in range(0, int(length) + 1, 60 if length > 100 else 10):
        yield text(x_of(time), down + 15, f"{time // 60}:{time % 60:02}", 12, PALE, 'text-anchor="middle"')
    for letter, _, time in letters(recorded):
        yield f'<path d="M{x_of(time):.1f} {up - 4}V{down}" stroke="#b4bbc2" stroke-dasharray="2 3"/>'
        yield text(x_of(time) + 1, up - 7, letter, 11, PALE, 'text-anchor="middle"')
    # What is told first lies on top.
    for at, (_, points) in reversed(list(enumerate(told))):
        yield line(points, 1.5 * recorded["scrape"], x_of, y_of, COLOURS[at])
    for at, (name, _) in enumerate(told):
        x, y = left + 12 + (at % columns) * half, down + 36 + 17 * (at // columns)
        yield f'<rect x="{x}" y="{y - 6}" width="14" height="3.5" fill="{COLOURS[at]}"/>'
        yield text(x + 20, y, name, 12, "#3c4349")
    if silent:
        what = "1 more series is 0 throughout" if silent == 1 else f"{silent} more series are 0 throughout"
        yield text(left + 12, down + 36 + 17 * (rows - 1), what, 12, PALE, 'font-style="italic"')


def draw(recorded, dashboard):
    """All of it, as SVG."""
    height = HEAD + ROW * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in dashboard["panels"]) + GAP
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}">'
    yield f'<rect width="{WIDTH}" height="{height}" fill="{PAPER}"/>'
    yield text(14, 30, dashboard["title"], 20, more='font-weight="bold"')
    chosen = f"instance: {' + '.join(recorded['instances'])}; minutes and seconds since the beginning; what happens:"
    yield text(110, 29, chosen, 13, PALE)
    phases = letters(recorded)
    for at, (letter, phase, _) in enumerate(phases):
        x, y = 16 + at % 7 * 202, 52 + at // 7 * 20
        yield text(x, y, letter, 13, more='font-weight="bold"')
        yield text(x + 17, y, phase, 13, PALE)
    for panel in dashboard["panels"]:
        yield from panel_of(recorded, panel)
    yield "</svg>"


def smaller(png):
    """The same picture, its pixels packed as small as zlib can."""
    pieces, begin = {}, 8
    while begin < len(png):
        (length,), kind = struct.unpack(">I", png[begin : begin + 4]), png[begin + 4 : begin + 8]
        pieces[kind] = pieces.get(kind, b"") + png[begin + 8 : begin + 8 + length]
        begin += 12 + length
    pieces[b"IDAT"] = zlib.compress(zlib.decompress(pieces[b"IDAT"]), 9)
    return png[:8] + b"".join(
        struct.pack(">I", len(piece)) + kind + piece + struct.pack(">I", zlib.crc32(kind + piece))
        for kind, piece in pieces.items()
    )


def main():
    """Draws it."""
    recorded = json.loads(Path(sys.argv[1]).read_text())
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    png = vl_convert.svg_to_png("\n".join(draw(recorded, dashboard)), scale=1)
    Path(sys.argv[2]).write_bytes(smaller(png))


if __name__ == "__main__":
    main()

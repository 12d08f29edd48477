"""Small SVG plots, drawn by hand: bars for servers, lines for curves. Readable on light and dark pages."""
import math
from xml.sax.saxutils import escape

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-size: 14px; font-weight: 600 } .dim { fill: #57606a }
.axis { stroke: #8c959f; stroke-width: 1 } .grid { stroke: #8c959f; stroke-width: 1; opacity: .25 }
.ours { fill: #0969da } .theirs { fill: #8c959f }
.line { fill: none; stroke-width: 2 } .s0 { stroke: #0969da } .s1 { stroke: #bc4c00 } .d0 { fill: #0969da } .d1 { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .ours { fill: #4493f8 } .theirs { fill: #656c76 }
.s0 { stroke: #4493f8 } .s1 { stroke: #f0883e } .d0 { fill: #4493f8 } .d1 { fill: #f0883e } }
</style>"""


def short(value):
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return "%.3g%s" % (value / size, unit)
    return "%.3g" % value


def svg(width, height, parts):
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">' % (width, height, width, height)
    return "\n".join([head, STYLE] + parts + ["</svg>", ""])


def text(x, y, words, kind="", anchor="start"):
    return '<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>' % (x, y, kind, anchor, escape(words))


def bars(title, groups):
    """groups: [(name, [(server, value), ...]), ...]; each group has a scale of its own. The names of our own begin with "delayd"."""
    width, left, room = 640, 130, 430
    parts, y = [text(8, 20, title, "title")], 44
    for name, values in groups:
        values = [(server, value) for server, value in values if value is not None]
        top = max([value for _, value in values] + [1e-9])
        parts.append(text(8, y, name))
        y += 8
        for server, value in values:
            length = max(1.0, room * value / top)
            parts.append(text(left - 6, y + 12, server, "dim", "end"))
            parts.append('<rect x="%d" y="%d" width="%.1f" height="14" rx="2" class="%s"/>' %
                         (left, y + 1, length, "ours" if server.startswith("delayd") else "theirs"))
            parts.append(text(left + length + 6, y + 12, short(value)))
            y += 18
        y += 22
    return svg(width, y - 8, parts)


def lines(title, x_name, series):
    """series: [(name, [(x, y), ...]), ...], x on a logarithmic scale, y from zero; each line has a scale of its own."""
    width, height, left, right, top, bottom = 640, 300, 60, 60, 56, 250
    points = [x for _, line in series for x, _ in line]
    low, high = math.log(min(points)), math.log(max(points))

    def at_x(x):
        return left + (width - left - right) * ((math.log(x) - low) / (high - low) if high > low else 0.5)

    parts = [text(8, 20, title, "title")]
    parts.append('<line x1="%d" y1="%d" x2="%d" y2="%d" class="axis"/>' % (left, bottom, width - right, bottom))
    for x in sorted(set(points)):
        parts.append(text(at_x(x), bottom + 18, short(x), "dim", "middle"))
    parts.append(text((left + width - right) / 2, bottom + 38, x_name, "dim", "middle"))
    for number, (name, line) in enumerate(series):
        ceiling = max(y for _, y in line) * 1.1 or 1
        places = [(at_x(x), bottom - (bottom - top) * y / ceiling) for x, y in line]
        parts.append('<polyline class="line s%d" points="%s"/>' % (number, " ".join("%.1f,%.1f" % place for place in places)))
        parts += ['<circle cx="%.1f" cy="%.1f" r="3" class="d%d"/>' % (x, y, number) for x, y in places]
        parts += [text(x, y - 7 if number == 0 else y + 16, short(value), "", "middle") for (x, y), (_, value) in zip(places, line)]
        parts.append('<rect x="%d" y="32" width="12" height="4" class="d%d"/>' % (8 + 250 * number, number))
        parts.append(text(24 + 250 * number, 38, name, "dim"))
    return svg(width, height, parts)

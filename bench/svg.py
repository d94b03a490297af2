"""Small plots as SVG text: lines over two logarithmic axes, and bars over one.  No dependencies."""
import math
from html import escape

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f", "#bcbd22", "#e377c2")
FONT = 'font-family="sans-serif" font-size="12"'


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" {more}/>'


def document(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" {FONT}>'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def number(v):
    """0.01, 1, 500, 10k, 2M: short for an axis or a bar."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if v >= unit:
            return f"{v / (1e3 if name == 'k' else unit):.3g}{name}"
    return f"{v:.4g}" if v >= 100 else f"{v:.3g}"


def decades(values):
    """Powers of ten around positive values: (lowest exponent, highest exponent), at least one decade."""
    lo, hi = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return lo, max(hi, lo + 1)


def loglog(series, title, x_label, y_label, width=760, height=480):
    """series: {name: [(x, y)]} with all values above 0."""
    points = [p for s in series.values() for p in s]
    if not points:
        return document(width, 40, [text(width / 2, 25, f"{title}: nothing measured")])
    x0, y0, x1, y1 = 70, 40, width - 20, height - 60 - 18 * ((len(series) + 1) // 2)
    (xa, xb), (ya, yb) = decades([p[0] for p in points]), decades([p[1] for p in points])
    at = lambda x, y: (x0 + (x1 - x0) * (math.log10(x) - xa) / (xb - xa), y1 - (y1 - y0) * (math.log10(y) - ya) / (yb - ya))
    parts = [text(width / 2, 22, title, more='font-size="14" font-weight="bold"')]
    for e in range(xa, xb + 1):
        x = at(10.0**e, 10.0**ya)[0]
        parts += [line(x, y0, x, y1, "#ddd"), text(x, y1 + 16, number(10.0**e))]
    for e in range(ya, yb + 1):
        y = at(10.0**xa, 10.0**e)[1]
        parts += [line(x0, y, x1, y, "#ddd"), text(x0 - 6, y + 4, number(10.0**e), "end")]
    parts += [text((x0 + x1) / 2, y1 + 36, x_label),
              text(18, (y0 + y1) / 2, y_label, more=f'transform="rotate(-90 18 {(y0 + y1) / 2:.1f})"')]
    for k, (name, s) in enumerate(series.items()):
        colour, where = COLOURS[k % len(COLOURS)], [at(x, y) for x, y in sorted(s)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in where)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in where]
        lx, ly = x0 + (x1 - x0) / 2 * (k % 2), y1 + 58 + 18 * (k // 2)
        parts += [line(lx, ly - 4, lx + 20, ly - 4, colour, 'stroke-width="3"'), text(lx + 26, ly, name, "start")]
    return document(width, height, parts)


def bars(values, title, unit, width=760, groups=()):
    """values: [(name, number above 0, group)], drawn from the left over a logarithmic axis; a colour per group, of `groups` first,
    so that charts beside each other agree."""
    if not values:
        return document(width, 40, [text(width / 2, 25, f"{title}: nothing measured")])
    x0, x1, row = 250, width - 90, 18
    lo, hi = decades([v for _, v, _ in values])
    groups = [*groups, *sorted({g for _, _, g in values} - set(groups))]
    height = 60 + row * len(values)
    at = lambda v: x0 + (x1 - x0) * (math.log10(v) - lo) / (hi - lo)
    parts = [text(width / 2, 22, title, more='font-size="14" font-weight="bold"')]
    for e in range(lo, hi + 1):
        parts += [line(at(10.0**e), 34, at(10.0**e), height - 22, "#ddd"), text(at(10.0**e), height - 8, number(10.0**e))]
    for k, (name, v, group) in enumerate(values):
        y, colour = 38 + row * k, COLOURS[groups.index(group) % len(COLOURS)]
        parts += [f'<rect x="{x0}" y="{y}" width="{max(at(v) - x0, 1):.1f}" height="{row - 4}" fill="{colour}"/>',
                  text(x0 - 6, y + 11, name, "end"), text(at(v) + 5, y + 11, f"{number(v)} {unit}", "start")]
    return document(width, height, parts)

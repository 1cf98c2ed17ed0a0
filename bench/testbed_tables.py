"""Measured against predicted: the tables and the plot of network_testbed.py.

A cell has "mbit", "model", "overlap", "bucket_cap_mb", "ranks", and "measured" and "predicted" with
"step" and "exposed" in seconds; measured ones are a spread with "median", "min" and "max".
"""

import math
import statistics


def error(cell: dict, key: str) -> float:
    measured = cell["measured"][key]["median"]
    return (cell["predicted"][key] - measured) / measured


def progress(cell: dict) -> str:
    return (
        f"{cell['mbit']} Mbit/s, {cell['model']}, overlap {'on' if cell['overlap'] else 'off'}, "
        f"{cell['bucket_cap_mb']} MB, {cell['ranks']} ranks: step "
        f"{cell['measured']['step']['median'] * 1e3:.1f} ms measured, "
        f"{cell['predicted']['step'] * 1e3:.1f} predicted ({error(cell, 'step'):+.1%}); exposed "
        f"{cell['measured']['exposed']['median'] * 1e3:.1f}, "
        f"{cell['predicted']['exposed'] * 1e3:.1f} ({error(cell, 'exposed'):+.1%})"
    )


def print_tables(cells: list) -> None:
    print("| Mbit/s | cells | step: median error | worst | exposed communication: median error | worst |")
    print("| --- | --- | --- | --- | --- | --- |")
    for mbit in sorted({cell["mbit"] for cell in cells}) + [None]:
        chosen = [cell for cell in cells if mbit is None or cell["mbit"] == mbit]
        row = [str(mbit or "all"), str(len(chosen))]
        for key in ("step", "exposed"):
            errors = [abs(error(cell, key)) for cell in chosen if math.isfinite(error(cell, key))]
            row += [f"{statistics.median(errors):.1%}", f"{max(errors):.1%}"]
        print("| " + " | ".join(row) + " |")
    print()
    print("| Mbit/s | model | overlap | cap, MB | ranks | step, ms (min to max) | predicted | error | exposed, ms | predicted | error |")
    print("| --- " * 11 + "|")
    for cell in cells:
        step, exposed = cell["measured"]["step"], cell["measured"]["exposed"]
        print(
            f"| {cell['mbit']} | {cell['model']} | {'on' if cell['overlap'] else 'off'} "
            f"| {cell['bucket_cap_mb']} | {cell['ranks']} "
            f"| {step['median'] * 1e3:.1f} ({step['min'] * 1e3:.1f} to {step['max'] * 1e3:.1f}) "
            f"| {cell['predicted']['step'] * 1e3:.1f} | {error(cell, 'step'):+.1%} "
            f"| {exposed['median'] * 1e3:.1f} | {cell['predicted']['exposed'] * 1e3:.1f} "
            f"| {error(cell, 'exposed'):+.1%} |"
        )


_COLOURS = ["#1b6ca8", "#c8553d", "#3d8b57", "#7a5195", "#b8860b"]


def plot(cells: list) -> str:
    """Predicted over measured step time in an SVG, one mark a cell, one colour a bandwidth."""
    size, left, top = 420, 70, 20
    values = [v * 1e3 for c in cells for v in (c["predicted"]["step"], c["measured"]["step"]["median"])]
    low, high = math.log10(min(values) * 0.9), math.log10(max(values) * 1.1)

    def at(milliseconds: float) -> float:
        return (math.log10(milliseconds) - low) / (high - low) * size

    def point(x_ms: float, y_ms: float) -> str:
        return f"{left + at(x_ms):.1f},{top + size - at(y_ms):.1f}"

    ends = 10**low, 10**high
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + size + 150} {top + size + 60}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="#888"/>',
    ]
    for factor, dash in ((1, ""), (1.05, "4 3"), (1 / 1.05, "4 3")):
        clipped = [e / max(1, factor) for e in ends] if factor > 1 else [e / min(1, factor) for e in ends]
        start, end = (max(ends[0], clipped[0]), min(ends[1], clipped[1]))
        svg.append(
            f'<polyline points="{point(start, start * factor)} {point(end, end * factor)}" '
            f'stroke="#888" stroke-dasharray="{dash}" fill="none"/>'
        )
    for tick in (200, 500, 1000, 2000, 5000):
        if ends[0] < tick < ends[1]:
            x, y = left + at(tick), top + size - at(tick)
            svg.append(f'<text x="{x:.1f}" y="{top + size + 18}" text-anchor="middle">{tick}</text>')
            svg.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    for index, mbit in enumerate(sorted({cell["mbit"] for cell in cells})):
        colour = _COLOURS[index % len(_COLOURS)]
        for cell in (cell for cell in cells if cell["mbit"] == mbit):
            x, y = point(cell["measured"]["step"]["median"] * 1e3, cell["predicted"]["step"] * 1e3).split(",")
            svg.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}" fill-opacity="0.6"/>')
        y = top + 16 + 18 * index
        svg.append(f'<circle cx="{left + size + 16}" cy="{y - 4}" r="4" fill="{colour}"/>')
        svg.append(f'<text x="{left + size + 26}" y="{y}">{mbit} Mbit/s</text>')
    svg.append(f'<text x="{left + size / 2}" y="{top + size + 40}" text-anchor="middle">measured step, ms</text>')
    svg.append(
        f'<text transform="translate(16 {top + size / 2}) rotate(-90)" text-anchor="middle">predicted step, ms</text>'
    )
    svg.append(f'<text x="{left + size + 10}" y="{top + size}">dashed: +-5%</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"

#!/usr/bin/python3
"""How the simulator's cost grows with ranks, buckets and steps.

    cmake --build build --target simulator_speed
    bench/simulator_growth.py build/bin/simulator_speed --out docs/figures/simulator-growth.svg

One of the three is varied at a time, the others stay at 256 ranks, 14 buckets, 3 steps. Prints a
table in Markdown: the best of three runs, in seconds.
"""

import argparse
import math
import pathlib
import re
import subprocess

_BASE = {"ranks": 256, "buckets": 14, "steps": 3}
_VALUES = {
    "ranks": [16, 32, 64, 128, 256, 512, 1024, 2048],
    "buckets": [1, 2, 4, 8, 14, 25, 50, 100],
    "steps": [1, 2, 4, 8, 16, 32],
}
# Beyond these a single measurement takes minutes.
_MOST = {("message", "ranks"): 1024}
_COLOURS = {"analytic": "#2a9d4a", "flow": "#2660a4", "message": "#c43d2f"}
_REPEATS = 3
_TIMEOUT_S = 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator_speed", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="write the plot (SVG) to this file")
    arguments = parser.parse_args()

    curves = {}
    for axis, values in _VALUES.items():
        for fidelity in _COLOURS:
            most = _MOST.get((fidelity, axis), max(values))
            curves[axis, fidelity] = [
                (value, measure(arguments.simulator_speed, fidelity, {**_BASE, axis: value}))
                for value in values
                if value <= most
            ]
    print_tables(curves)
    if arguments.out:
        arguments.out.write_text(plot(curves))


def measure(program: pathlib.Path, fidelity: str, size: dict) -> float:
    command = [program, fidelity, *(str(size[axis]) for axis in ("ranks", "buckets", "steps"))]
    seconds = []
    for _ in range(_REPEATS):
        text = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S
        ).stdout
        seconds.append(float(re.search(r"([\d.]+) s,", text)[1]))
    return max(min(seconds), 0.001)  # the program prints milliseconds


def print_tables(curves: dict) -> None:
    for axis, values in _VALUES.items():
        print(f"| {axis} | " + " | ".join(str(value) for value in values) + " |")
        print("| --- |" + " --- |" * len(values))
        for fidelity in _COLOURS:
            found = dict(curves[axis, fidelity])
            cells = (f"{found[value]:.3f}" if value in found else "" for value in values)
            print(f"| {fidelity}, s | " + " | ".join(cells) + " |")
        print()


def plot(curves: dict) -> str:
    """Three panels side by side, both axes logarithmic (base 2 across, 10 up)."""
    width, height, left, top, gap = 230, 240, 60, 30, 60
    decades = range(-3, 3)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + 3 * (width + gap) + 40} '
        f'{top + height + 50}" font-family="sans-serif" font-size="11">'
    ]
    for panel, (axis, values) in enumerate(_VALUES.items()):
        x0 = left + panel * (width + gap)

        def across(value: float) -> float:
            return x0 + width * (math.log(value, 2) - math.log(values[0], 2)) / math.log(values[-1] / values[0], 2)

        def up(seconds: float) -> float:
            return top + height * (1 - (math.log(seconds, 10) - decades[0]) / (decades[-1] - decades[0]))

        svg.append(
            f'<rect x="{x0}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>'
        )
        for value in values:
            svg.append(
                f'<text x="{across(value):.1f}" y="{top + height + 15}" text-anchor="middle">{value}</text>'
            )
        for decade in decades:
            y = up(10.0**decade)
            svg.append(f'<path d="M{x0} {y:.1f}h{width}" stroke="#ddd"/>')
            svg.append(f'<text x="{x0 - 5}" y="{y + 4:.1f}" text-anchor="end">{10.0**decade:g} s</text>')
        svg.append(
            f'<text x="{x0 + width / 2}" y="{top + height + 35}" text-anchor="middle">{axis}</text>'
        )
        for index, (fidelity, colour) in enumerate(_COLOURS.items()):
            points = [(across(value), up(seconds)) for value, seconds in curves[axis, fidelity]]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            svg.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            svg += (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points)
            if panel == 0:
                svg.append(f'<text x="{x0 + 90 * index}" y="{top - 12}" fill="{colour}">{fidelity}</text>')
    return "\n".join(svg + ["</svg>"]) + "\n"


if __name__ == "__main__":
    main()

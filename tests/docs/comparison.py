"""Holds what a command printed against what its document shows.

Everything has to be equal to the letter, but for what the block's directive lets differ:

    times      measured durations ("92.5 ms"), the step_ms column of a real backend, and whether
               lines about late ranks appear at all
    computed   what depends on the processor's arithmetic: 32-digit hashes, and the last digits of numbers
               with four decimals (losses, norms). Equal hashes stay equal throughout a document
    numbers    every number
    /REGEX/    whatever matches

How long a simulation took on the wall clock ("simulated, in 2.1 s") may always differ.
"""
import difflib
import re

ELISION = "..."
WALL_CLOCK = re.compile(r"(?<=simulated, in )[\d.e+-]+ s")
DURATION = re.compile(r"(?<![\w.])[\d.]+(e[+-]?\d+)? (ns|us|ms|s|min)\b")
RANK = r"^(?:\[\d+\]:)?"  # what `gradsync launch` puts in front of a line
STEP_LINE = re.compile(RANK + r"(\s+\d+\s+\d+\s+\S+\s+\S+\s+)[\d.]+$")
OF_LATE_RANKS = re.compile(RANK + r"  (late ranks|late start|slow network) ")
HASH = re.compile(r"\b[0-9a-f]{32}\b")
FOUR_DECIMALS = re.compile(r"(?<![\w.])-?\d+\.\d{4}\b")
NUMBER = re.compile(r"(?<![A-Za-z_])[+-]?\d[\d.,]*(e[+-]?\d+)?")
PRESETS = {"times", "computed", "numbers"}

# Two processors' kernels round differently; a loss of another training differs by far more.
COMPUTED_TOLERANCE = 2e-3


class Rules:
    """What may differ in one block."""

    def __init__(self, names=()):
        self.patterns = []
        self.presets = set()
        for name in names:
            if name.startswith("/") and name.endswith("/") and len(name) > 2:
                self.patterns.append(re.compile(name[1:-1]))
            elif name in PRESETS:
                self.presets.add(name)
            else:
                raise ValueError(f"\"{name}\" is none of {', '.join(sorted(PRESETS))} and no /regex/")

    def drops(self, line):
        return "times" in self.presets and bool(OF_LATE_RANKS.match(line))

    def masked(self, line):
        """The line with a sign in place of what may differ; spaces that align columns count once."""
        for pattern in self.patterns:
            line = pattern.sub("~", line)
        line = WALL_CLOCK.sub("~", line)
        if "times" in self.presets:
            line = STEP_LINE.sub(r"\1~", DURATION.sub("~", line))
        if "computed" in self.presets:
            line = FOUR_DECIMALS.sub("~", HASH.sub("~", line))
        if "numbers" in self.presets:
            line = NUMBER.sub("~", line)
        return re.sub(r"\s+", " ", line) if "~" in line else line

    def same_values(self, expected, actual, hashes):
        """Whether the values behind two equal masks fit. `hashes` maps the document's to the run's."""
        if "computed" not in self.presets:
            return True
        for shown, found in zip(HASH.findall(expected), HASH.findall(actual)):
            if hashes.setdefault(shown, found) != found:
                return False
        if len(set(hashes.values())) != len(hashes):
            return False  # two that differ in the document are equal in the run
        return all(abs(float(shown) - float(found)) <= COMPUTED_TOLERANCE * max(1, abs(float(shown)))
                   for shown, found in zip(FOUR_DECIMALS.findall(expected), FOUR_DECIMALS.findall(actual)))


def segments_of(lines):
    """The lines between elisions; an elision at the start or the end leaves an empty segment there."""
    segments = [[]]
    for line in lines:
        if line.strip() == ELISION:
            segments.append([])
        else:
            segments[-1].append(line)
    return segments


def fits(segment, window, rules, hashes):
    """Whether the window has the segment's lines. `hashes` learns from it only if it does."""
    tried = dict(hashes)
    for shown, found in zip(segment, window):
        if rules.masked(shown) != rules.masked(found) or not rules.same_values(shown, found, tried):
            return False
    hashes.update(tried)
    return True


def equal(expected, actual, rules, hashes):
    expected = [line for line in expected if not rules.drops(line)]
    actual = [line for line in actual if not rules.drops(line)]
    segments = segments_of(expected)
    if len(segments) == 1:
        return len(expected) == len(actual) and fits(expected, actual, rules, hashes)
    first, *middle, last = segments
    if len(first) + len(last) > len(actual):
        return False
    if not fits(first, actual[:len(first)], rules, hashes):
        return False
    if last and not fits(last, actual[-len(last):], rules, hashes):
        return False
    at, end = len(first), len(actual) - len(last)
    for segment in middle:
        while at + len(segment) <= end and not fits(segment, actual[at:], rules, hashes):
            at += 1
        if at + len(segment) > end:
            return False
        at += len(segment)
    return True


def best_window(segment, actual, begin, end):
    """Where in actual[begin:end] as many lines look like the segment's as anywhere."""
    def likeness(at):
        return sum(difflib.SequenceMatcher(None, shown, found, autojunk=False).ratio()
                   for shown, found in zip(segment, actual[at:end]))
    return max(range(begin, max(begin, end - len(segment)) + 1), key=likeness)


def rewritten(expected, actual):
    """The actual output with the elisions of what was shown before."""
    segments = segments_of(expected)
    if len(segments) == 1:
        return list(actual)
    first, *middle, last = segments
    lines = actual[:len(first)]
    at, end = len(first), max(len(first), len(actual) - len(last))
    for segment in middle:
        at = best_window(segment, actual, at, end)
        lines += [ELISION, *actual[at:min(at + len(segment), end)]]
        at += len(segment)
    return lines + [ELISION, *actual[end:]]


def difference(expected, actual, rules):
    """A diff for people: what the document shows against what it would show now."""
    shown = [rules.masked(line) for line in expected]
    found = [rules.masked(line) for line in rewritten(expected, actual)]
    diff = list(difflib.unified_diff(shown, found, "the document", "the command", lineterm="", n=2))
    if not diff:  # the masks are equal, the values behind them are not
        return "\n".join(["hashes or losses do not fit:", *expected, "--- printed:",
                          *rewritten(expected, actual)])
    return "\n".join(diff)

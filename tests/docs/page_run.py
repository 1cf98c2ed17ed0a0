"""Runs one document's commands, from the first to the last, and holds the document to what they print."""
import concurrent.futures
import pathlib
import shutil
import tempfile
import time

import comparison
import workspace

# Needs that no test meets by itself. Any other need is a program, and met where it is installed.
BY_HAND = {"gpu", "job", "machines", "minutes", "root", "torch"}


def is_missing(need, also):
    return need not in also if need in BY_HAND else shutil.which(need) is None


class PageRun:
    def __init__(self, document, place, also=()):
        self.document = document
        self._place = place
        self._also = set(also)
        self.problems = []  # commands that failed
        self.differences = []  # commands that print something else
        self.seconds = []  # (how long, which command)
        self._replacements = []  # (lines of the document, new lines)

    def run(self):
        hashes = {}
        for command in self.document.commands:
            if any(is_missing(need, self._also) for need in command.needs):
                continue
            begin = time.monotonic()
            finished = self._place.run(command.text)
            self.seconds.append((time.monotonic() - begin, command.text))
            self._judge(command, finished, hashes)
        return self

    def _judge(self, command, finished, hashes):
        where = f"{self.document.path}:{command.line}: $ {command.text}"
        if finished.status != command.status:
            shown = "\n".join(finished.lines[-15:])
            self.problems.append(f"{where}\nended with status {finished.status}, not {command.status}:\n{shown}")
            return
        if command.output is None:
            return
        rules = comparison.Rules(command.rules)
        if comparison.equal(command.expected, finished.lines, rules, hashes):
            return
        self.differences.append(f"{where}\n{comparison.difference(command.expected, finished.lines, rules)}")
        self._replacements.append((command.output, comparison.rewritten(command.expected, finished.lines)))

    def update(self):
        """Puts what was printed into the document. Returns the number of outputs that changed."""
        lines = list(self.document.lines)
        for old, new in reversed(self._replacements):
            lines[old.start:old.stop] = new
        pathlib.Path(self.document.path).write_text("\n".join(lines) + "\n")
        return len(self._replacements)


def run_pages(documents, root, build, also, jobs):
    """One PageRun for each document, `jobs` at a time, each in a folder of its own."""
    shared = workspace.SharedRuns()
    with tempfile.TemporaryDirectory(prefix="gradsync-docs-") as folder:
        runs = [PageRun(document, workspace.Workspace(pathlib.Path(folder) / str(number), root, build, shared),
                        also)
                for number, document in enumerate(documents)]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(PageRun.run, runs))

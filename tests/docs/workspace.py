"""Runs a document's commands in a folder of its own, as a reader would in a clone that has been built.

The folder shows the repository's files and the build's programs under the paths that documents use; runs/ and
whatever else commands write is the folder's own. A run that several documents show ("gradsync run ...
--out DIR") happens once: the others are given its output and a link to its directory.
"""
import dataclasses
import os
import pathlib
import re
import shlex
import signal
import subprocess
import threading

TIMEOUT_S = 240
SHOWN = ("scenarios", "tests", "tools", "bench", "docs", "examples", "CMakePresets.json")
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclasses.dataclass
class Finished:
    lines: list[str]
    status: int


def shared_directory(text):
    """The directory of a run that other documents may use as well; None if the command is no such run."""
    if not re.match(r"gradsync (run|sweep|tune|ablate) ", text) or re.search(r"[|;&<>$`]", text):
        return None
    words = shlex.split(text)
    return words[words.index("--out") + 1] if "--out" in words[:-1] else None


class SharedRuns:
    """Who runs a shared command, and what came of it."""

    def __init__(self):
        self._lock = threading.Lock()
        self._locks = {}
        self._runs = {}

    def run(self, text, folder, directory, execute):
        with self._lock:
            own = self._locks.setdefault(text, threading.Lock())
        with own:
            if text not in self._runs:
                self._runs[text] = (execute(), folder / directory)
            finished, made = self._runs[text]
        if made != folder / directory and made.exists():
            (folder / directory).parent.mkdir(parents=True, exist_ok=True)
            (folder / directory).symlink_to(made)
        return finished


class Workspace:
    def __init__(self, folder, root, build, shared):
        self.folder = pathlib.Path(folder)
        self._shared = shared
        self.folder.mkdir(parents=True)
        for name in SHOWN:
            if (pathlib.Path(root) / name).exists():
                (self.folder / name).symlink_to(pathlib.Path(root) / name)
        (self.folder / "build").mkdir()
        (self.folder / "build" / "bin").symlink_to(pathlib.Path(build) / "bin")
        self._environment = {name: value for name, value in os.environ.items() if name not in OF_A_JOB}
        self._environment["PATH"] = f"{pathlib.Path(build) / 'bin'}:{os.environ['PATH']}"
        self._environment["LC_ALL"] = "C.UTF-8"
        self._status = 0  # of the command before, for "echo $?"

    def run(self, text):
        directory = shared_directory(text)
        if directory is None:
            finished = self._execute(text)
        else:
            finished = self._shared.run(text, self.folder, directory, lambda: self._execute(text))
        self._status = finished.status
        return finished

    def _execute(self, text):
        script = f"set -o pipefail; (exit {self._status})\n{text}"
        process = subprocess.Popen(["bash", "-c", script], cwd=self.folder, env=self._environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=TIMEOUT_S)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"(ended after {TIMEOUT_S} s)\n"
            status = -1
        lines = [line.rstrip() for line in output.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return Finished(lines, status)

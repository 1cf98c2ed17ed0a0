"""Command blocks of a Markdown document: what a reader would type, and what the page says it prints.

A fenced block marked `console` is a transcript: lines that begin with "$ " are commands ("> " continues
one), and the lines below a command are its output. A block marked `sh` lists commands without output.

    <!-- test: needs=root, torch -->          not run; only files and options are checked
    <!-- test: may differ=times, /\\d+ MB/ -->   see comparison.py
    <!-- test: table -->                       the table below is the last command's output

A directive stands on the line above the block or the table that it is about. Three rules hold inside a
transcript: "..." stands for any number of lines, a command without output is not compared, and a command
ends with status 0 unless its comment says "# exit status 4".
"""
import dataclasses
import pathlib
import re

DIRECTIVE = re.compile(r"<!-- test: (.*?) -->\s*$")
FENCE = re.compile(r"```(\w*)\s*$")
EXIT_STATUS = re.compile(r"\s+# exit status (\d+)\s*$")
LANGUAGES = {"console", "sh", "text", "json", "yaml", "python", "cpp", "cmake", "xml"}
KEYS = {"needs", "may differ", "table"}


class DocumentError(Exception):
    """A mistake in the form of a document; names file and line."""


@dataclasses.dataclass
class Command:
    text: str
    line: int  # of the command in the document, from 1
    status: int = 0
    # Lines of the document (from 0, end excluded) that hold the output; None if none is shown.
    output: range | None = None
    expected: list[str] = dataclasses.field(default_factory=list)
    rules: tuple[str, ...] = ()  # what may differ
    needs: tuple[str, ...] = ()


@dataclasses.dataclass
class Fence:
    language: str
    line: int  # of the opening fence, from 1
    lines: list[str]
    directive: dict[str, tuple[str, ...]]


@dataclasses.dataclass
class Document:
    path: pathlib.Path
    lines: list[str]
    fences: list[Fence]
    commands: list[Command]


def parse_directive(text, place):
    directive = {}
    for part in text.split(";"):
        key, _, values = part.strip().partition("=")
        if key not in KEYS:
            raise DocumentError(f"{place}: \"{key}\" is no directive; known are {', '.join(sorted(KEYS))}")
        directive[key] = tuple(value.strip() for value in values.split(",") if value.strip())
    return directive


def command_from(text, line, directive):
    status = EXIT_STATUS.search(text)
    return Command(text=EXIT_STATUS.sub("", text), line=line, status=int(status[1]) if status else 0,
                   rules=directive.get("may differ", ()), needs=directive.get("needs", ()))


def commands_of_transcript(fence, path):
    commands = []
    index = 0
    while index < len(fence.lines):
        if not fence.lines[index].startswith("$ "):
            raise DocumentError(f"{path}:{fence.line + 1 + index}: a transcript begins with \"$ \"")
        first = index
        text = fence.lines[index][2:]
        index += 1
        while index < len(fence.lines) and fence.lines[index].startswith("> "):
            text += "\n" + fence.lines[index][2:]
            index += 1
        command = command_from(text, fence.line + 1 + first, fence.directive)
        begin = index
        while index < len(fence.lines) and not fence.lines[index].startswith("$ "):
            index += 1
        end = index
        while end > begin and not fence.lines[end - 1]:
            end -= 1  # empty lines between one command's output and the next command
        if end > begin:
            command.output = range(fence.line + begin, fence.line + end)
            command.expected = fence.lines[begin:end]
        commands.append(command)
    return commands


def commands_of_script(fence):
    commands, text, first = [], "", 0
    for index, line in enumerate(fence.lines):
        if not text and (not line.strip() or line.startswith("#")):
            continue
        if not text:
            first = index
        text += line if not text else "\n" + line
        if not line.endswith("\\"):
            commands.append(command_from(text, fence.line + 1 + first, fence.directive))
            text = ""
    return commands


def attach_table(document, commands, begin):
    """The table that begins at line `begin` (from 0) is the output of the command above it."""
    end = begin
    while end < len(document.lines) and document.lines[end].startswith("|"):
        end += 1
    place = f"{document.path}:{begin + 1}"
    if end == begin:
        raise DocumentError(f"{place}: a table is expected below its directive")
    if not commands or commands[-1].output is not None:
        raise DocumentError(f"{place}: no command without output stands above this table")
    commands[-1].output = range(begin, end)
    commands[-1].expected = document.lines[begin:end]


def parse(path):
    document = Document(path, pathlib.Path(path).read_text().splitlines(), [], [])
    index, directive = 0, {}
    while index < len(document.lines):
        line = document.lines[index]
        if found := DIRECTIVE.match(line):
            directive = parse_directive(found[1], f"{path}:{index + 1}")
            if "table" in directive:
                index += 1
                while index < len(document.lines) and not document.lines[index].strip():
                    index += 1
                attach_table(document, document.commands, index)
                if "may differ" in directive:
                    document.commands[-1].rules = directive["may differ"]
                directive = {}
                continue
        elif opening := FENCE.match(line):
            begin = index + 1
            index = begin
            while index < len(document.lines) and document.lines[index] != "```":
                index += 1
            fence = Fence(opening[1], begin, document.lines[begin:index], directive)
            if fence.language not in LANGUAGES:
                raise DocumentError(f"{path}:{begin}: a block says what it holds, one of "
                                    f"{', '.join(sorted(LANGUAGES))}")
            document.fences.append(fence)
            if fence.language == "console":
                document.commands += commands_of_transcript(fence, path)
            elif fence.language == "sh":
                document.commands += commands_of_script(fence)
            directive = {}
        elif directive and line.strip():
            raise DocumentError(f"{path}:{index + 1}: a directive stands directly above a block or table")
        elif re.match(r"    (\./|sudo |gradsync |build/|bench/|tools/|cmake |ctest )", line):
            raise DocumentError(f"{path}:{index + 1}: commands stand in a block marked console or sh")
        index += 1
    return document

"""What can be said of a document without running anything: links, paths, options, JSON.

Of every command, those inside a line of text and those that are not run (they need root, a GPU, minutes)
included, this checks that the files that it names exist and that the programs know the options.
"""
import functools
import json
import pathlib
import re
import shlex
import subprocess

LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`]+)`")
TOP = r"(?:engine|testbed|backends|simulator|predict|tools|tests|bench|scenarios|docs|examples|cmake|\.ci|\.github)"
PATH = re.compile(rf"^(?:{TOP}|gradsync)/[\w./*-]*$")
# torch/ is PyTorch's tree.
FILE = re.compile(r"^(?!torch/)[\w.-]+(/[\w.-]+)*\.(hpp|cpp|cu|cuh|py|sh|cmake)$")
PLACEHOLDER = re.compile(r"NAME|LABEL|SCENARIO|\bN\b")
INLINE_COMMAND = re.compile(r"^(build/bin/)?gradsync [a-z]|^(\./)?(tools|bench|tests)/\S+\.(sh|py)\b")
OPTION = re.compile(r"^--?[A-Za-z]")


def anchors_of(path):
    """The anchors that GitHub gives a page's headings."""
    found = set()
    for line in path.read_text().splitlines():
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"[^\w\- ]", "", heading[1].replace("`", "").lower())
            found.add(text.replace(" ", "-"))
    return found


def outside_of_fences(document):
    inside = False
    for number, line in enumerate(document.lines, 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


class StaticChecks:
    def __init__(self, root, build):
        self.root = pathlib.Path(root)
        self.build = pathlib.Path(build)

    def problems(self, document):
        """"path:line: what is wrong", for all that is."""
        found = []
        page = pathlib.Path(document.path)

        def report(line, text):
            found.append(f"{page.relative_to(self.root)}:{line}: {text}")

        for number, line in outside_of_fences(document):
            for match in LINK.finditer(line):
                if problem := self.problem_of_link(page, match[1] or match[2]):
                    report(number, problem)
            for code in CODE.findall(line):
                if INLINE_COMMAND.match(code):
                    for problem in self.problems_of_command(code):
                        report(number, problem)
                elif (PATH.match(code) or FILE.match(code)) and not PLACEHOLDER.search(code) and not self.exists(code, page.parent):
                    report(number, f"{code} does not exist")
        for command in document.commands:
            for problem in self.problems_of_command(command.text):
                report(command.line, problem)
        for fence in document.fences:
            if fence.language == "json" and (problem := problem_of_json("\n".join(fence.lines))):
                report(fence.line, problem)
        return found

    def exists(self, name, folder=None):
        """Whether a file is there, by its path from the root, from the page's folder, or as a header is included."""
        places = [self.root, self.root / "include"] + ([folder] if folder else [])
        if "/" not in name:
            return name in self.names
        return any(any(place.glob(name)) for place in places)

    @functools.cached_property
    def names(self):
        """Of all files, without their folders."""
        return {path.name for top in self.root.iterdir() if not top.name.startswith((".", "build", "runs"))
                for path in [top, *top.rglob("*")]}

    def problem_of_link(self, page, target):
        if re.match(r"https?://|mailto:", target):
            return None
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists():
            return f"the link {target} leads nowhere"
        if anchor and linked.suffix == ".md" and anchor not in anchors_of(linked):
            return f"{linked.name} has no heading #{anchor}"
        return None

    def problems_of_command(self, text):
        """Of each program of a command line, what it does not know."""
        problems, words = [], []
        lexer = shlex.shlex(text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            for token in [*lexer, ";"]:
                if re.fullmatch(r"[|&;()<>]+", token):
                    problems += self.problems_of_words(words)
                    words = []
                else:
                    words.append(token)
        except ValueError as error:
            problems.append(f"{error} in: {text}")
        return problems

    def problems_of_words(self, words):
        while words and (words[0] in ("sudo", "time", "$", "export") or re.match(r"\w+=", words[0])):
            words = words[1:]
        if "--" in words and "gradsync" in words[0]:  # gradsync launch ... -- PROGRAM
            inner = words[words.index("--") + 1:]
            return self.problems_of_words(words[:words.index("--")]) + self.problems_of_words(inner)
        if not words:
            return []
        missing = [f"{word} does not exist" for word in words
                   if PATH.match(word.removeprefix("./")) and not PLACEHOLDER.search(word)
                   and not self.exists(word.removeprefix("./"))]
        return missing + self.unknown_options(words)

    def unknown_options(self, words):
        program = words[0].removeprefix("./").removeprefix("build/bin/")
        if program == "gradsync":
            subcommands = [word for word in words[1:3] if re.match(r"^[a-z]+$", word)]
            if not subcommands:
                return []
            known = self.help_of(("gradsync", *subcommands[:2 if subcommands[0] == "bench" else 1]))
            if known is None:
                return [f"gradsync has no subcommand {subcommands[0]}"]
        elif (self.root / program).is_file():
            known = (self.root / program).read_text()
        else:
            return []
        options = {word.partition("=")[0] for word in words[1:] if OPTION.match(word)} - {"--help"}
        return [f"{program} has no option {option}" for option in sorted(options)
                if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known)]

    @functools.lru_cache(maxsize=None)
    def help_of(self, words):
        finished = subprocess.run([self.build / "bin" / words[0], *words[1:], "--help"], text=True,
                                  capture_output=True, timeout=60, check=False)
        return finished.stdout if finished.returncode == 0 else None


def problem_of_json(text):
    """A block marked json is a JSON value, or members of an object."""
    for candidate in (text, "{" + text.rstrip().rstrip(",") + "}"):
        try:
            json.loads(candidate)
            return None
        except json.JSONDecodeError as error:
            problem = f"no JSON: {error}"
    return problem

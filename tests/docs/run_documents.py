#!/usr/bin/env python3
"""Runs the commands of README.md and docs/*.md, and holds the pages to what they print.

    run_documents.py BUILD                     all pages; BUILD has bin/gradsync
    run_documents.py BUILD docs/run.md         one page
    run_documents.py BUILD --update            writes what the commands print into the pages
    run_documents.py BUILD --also minutes      also runs blocks that need this (root, torch, ...)
    run_documents.py BUILD --only-static       checks links, paths and options, and runs nothing

markdown.py says how a page marks its commands, comparison.py what may differ. The exit status is 1 if a page is
not what its commands print, and 77 if this build has no backend to run them on.
"""
import argparse
import pathlib
import subprocess
import sys

import markdown
import page_run
import static_checks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
RUN = ["README.md", "docs/*.md"]
# These pages are checked, but their commands are not run.
ONLY_CHECKED = ["*.md", "*/README.md", "examples/*/README.md"]


def pages(patterns):
    return sorted({page for pattern in patterns for page in ROOT.glob(pattern)
                   if not page.relative_to(ROOT).parts[0].startswith("build")})


def missing_backends(build):
    listed = subprocess.run([build / "bin" / "gradsync", "backends"], text=True, capture_output=True,
                            check=True).stdout
    available = {line.split()[0] for line in listed.splitlines() if line.split()[1] == "yes"}
    return {"gloo", "sim"} - available


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="rewrite outputs that changed")
    parser.add_argument("--also", action="append", default=[], metavar="NEED", help="run blocks that need this")
    parser.add_argument("--only-static", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=2, help="pages at a time")
    parser.add_argument("--times", action="store_true", help="print the commands that take longest")
    return parser.parse_args()


def read_pages(chosen, build):
    """The documents, and what is wrong with them before anything runs."""
    checks = static_checks.StaticChecks(ROOT, build)
    documents, problems = [], []
    for page in chosen or pages(RUN + ONLY_CHECKED):
        try:
            documents.append(markdown.parse(page))
            problems += checks.problems(documents[-1])
        except markdown.DocumentError as error:
            problems.append(str(error))
    return documents, problems


def print_times(runs):
    longest = sorted((entry for run in runs for entry in run.seconds), reverse=True)
    for seconds, text in longest[:15]:
        print(f"{seconds:7.1f} s  {text}")


def main():
    options = read_options()
    build = options.build.resolve()
    chosen = [page.resolve() for page in options.pages]
    documents, problems = read_pages(chosen, build)
    if not options.only_static:
        if missing := missing_backends(build):
            print(f"SKIPPED: needs {' and '.join(sorted(missing))}")
            return SKIPPED
        to_run = [document for document in documents
                  if document.commands and document.path in (chosen or pages(RUN))]
        runs = page_run.run_pages(to_run, ROOT, build, options.also, options.jobs)
        for run in runs:
            problems += run.problems
            if options.update:
                print(f"{run.document.path.relative_to(ROOT)}: {run.update()} outputs rewritten")
            else:
                problems += run.differences
        if options.times:
            print_times(runs)
        print(f"{sum(len(run.seconds) for run in runs)} commands of {len(runs)} pages")
    print("\n\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

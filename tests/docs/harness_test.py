#!/usr/bin/env python3
"""Tests of the harness: pages that are wrong are found, pages that are right are left alone."""
import pathlib
import tempfile
import textwrap
import unittest

import comparison
import markdown
import page_run
import static_checks
import workspace

HASH_A, HASH_B, HASH_C = "a" * 32, "b" * 32, "c" * 32


class HarnessTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "root"
        (self.root / "build" / "bin").mkdir(parents=True)
        (self.root / "tools").mkdir()
        self.places = 0
        self.shared = workspace.SharedRuns()

    def page(self, text):
        path = self.root / "page.md"
        path.write_text(textwrap.dedent(text))
        return markdown.parse(path)

    def place(self):
        self.places += 1
        return workspace.Workspace(self.root.parent / f"place-{self.places}", self.root, self.root / "build",
                                   self.shared)

    def run_page(self, text, also=()):
        return page_run.PageRun(self.page(text), self.place(), also).run()

    def assert_right(self, text):
        run = self.run_page(text)
        self.assertEqual(run.problems + run.differences, [])

    def assert_differs(self, text):
        run = self.run_page(text)
        self.assertEqual((len(run.problems), len(run.differences)), (0, 1))

    def static_problems(self, text):
        return static_checks.StaticChecks(self.root, self.root / "build").problems(self.page(text))


class Transcripts(HarnessTest):
    def test_a_right_output_is_accepted_and_a_wrong_one_is_found(self):
        self.assert_right("""
            ```console
            $ printf 'one\\ntwo\\n'
            one
            two
            ```
            """)
        self.assert_differs("""
            ```console
            $ printf 'one\\ntwo\\n'
            one
            three
            ```
            """)

    def test_a_line_more_or_less_is_found(self):
        self.assert_differs("```console\n$ printf 'one\\ntwo\\n'\none\n```\n")
        self.assert_differs("```console\n$ echo one\none\ntwo\n```\n")

    def test_an_elision_stands_for_any_lines_but_what_surrounds_it_has_to_match(self):
        self.assert_right("```console\n$ seq 9\n1\n...\n5\n...\n9\n```\n")
        self.assert_differs("```console\n$ seq 9\n1\n...\n5\n...\n8\n```\n")
        self.assert_differs("```console\n$ seq 9\n1\n...\n7\n...\n5\n...\n9\n```\n")

    def test_a_status_other_than_the_one_that_is_written_is_found(self):
        self.assertEqual(len(self.run_page("```console\n$ false\n```\n").problems), 1)
        self.assert_right("```console\n$ (exit 4)    # exit status 4\n$ echo $?\n4\n```\n")
        self.assertEqual(len(self.run_page("```console\n$ true    # exit status 4\n```\n").problems), 1)

    def test_a_command_may_go_over_several_lines(self):
        self.assert_right("```console\n$ for i in 1 2; do\n>   echo $i\n> done\n1\n2\n```\n")

    def test_blocks_that_need_something_run_only_when_asked_to(self):
        page = "<!-- test: needs=minutes -->\n```sh\nfalse\n```\n"
        self.assertEqual(self.run_page(page).problems, [])
        self.assertEqual(len(self.run_page(page, also=["minutes"]).problems), 1)
        self.assertEqual(len(self.run_page("<!-- test: needs=bash -->\n```sh\nfalse\n```\n").problems), 1)

    def test_a_table_is_the_output_of_the_command_above(self):
        page = "```console\n$ printf '| a |\\n| %s |\\n' %s\n```\n\n<!-- test: table -->\n| a |\n| 1 |\n"
        self.assert_right(page % ("%s", 1))
        self.assert_differs(page % ("%s", 2))

    def test_update_writes_the_output_and_keeps_the_elisions(self):
        run = self.run_page("text\n\n```console\n$ seq 9\n1\n...\n8\n```\n\nmore\n")
        run.update()
        self.assertEqual(run.document.path.read_text(), "text\n\n```console\n$ seq 9\n1\n...\n9\n```\n\nmore\n")

    def test_a_mistake_in_the_form_of_a_page_is_named(self):
        for page in ("```\ntext\n```\n", "<!-- test: neds=root -->\n```sh\ntrue\n```\n", "```console\ntrue\n```\n",
                     "<!-- test: needs=root -->\n\ntext\n", "text\n\n    gradsync run x.json\n"):
            with self.assertRaises(markdown.DocumentError, msg=page):
                self.page(page)


class WhatMayDiffer(HarnessTest):
    def equal(self, names, expected, actual, hashes=None):
        return comparison.equal([expected], [actual], comparison.Rules(names), {} if hashes is None else hashes)

    def test_times(self):
        self.assertTrue(self.equal(["times"], "  step  180 ms (p50 157 ms)", "  step  9.5 s (p50 8.1 s)"))
        self.assertFalse(self.equal([], "  step  180 ms", "  step  181 ms"))
        self.assertFalse(self.equal(["times"], "180 ms of 15 steps", "180 ms of 16 steps"))
        self.assertTrue(self.equal(["times"], "[0]:  0  0  7.0761  0.4190  530.28", "[0]:  0  0  7.0761  0.4190   3.01"))
        self.assertTrue(comparison.equal(["  step  1 ms"], ["  step  2 ms", "  late ranks  cost 3% of a step"],
                                         comparison.Rules(["times"]), {}))

    def test_equal_hashes_stay_equal_and_different_ones_different(self):
        hashes = {}
        self.assertTrue(self.equal(["computed"], f"hash {HASH_A}", f"hash {HASH_C}", hashes))
        self.assertTrue(self.equal(["computed"], f"hash {HASH_A}", f"hash {HASH_C}", hashes))
        self.assertFalse(self.equal(["computed"], f"hash {HASH_A}", f"hash {HASH_B}", hashes))
        self.assertFalse(self.equal(["computed"], f"hash {HASH_B}", f"hash {HASH_C}", hashes))

    def test_losses_may_differ_in_the_last_digits(self):
        self.assertTrue(self.equal(["computed"], "loss 7.0816 -> 6.9933", "loss 7.0817 -> 6.9933"))
        self.assertFalse(self.equal(["computed"], "loss 7.0816 -> 6.9933", "loss 7.0816 -> 6.8933"))

    def test_a_regular_expression(self):
        self.assertTrue(self.equal(["/rank \\d/"], "waits for rank 2", "waits for rank 3"))
        self.assertFalse(self.equal(["/rank \\d/"], "waits for rank 2", "stands for rank 2"))

    def test_an_unknown_rule_is_refused(self):
        with self.assertRaises(ValueError):
            comparison.Rules(["time"])


class SharedRuns(HarnessTest):
    def test_a_run_that_two_pages_show_happens_once(self):
        command = self.root / "build" / "bin" / "gradsync"
        command.write_text(f"#!/bin/sh\nmkdir -p \"$3\"; touch \"$3/result\"; echo run >> {self.root}/count\necho done\n")
        command.chmod(0o755)
        page = "```console\n$ gradsync run --out runs/a\n%s\n$ ls runs/a\nresult\n```\n"
        self.assert_right(page % "done")
        self.assert_right(page % "done")
        self.assert_differs(page % "gone")
        self.assertEqual((self.root / "count").read_text(), "run\n")


class StaticChecks(HarnessTest):
    def test_links_paths_and_json(self):
        (self.root / "tools" / "there.sh").write_text("--known)\n")
        self.assertEqual(self.static_problems("# One\n\n[a](#one) [b](tools/there.sh) `tools/there.sh` `tools/NAME.sh`\n"), [])
        for wrong in ("[a](#two)\n", "[a](gone.md)\n", "`tools/gone.sh`\n", "```json\n{\"a\": }\n```\n"):
            self.assertEqual(len(self.static_problems(wrong)), 1, wrong)

    def test_options_of_commands_that_are_not_run(self):
        (self.root / "tools" / "there.sh").write_text("--known)\n")
        page = "<!-- test: needs=root -->\n```sh\nsudo tools/there.sh %s | cat\n```\n"
        self.assertEqual(self.static_problems(page % "--known 'a | b'"), [])
        self.assertEqual(len(self.static_problems(page % "--unknown")), 1)
        self.assertEqual(len(self.static_problems("Call `tools/there.sh --unknown` at once.\n")), 1)


if __name__ == "__main__":
    unittest.main()

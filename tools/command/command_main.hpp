#pragma once

namespace gradsync {

/// The `gradsync` command: parses the command line, runs one subcommand, and returns the exit
/// status (0 completed as expected, 1 an expectation was not met, 2 usage or invalid scenario, 3
/// backend not available, 4 hang, 5 desync, 6 failed). Throws nothing: an error is one message on
/// standard error.
///
/// A program with models and data sets of its own registers them
/// (gradsync/testbed/scenario/registry.hpp) and then calls this. Subcommands start processes that
/// run the same program with other arguments, so `main` must do so whatever its arguments are. Call
/// it once, on the main thread, before the program starts other threads.
int command_main(int argc, char** argv);

}  // namespace gradsync

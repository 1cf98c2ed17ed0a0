#pragma once

#include "gradsync/testbed/scenario/registry.hpp"

namespace gradsync {

/// The whole of the `gradsync` command, for the main of a program that brings models and data sets
/// of its own: its scenarios may name the kinds of `registry`, on every backend. Real backends
/// start their ranks by executing the program again with the arguments of the command's own
/// `worker`, so main must come here with the same registry whatever the arguments are, and must
/// start no threads before.
///
/// Returns the exit status; throws nothing. Errors are one message on standard error.
int command_main(int argc, char** argv, const Registry& registry = {});

}  // namespace gradsync

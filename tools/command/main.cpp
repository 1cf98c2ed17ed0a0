#include "gradsync/command/command_main.hpp"

/// Read by jemalloc when it starts: keep freed memory instead of returning it to the system. A run
/// of a thousand ranks frees and allocates the same memory in every step.
extern "C" const char* const malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";

int main(int argc, char** argv) {
  return gradsync::command_main(argc, argv);
}

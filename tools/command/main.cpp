#include "gradsync/command/command_main.hpp"

int main(int argc, char** argv) {
  return gradsync::command_main(argc, argv);
}

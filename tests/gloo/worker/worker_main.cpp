// A rank for the tests that need processes: it takes its place from the environment, all-reduces
// for some steps and meets with an accident where it is told to.
//
//     gloo_test_worker --steps N [--elements N] [--timeout S] [--pause S]
//                      [--rank R --at STEP --do kill|stop|exit|finish|throw|kill-soon]
//
// Prints "step K" lines, "done", or the error's code and text; ends with the error's exit status.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "gradsync/backends/gloo/gloo_process_group.hpp"
#include "gradsync/backends/store/rank_environment.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "gradsync/testbed/record/exit_status.hpp"

using namespace gradsync;

namespace {

struct Arguments {
  int steps = 1;
  std::int64_t elements = 16;
  double timeout = 60;
  double pause = 0;
  int rank = -1;
  int at = 0;
  std::string accident;
};

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--steps") a.steps = std::atoi(value);
    if (name == "--elements") a.elements = std::atoll(value);
    if (name == "--timeout") a.timeout = std::atof(value);
    if (name == "--pause") a.pause = std::atof(value);
    if (name == "--rank") a.rank = std::atoi(value);
    if (name == "--at") a.at = std::atoi(value);
    if (name == "--do") a.accident = value;
  }
  return a;
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

/// True if the rank is to stop taking part.
bool have_accident(const std::string& accident, GlooProcessGroup& group) {
  if (accident == "kill") ::kill(::getpid(), SIGKILL);
  if (accident == "stop") ::kill(::getpid(), SIGSTOP);
  if (accident == "exit") std::_Exit(0);
  if (accident == "throw") {
    group.abort(ErrorCode::kMisuse, "the test threw on purpose");
    throw Error(ErrorCode::kMisuse, "the test threw on purpose");
  }
  if (accident == "kill-soon") {
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100 + ::getpid() % 100));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }
  return accident == "finish";
}

void run(const Arguments& arguments) {
  const auto environment = resolve_rank_environment({});
  if (!environment) throw Error(ErrorCode::kUsage, "started without a launcher");
  say(fmt::format("rank {} of {} by {}", environment->rank, environment->world_size,
                  environment->source));
  const Seconds timeout(arguments.timeout);
  JobStore job = open_job_store(*environment, timeout);
  {
    WallClock clock(share_clock_origin(*job.store, environment->rank, timeout));
    GlooProcessGroup::Options options;
    options.timeout = timeout;
    GlooProcessGroup group(*environment, job, clock, options);
    for (int step = 0; step < arguments.steps; ++step) {
      if (group.rank() == arguments.rank && step == arguments.at &&
          have_accident(arguments.accident, group)) {
        break;
      }
      Tensor tensor = Tensor::zeros({arguments.elements}, DType::kFloat32, cpu_device());
      cpu_device().fill(tensor, group.rank() + 1);
      CollectiveOptions collective;
      collective.label.step = step;
      collective.label.phase = Phase::kBackward;
      group.allreduce(tensor, ReduceOp::kSum, collective)->wait();
      const auto expected = static_cast<float>(group.size() * (group.size() + 1) / 2);
      for (const float value : tensor.span<float>()) {
        if (value != expected) throw Error(ErrorCode::kInternal, "wrong sum");
      }
      say(fmt::format("step {}", step));
      clock.advance(Seconds(arguments.pause));
    }
    group.shutdown();
  }
  job.connection->close();
  if (job.server) job.server->wait_until_idle(Seconds(10));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  try {
    run(arguments);
    say("done");
    return 0;
  } catch (const Error& e) {
    say(fmt::format("error {}: {}", to_string(e.code()), e.what()));
    return exit_status(e.code());
  }
}

// What every rank sees when one of them fails, with real processes. The group's timeout is far
// beyond the launch's deadline, so a launch that ends by itself shows that the failure was spread
// and not waited for.

#include <signal.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "gradsync/backends/launch/launcher.hpp"
#include "gradsync/comm/comm_error.hpp"
#include "tests/gloo/gloo_world.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;

namespace {

struct Outcome {
  LaunchResult result;
  std::map<int, std::string> output;  ///< by rank
};

Outcome run_workers(int ranks, std::vector<std::string> args, bool host_store = true,
                    Seconds failure_grace = Seconds(30)) {
  Outcome outcome;
  LaunchOptions options;
  options.nproc_per_node = ranks;
  options.standalone = true;
  options.host_store = host_store;
  options.program = GRADSYNC_GLOO_WORKER;
  options.args = std::move(args);
  options.failure_grace = failure_grace;
  options.kill_grace = Seconds(5);
  options.deadline = Seconds(120);
  options.on_line = [&](int rank, bool, const std::string& line) {
    outcome.output[rank] += line + "\n";
  };
  outcome.result = launch(options);
  CHECK_FALSE(outcome.result.deadline_ended);
  return outcome;
}

std::vector<std::string> accident(const std::string& what, int rank, int at = 3) {
  return {"--steps", "1000000",          "--timeout", "300", "--rank", std::to_string(rank),
          "--at",    std::to_string(at), "--do",      what};
}

void check_all_others_name_the_dead(const Outcome& outcome, int dead, const std::string& why) {
  for (const RankExit& exit : outcome.result.ranks) {
    if (exit.rank == dead) continue;
    INFO("rank " << exit.rank << " said:\n" << outcome.output.at(exit.rank));
    CHECK(exit.describe() == "exit status 6");
    CHECK_FALSE(exit.ended_by_launcher);
    const std::string named = "rank " + std::to_string(dead) + " died";
    CHECK_THAT(outcome.output.at(exit.rank), test::contains("error rank_died"));
    CHECK_THAT(outcome.output.at(exit.rank), test::contains(named));
    CHECK_THAT(outcome.output.at(exit.rank), test::contains(why));
  }
}

std::string error_text(const std::exception_ptr& error) {
  if (!error) return "no error";
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code())) + ": " + e.what();
  }
}

GlooProcessGroup::Options with_timeout(Seconds timeout) {
  GlooProcessGroup::Options options;
  options.timeout = timeout;
  return options;
}

void allreduce(ProcessGroup& group, std::int64_t step, std::int64_t elements = 8) {
  Tensor tensor = Tensor::zeros({elements}, DType::kFloat32, cpu_device());
  CollectiveOptions options;
  options.label.step = step;
  group.allreduce(tensor, ReduceOp::kSum, options)->wait();
}

}  // namespace

TEST_CASE("failure: ranks that all finish end well, with either server of the store") {
  for (const bool host_store : {true, false}) {
    const Outcome outcome = run_workers(4, {"--steps", "5"}, host_store);
    CHECK(outcome.result.ok());
    CHECK(outcome.result.exit_status() == 0);
    for (const RankExit& exit : outcome.result.ranks) {
      CHECK_THAT(outcome.output.at(exit.rank), test::contains("step 4\ndone"));
    }
  }
}

TEST_CASE("failure: kill -9 of a rank ends all others, who name it and the signal") {
  const Outcome outcome = run_workers(5, accident("kill", 2));
  REQUIRE(outcome.result.first_failure);
  CHECK(outcome.result.first_failure->rank == 2);
  CHECK(outcome.result.first_failure->signal == SIGKILL);
  CHECK(outcome.result.exit_status() == 128 + SIGKILL);
  check_all_others_name_the_dead(outcome, 2, "signal 9");
}

TEST_CASE("failure: without a launcher that knows the neighbours notice a death and tell all") {
  const Outcome outcome = run_workers(5, accident("kill", 2), false);
  check_all_others_name_the_dead(outcome, 2, "closed its connection");
}

TEST_CASE("failure: the death of the rank that serves the store ends all others") {
  const Outcome outcome = run_workers(4, accident("kill", 0), false);
  check_all_others_name_the_dead(outcome, 0, "");
}

TEST_CASE("failure: a rank killed in the middle of a large transfer") {
  for (int round = 0; round < 3; ++round) {
    std::vector<std::string> args = accident("kill-soon", 1, 1);
    args.insert(args.end(), {"--elements", "3000000"});
    const Outcome outcome = run_workers(3, args, round % 2 == 0);
    check_all_others_name_the_dead(outcome, 1, "");
  }
}

TEST_CASE("failure: a rank that exits early without a word, with status 0") {
  const Outcome outcome = run_workers(4, accident("exit", 3));
  check_all_others_name_the_dead(outcome, 3, "without a word");
  CHECK(outcome.result.exit_status() == 6);
}

TEST_CASE("failure: a stopped rank makes the others time out") {
  std::vector<std::string> args = accident("stop", 1);
  args[3] = "5";  // the timeout: nothing else ends the others
  const Outcome outcome = run_workers(3, args, true, Seconds(3));
  int timed_out = 0;
  for (const int rank : {0, 2}) {
    const std::string& output = outcome.output.at(rank);
    INFO("rank " << rank << " said:\n" << output);
    const bool timeout = output.find("error timeout") != std::string::npos;
    if (timeout) {
      ++timed_out;
      CHECK_THAT(output, test::contains("timed out after 5s in allreduce #3"));
    } else {
      CHECK_THAT(output, test::contains("error peer_failed"));
      CHECK_THAT(output, test::contains("failed first: timed out after 5s in allreduce #3"));
    }
  }
  CHECK(timed_out >= 1);
  CHECK(outcome.result.ranks[1].ended_by_launcher);
  CHECK(outcome.result.first_failure->rank != 1);
}

TEST_CASE("failure: an error of one rank reaches the others with its text") {
  const Outcome outcome = run_workers(3, accident("throw", 1));
  CHECK(outcome.result.first_failure->exit_code == 6);
  for (const int rank : {0, 2}) {
    CHECK_THAT(outcome.output.at(rank), test::contains("error peer_failed"));
    CHECK_THAT(outcome.output.at(rank),
               test::contains("rank 1 failed first: the test threw on purpose"));
  }
}

TEST_CASE("failure: a rank that is done stays until the timeout ends the others' wait") {
  // Rank 1 runs out of steps, as with uneven shards.
  test::GlooJob job(3);
  job.options = with_timeout(Seconds(3));
  const auto errors = job.run(test::ranks_below(3), [&](GlooProcessGroup& group) {
    allreduce(group, 0);
    if (group.rank() != 1) allreduce(group, 1);
    group.shutdown();
  });
  int timed_out = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    const std::string text = error_text(errors[rank]);
    INFO("rank " << rank << ": " << text);
    if (text.rfind("timeout: ", 0) == 0) {
      ++timed_out;
      CHECK(rank != 1);  // whoever is done lets those that wait for data speak first
      CHECK_THAT(text, test::contains("allreduce #1"));
    } else {
      CHECK(text.rfind("peer_failed: ", 0) == 0);
      CHECK_THAT(text, test::contains("failed first: timed out after 3s"));
    }
    if (rank == 1) CHECK_THAT(text, test::contains("shutdown"));
  }
  CHECK(timed_out >= 1);
}

TEST_CASE("failure: a rank that never comes to shutdown is named by those that wait there") {
  test::GlooJob job(3);
  job.options = with_timeout(Seconds(3));
  std::atomic<int> in_shutdown = 2;
  const auto errors = job.run(test::ranks_below(3), [&](GlooProcessGroup& group) {
    allreduce(group, 0);
    if (group.rank() == 2) {  // busy with something else until the others have given up
      while (in_shutdown > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      allreduce(group, 1);
      return;
    }
    try {
      group.shutdown();
    } catch (...) {
      --in_shutdown;
      throw;
    }
  });
  const std::string first = error_text(errors[0]);
  const std::string second = error_text(errors[1]);
  const bool one_timed_out = first.rfind("timeout: ", 0) == 0 || second.rfind("timeout: ", 0) == 0;
  CHECK(one_timed_out);
  CHECK_THAT(first, test::contains("this rank is done, rank 2 is not"));
  CHECK_THAT(second, test::contains("this rank is done, rank 2 is not"));
  CHECK_THAT(error_text(errors[2]), test::contains("peer_failed"));
}

TEST_CASE("failure: a group that is destroyed without shutdown tells the others") {
  test::GlooJob job(3);
  job.options = with_timeout(Seconds(300));
  const auto errors = job.run(test::ranks_below(3), [&](GlooProcessGroup& group) {
    allreduce(group, 0);
    if (group.rank() == 0) return;
    allreduce(group, 1);
    group.shutdown();
  });
  CHECK_FALSE(errors[0]);
  for (const std::size_t rank : {1u, 2u}) {
    CHECK_THAT(error_text(errors[rank]), test::contains("rank 0 left the job without finishing"));
  }
}

TEST_CASE("failure: works issued before and after a failure all end with it") {
  test::GlooJob job(2);
  job.options = with_timeout(Seconds(300));
  std::vector<CollectiveRecord> records;
  std::vector<std::string> texts;
  std::atomic<bool> first_done = false;
  job.run(test::ranks_below(2), [&](GlooProcessGroup& group) {
    allreduce(group, 0);
    if (group.rank() == 1) {  // not before the other rank has all of the first one
      while (!first_done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return group.abort(ErrorCode::kMisuse, "enough");
    }
    first_done = true;
    Tensor tensor = Tensor::zeros({4}, DType::kFloat32, cpu_device());
    std::vector<WorkPtr> works;
    for (int i = 0; i < 3; ++i) works.push_back(group.allreduce(tensor, ReduceOp::kSum, {}));
    for (const WorkPtr& work : works) {
      for (int again = 0; again < 2; ++again) {
        try {
          work->wait();
          texts.push_back("no error");
        } catch (const CommError& e) {
          texts.push_back(e.cause());
        }
      }
    }
    records = group.flight_recorder().snapshot();
  });
  REQUIRE(texts.size() == 6);
  for (const std::string& text : texts) CHECK(text == "rank 1 failed first: enough");
  REQUIRE(records.size() == 4);
  CHECK(records[0].state == CollectiveState::kCompleted);
  for (std::size_t i = 1; i < records.size(); ++i) {
    CHECK(records[i].state == CollectiveState::kFailed);
    CHECK(records[i].error == "rank 1 failed first: enough");
  }
}

TEST_CASE("failure: a rank that does not come to the rendezvous is named") {
  test::GlooJob job(4);
  job.options = with_timeout(Seconds(3));
  const auto errors = job.run({0, 1, 3}, [](GlooProcessGroup&) {});
  for (const auto& error : errors) {
    CHECK_THAT(error_text(error), test::contains("timeout: "));
    CHECK_THAT(error_text(error), test::contains("missing: rank 2"));
    CHECK_THAT(error_text(error), test::contains("came (rank 0-1, 3)"));
  }
}

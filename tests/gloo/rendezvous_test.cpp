#include "gradsync/backends/store/rendezvous.hpp"

#include <chrono>
#include <future>

#include "gradsync/backends/rank/rank_reports.hpp"
#include "gradsync/backends/store/failure.hpp"
#include "gradsync/core/wall_clock.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace gradsync;

namespace {

constexpr Seconds kPlenty{60};

struct Job {
  TcpStoreServer server{{.bind_address = "127.0.0.1", .port = 0}};

  RankEnvironment environment(int rank, int world_size) const {
    RankEnvironment e;
    e.rank = rank;
    e.world_size = world_size;
    e.master_port = server.port();
    e.agent_store = true;
    return e;
  }
  std::shared_ptr<Store> store(int rank = 0, int world_size = 1) const {
    return connect_job_store(environment(rank, world_size), kPlenty).store;
  }
};

std::string error_of(const std::function<void()>& call, ErrorCode expected) {
  try {
    call();
  } catch (const Error& e) {
    CHECK(e.code() == expected);
    return e.what();
  }
  return "no error was thrown";
}

}  // namespace

TEST_CASE("rendezvous: all ranks join") {
  Job job;
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 5; ++rank) {
    ranks.push_back(std::async(std::launch::async,
                               [&, rank] { join_all_ranks(*job.store(), rank, 5, kPlenty); }));
  }
  for (auto& rank : ranks) CHECK_NOTHROW(rank.get());
}

TEST_CASE("rendezvous: a rank that does not come is named, and so are those that came") {
  Job job;
  std::vector<std::future<std::string>> ranks;
  for (int rank : {0, 1, 2, 5}) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      return error_of([&] { join_all_ranks(*job.store(), rank, 6, Seconds(1)); },
                      ErrorCode::kTimeout);
    }));
  }
  for (auto& rank : ranks) {
    const std::string text = rank.get();
    CHECK_THAT(text, test::contains("4 of 6 ranks came (ranks 0-2, 5)"));
    CHECK_THAT(text, test::contains("missing: ranks 3-4"));
  }
}

TEST_CASE("rendezvous: two processes with one rank, and two opinions about the world's size") {
  Job job;
  auto store = job.store();
  CHECK_THAT(error_of([&] { join_all_ranks(*store, 0, 2, Seconds(0.05)); }, ErrorCode::kTimeout),
             test::contains("missing: rank 1"));
  store->set("joined/1", "elsewhere, process 1", kPlenty);
  CHECK_THAT(error_of([&] { join_all_ranks(*store, 1, 2, kPlenty); }, ErrorCode::kMisuse),
             test::contains("two processes were started as rank 1"));
  CHECK_THAT(error_of([&] { join_all_ranks(*store, 2, 3, kPlenty); }, ErrorCode::kMisuse),
             test::contains("WORLD_SIZE"));
}

TEST_CASE("rendezvous: jobs and restarts that share a store do not meet") {
  Job job;
  RankEnvironment first = job.environment(0, 1);
  RankEnvironment restarted = first;
  restarted.job_id = "job.1";
  join_all_ranks(*connect_job_store(first, kPlenty).store, 0, 1, kPlenty);
  CHECK_NOTHROW(join_all_ranks(*connect_job_store(restarted, kPlenty).store, 0, 1, kPlenty));
}

TEST_CASE("rendezvous: clocks of ranks on one machine share their origin") {
  Job job;
  auto store = job.store();
  const auto origin = share_clock_origin(*store, 0, kPlenty);
  CHECK(share_clock_origin(*store, 1, kPlenty) == origin);
}

TEST_CASE("failure: the first one holds, and everybody learns of it") {
  Job job;
  CHECK_FALSE(find_failure(*job.store(), kPlenty));
  auto watcher =
      std::async(std::launch::async, [&] { return wait_for_end(*job.store(), kPlenty); });
  const Failure mine{2, ErrorCode::kRankDied, "died (signal 9)", {}};
  CHECK(publish_failure(*job.store(), mine, kPlenty).rank == 2);
  const Failure later{1, ErrorCode::kTimeout, "timed out", {}};
  CHECK(publish_failure(*job.store(), later, kPlenty).describe() == "rank 2 died (signal 9)");
  const std::optional<Failure> seen = watcher.get();
  REQUIRE(seen);
  CHECK(seen->code == ErrorCode::kRankDied);
  CHECK(seen->describe() == "rank 2 died (signal 9)");
}

TEST_CASE("failure: a job in which all ranks end has none") {
  Job job;
  auto watcher =
      std::async(std::launch::async, [&] { return wait_for_end(*job.store(), kPlenty); });
  announce_end(*job.store(), 1, 2, kPlenty);
  CHECK(ranks_not_ended(*job.store(), 2, kPlenty) == std::vector<int>{0});
  CHECK(watcher.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  announce_end(*job.store(), 0, 2, kPlenty);
  CHECK_FALSE(watcher.get());
}

TEST_CASE("reports: through files, and a rank that left none is running") {
  test::TemporaryDirectory directory;
  RankReport report;
  report.rank = 1;
  report.state = RankState::kFinished;
  report.steps_completed = 7;
  write_report_file(directory.path(), report);
  const std::vector<RankReport> reports = read_report_files(directory.path(), 3);
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].state == RankState::kRunning);
  CHECK(reports[1].state == RankState::kFinished);
  CHECK(reports[1].steps_completed == 7);
  CHECK(reports[2].rank == 2);
  CHECK(reports[2].state == RankState::kRunning);
}

TEST_CASE("reports: through the store, megabytes of them, up to the deadline") {
  Job job;
  RankReport report;
  report.rank = 0;
  report.state = RankState::kFailed;
  report.error = std::string(9 * 1024 * 1024, 'e');
  publish_report(*job.store(), report, kPlenty);
  const std::vector<RankReport> reports = gather_reports(*job.store(), 2, Seconds(0.1));
  REQUIRE(reports.size() == 2);
  CHECK((reports[0].error == report.error));
  CHECK(reports[0].state == RankState::kFailed);
  CHECK(reports[1].rank == 1);
  CHECK(reports[1].state == RankState::kRunning);
}

TEST_CASE("wall clock: advance lasts at least as long as it should") {
  WallClock clock;
  const Seconds begin = clock.now();
  clock.advance(Seconds(0.003));
  clock.advance(Seconds(-1));
  clock.charge_flops(1e15);
  CHECK((clock.now() - begin).count() >= 0.003);
}

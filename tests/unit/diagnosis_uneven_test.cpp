// Uneven shards: who ran out of data, who waits, why, and the fix.

#include "gradsync/testbed/diagnosis/diagnosis.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hand_made_reports.hpp"

namespace gradsync {
namespace {

using test::contains;
using test::HandMadeRank;

TEST_CASE("diagnosis: uneven shards name who ran out, who waits where, why, and the fix") {
  const auto found = diagnose(test::uneven_reports_simulated(), test::uneven_scenario());
  REQUIRE(found.has_value());
  CHECK(found->verdict == "deadlock");
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2, 3});
  CHECK(found->step == 2);
  CHECK(found->bucket == 0);
  CHECK(found->collective ==
        "allreduce #4 of 4 float32 elements, step 2 (epoch 0) backward, bucket 0 (gradients)");
  CHECK(found->because ==
        "ranks 2-3 ran out of data before the others: 10 samples over 4 ranks without padding, "
        "batch size 1: ranks 0-1 have 3 samples, which make 3 steps; ranks 2-3 have 2 samples, "
        "which make 2 steps");
  CHECK(found->fix ==
        "set sampler.pad to true: 3 steps on every rank, 2 samples repeated; or set "
        "sampler.drop_last to true: 2 steps on every rank, 2 of 10 samples are unused; or set "
        "ddp.join.enable to true: ranks that run out then answer the others with zeros, as "
        "PyTorch's Join does");
  CHECK(found->first_cause == "ranks 2-3 had no batch for step 2 (epoch 0)");
  CHECK(found->first_symptom ==
        "ranks 0-1 wait in allreduce #4 of 4 float32 elements, step 2 (epoch 0) backward, bucket 0 "
        "(gradients) with parameters b and c; ranks 2-3 never enter it");
  CHECK(found->notes.empty());

  REQUIRE(found->table.size() == 2);
  CHECK(found->table[0].ranks == std::vector<int>{0, 1});
  CHECK(found->table[0].state == "blocked");
  CHECK(found->table[0].phase == "backward");
  CHECK(found->table[0].blocked_in == found->collective);
  CHECK(found->table[0].since == Seconds{2.5});
  CHECK(found->table[0].steps_completed == 2);
  CHECK(found->table[1].ranks == std::vector<int>{2, 3});
  CHECK(found->table[1].state == "finished");
  CHECK(found->table[1].phase == "shutdown");
  CHECK_THAT(found->table[1].last_completed, contains("allreduce #3"));
}

TEST_CASE("diagnosis: uneven shards of given sizes, in batches") {
  Scenario scenario;
  scenario.ranks = 3;
  scenario.data.samples = 100;
  scenario.train.batch_size = 8;
  scenario.sampler.shard_sizes = {17, 40, 9};
  const auto found = diagnose({HandMadeRank(0, 3).shard(100, 17, 3).steps(2).blocked(),
                               HandMadeRank(1, 3).shard(100, 40, 5).steps(2).blocked(),
                               HandMadeRank(2, 3).shard(100, 9, 2).steps(2).finishes()},
                              scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2});
  CHECK_THAT(
      found->because,
      contains("100 samples over 3 ranks in shards of given sizes, batch size 8: rank 1 has 40 "
               "samples, which make 5 steps; rank 0 has 17 samples, which make 3 steps; rank 2 "
               "has 9 samples, which make 2 steps"));
  CHECK_THAT(found->fix, contains("9 is what the smallest shard has"));
  CHECK_THAT(found->fix, contains("pads the shards to 5 steps"));
}

TEST_CASE("diagnosis: over several epochs uneven shards go wrong before the run stands still") {
  Scenario scenario = test::uneven_scenario();
  scenario.train.epochs = 2;
  const auto rank_of = [](int rank, std::int64_t samples) {
    HandMadeRank made(rank, 4);
    made.shard(10, samples, 2 * samples);
    for (std::int64_t step = 0; step < 4; ++step) made.step(step / samples, "same");
    return made;
  };
  const auto found = diagnose({rank_of(0, 3).blocked(1), rank_of(1, 3).blocked(1),
                               rank_of(2, 2).finishes(), rank_of(3, 2).finishes()},
                              scenario);
  REQUIRE(found.has_value());
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->step == 2);  // the first wrong one
  CHECK_THAT(found->collective, contains("step 4 (epoch 1)"));
  CHECK_THAT(found->first_cause, contains("from step 2 on"));
  CHECK_THAT(found->because, contains("in each of 2 epochs"));
  REQUIRE(found->notes.size() == 1);
  CHECK_THAT(found->notes[0], contains("collective #4 did not meet its like"));
}

TEST_CASE("diagnosis: a backend that compares labels shows uneven shards as a desync") {
  Scenario scenario = test::uneven_scenario();
  scenario.train.epochs = 2;
  std::vector<RankReport> reports;
  for (int rank = 0; rank < 4; ++rank) {
    const std::int64_t samples = rank < 2 ? 3 : 2;
    reports.push_back(HandMadeRank(rank, 4)
                          .shard(10, samples, 2 * samples)
                          .steps(2)
                          .blocked(rank < 2 ? 0 : 1)
                          .fails(ErrorCode::kDesync, "not the same", 3));
  }
  const auto found = diagnose(reports, scenario);
  REQUIRE(found.has_value());
  CHECK(found->verdict == "desync");
  CHECK(found->kind == DiagnosisKind::kUnevenShards);
  CHECK(found->ranks == std::vector<int>{2, 3});
  CHECK(found->step == 2);
  CHECK(found->first_cause ==
        "at step 2 ranks 2-3 had no batch left in epoch 0 and went on to the next, ranks 0-1 had "
        "one");
}

}  // namespace
}  // namespace gradsync

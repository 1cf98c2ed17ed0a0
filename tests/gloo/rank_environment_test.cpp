#include "gradsync/backends/store/rank_environment.hpp"

#include <map>

#include "gradsync/core/error.hpp"
#include "tests/support/catch.hpp"

using namespace gradsync;

namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankEnvironment> resolve(const Variables& variables, const RankFlags& flags = {}) {
  return resolve_rank_environment(flags, [&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string usage_error(const Variables& variables, const RankFlags& flags = {}) {
  try {
    resolve(variables, flags);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::kUsage);
    return e.what();
  }
  FAIL("no error was thrown");
  return {};
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node0"},
                             {"MASTER_PORT", "29501"},
                             {"TORCHELASTIC_RUN_ID", "job7"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

}  // namespace

TEST_CASE("environment: without a launcher there is no rank") {
  CHECK_FALSE(resolve({}));
}

TEST_CASE("environment: torchrun's variables") {
  const RankEnvironment e = resolve(kTorchrun).value();
  CHECK(e.rank == 5);
  CHECK(e.world_size == 8);
  CHECK(e.local_rank == 1);
  CHECK(e.local_world_size == 4);
  CHECK(e.master_addr == "node0");
  CHECK(e.master_port == 29501);
  CHECK(e.agent_store);
  CHECK(e.job_id == "job7.2");
}

TEST_CASE("environment: without an agent's store rank 0 serves") {
  Variables v = kTorchrun;
  v["TORCHELASTIC_USE_AGENT_STORE"] = "False";
  CHECK_FALSE(resolve(v)->agent_store);
  v.erase("TORCHELASTIC_USE_AGENT_STORE");
  CHECK_FALSE(resolve(v)->agent_store);
}

TEST_CASE("environment: every variable that torchrun must set is named when it is missing") {
  for (const char* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables v = kTorchrun;
    v.erase(name);
    CHECK_THAT(usage_error(v), test::contains(std::string(name) + " is not set"));
  }
}

TEST_CASE("environment: values that are no numbers or out of range are named") {
  const auto with = [](const char* name, const char* value) {
    Variables v = kTorchrun;
    v[name] = value;
    return usage_error(v);
  };
  CHECK_THAT(with("RANK", "one"), test::contains("RANK is \"one\""));
  CHECK_THAT(with("RANK", "-1"), test::contains("RANK is \"-1\""));
  CHECK_THAT(with("WORLD_SIZE", "8 "), test::contains("WORLD_SIZE is \"8 \""));
  CHECK_THAT(with("RANK", "8"), test::contains("rank 8 in a world of 8"));
  CHECK_THAT(with("WORLD_SIZE", "0"), test::contains("a world of 0"));
  CHECK_THAT(with("MASTER_PORT", "70000"), test::contains("70000"));
}

TEST_CASE("environment: mpirun on one node needs no address") {
  const Variables v = {{"OMPI_COMM_WORLD_RANK", "2"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                       {"PMIX_NAMESPACE", "prterun-1234@1"}};
  const RankEnvironment e = resolve(v).value();
  CHECK(e.rank == 2);
  CHECK(e.world_size == 4);
  CHECK(e.local_rank == 2);
  CHECK(e.master_addr == "127.0.0.1");
  CHECK(e.master_port >= 20000);
  CHECK(e.master_port < 30000);
  CHECK_FALSE(e.agent_store);
  Variables other_rank = v;
  other_rank["OMPI_COMM_WORLD_RANK"] = "0";
  CHECK(resolve(other_rank)->master_port == e.master_port);
}

TEST_CASE("environment: mpirun on several nodes needs MASTER_ADDR") {
  Variables v = {{"OMPI_COMM_WORLD_RANK", "2"},
                 {"OMPI_COMM_WORLD_SIZE", "4"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                 {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  CHECK_THAT(usage_error(v), test::contains("MASTER_ADDR is not set"));
  v["MASTER_ADDR"] = "node0";
  v["MASTER_PORT"] = "1234";
  CHECK(resolve(v)->master_addr == "node0");
  CHECK(resolve(v)->master_port == 1234);
  v.erase("OMPI_COMM_WORLD_SIZE");
  CHECK_THAT(usage_error(v), test::contains("OMPI_COMM_WORLD_SIZE is not set"));
}

TEST_CASE("environment: PMI and srun") {
  CHECK(resolve({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})->rank == 1);
  const Variables srun = {{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "3"},
                          {"SLURM_STEP_ID", "0"}, {"SLURM_NNODES", "1"}, {"SLURM_JOB_ID", "77"}};
  const RankEnvironment e = resolve(srun).value();
  CHECK(e.rank == 3);
  CHECK(e.world_size == 4);
  CHECK(e.job_id == "77.0");
  Variables two_nodes = srun;
  two_nodes["SLURM_NNODES"] = "2";
  CHECK_THAT(usage_error(two_nodes), test::contains("MASTER_ADDR is not set"));
}

TEST_CASE("environment: a Slurm batch script is not a rank") {
  CHECK_FALSE(resolve({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "77"}}));
}

TEST_CASE("environment: torchrun's variables win over those of the job around it") {
  Variables v = kTorchrun;
  v["OMPI_COMM_WORLD_RANK"] = "0";
  v["SLURM_STEP_ID"] = "0";
  CHECK(resolve(v)->rank == 5);
}

TEST_CASE("environment: flags win over everything") {
  RankFlags flags;
  flags.rank = 1;
  flags.world_size = 2;
  flags.master_addr = "127.0.0.1";
  flags.master_port = 4000;
  const RankEnvironment e = resolve(kTorchrun, flags).value();
  CHECK(e.rank == 1);
  CHECK(e.world_size == 2);
  CHECK(e.master_port == 4000);
  CHECK_FALSE(e.agent_store);
  flags.world_size.reset();
  CHECK_THAT(usage_error(kTorchrun, flags), test::contains("--world-size"));
  RankFlags port_only;
  port_only.master_port = 4001;
  CHECK(resolve(kTorchrun, port_only)->rank == 5);
  CHECK(resolve(kTorchrun, port_only)->master_port == 4001);
}

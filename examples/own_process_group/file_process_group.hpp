#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gradsync/comm/process_group.hpp>
#include <gradsync/core/error.hpp>

/// Collectives among processes that share a folder: each rank writes what it gives into a file, and
/// reads those of the others. Slow, and complete: it keeps the contract of gradsync::ProcessGroup,
/// mismatches, timeouts and the deaths of ranks included.
class FileProcessGroup final : public gradsync::ProcessGroup {
 public:
  /// `folder`: empty, and the same for all ranks of the job; it must outlive the group.
  FileProcessGroup(std::filesystem::path folder, int rank, int size, gradsync::Clock& clock,
                   gradsync::Seconds timeout = gradsync::Seconds{30});
  /// Without a `shutdown` that returned, tells the others that this rank is gone.
  ~FileProcessGroup() override;

  std::string backend_name() const override { return "files"; }
  void shutdown() override;

 protected:
  gradsync::WorkPtr do_allreduce(gradsync::Tensor tensor, gradsync::ReduceOp op,
                                 const gradsync::CollectiveRecord& record) override;
  gradsync::WorkPtr do_broadcast(gradsync::Tensor tensor, int root,
                                 const gradsync::CollectiveRecord& record) override;
  gradsync::WorkPtr do_allgather(gradsync::Tensor output, gradsync::Tensor input,
                                 const gradsync::CollectiveRecord& record) override;
  gradsync::WorkPtr do_barrier(const gradsync::CollectiveRecord& record) override;

 private:
  friend class FileWork;

  /// What a rank gave to a collective.
  struct Contribution {
    std::string signature;
    std::vector<std::byte> bytes;
  };

  gradsync::WorkPtr issue(const gradsync::CollectiveRecord& record, const gradsync::Tensor& input,
                          const gradsync::Tensor& output);
  bool all_have_issued(const gradsync::CollectiveRecord& record) const;
  /// Waits for the contributions of all ranks, by rank. Throws CommError.
  std::vector<Contribution> collect(const gradsync::CollectiveRecord& record);
  void publish_failure(gradsync::ErrorCode code, const std::string& cause) const;
  void throw_if_failed(const gradsync::CollectiveRecord& record) const;
  [[noreturn]] void fail(const gradsync::CollectiveRecord& record, gradsync::ErrorCode code,
                         const std::string& cause) const;
  std::filesystem::path file_of(const std::string& name, int rank) const;

  std::filesystem::path folder_;
  gradsync::Seconds timeout_;
  std::vector<std::filesystem::path> written_;
  bool has_shut_down_ = false;
};

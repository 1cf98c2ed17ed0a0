#include <cublas_v2.h>

#include <fmt/format.h>

#include "gradsync/backends/cuda/runtime/cuda_runtime.hpp"
#include "gradsync/backends/cuda/runtime/shared_library.hpp"
#include "gradsync/core/error.hpp"

namespace gradsync {
namespace {

class Cublas final : public CublasApi {
 public:
  explicit Cublas(SharedLibrary library)
      : library_(std::move(library)),
        create_(library_.function<decltype(&cublasCreate_v2)>("cublasCreate_v2")),
        destroy_(library_.function<decltype(&cublasDestroy_v2)>("cublasDestroy_v2")),
        set_stream_(library_.function<decltype(&cublasSetStream_v2)>("cublasSetStream_v2")),
        set_workspace_(
            library_.function<decltype(&cublasSetWorkspace_v2)>("cublasSetWorkspace_v2")),
        set_math_mode_(library_.function<decltype(&cublasSetMathMode)>("cublasSetMathMode")),
        gemm_(library_.function<Gemm>("cublasGemmStridedBatchedEx")) {
    check(create_(&handle_), "cublasCreate");
    // No TF32, no reduced-precision reductions.
    check(set_math_mode_(handle_, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
  }
  ~Cublas() override {
    static_cast<void>(destroy_(handle_));
    if (workspace_ != nullptr) static_cast<void>(cudaFree(workspace_));
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  void multiply(const MatrixProduct& p, CudaStream stream) override {
    use(stream);
    // cuBLAS is column-major: the row-major product c = a b is c^T = b^T a^T there.
    const auto op = [](const MatrixOperand& operand) {
      return operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    const bool wide = p.dtype == DType::kFloat64;
    const float alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
    const void* const alpha_data = wide ? static_cast<const void*>(&p.alpha) : &alpha;
    const void* const beta_data = wide ? static_cast<const void*>(&p.beta) : &beta;
    const cudaDataType_t type = wide ? CUDA_R_64F : CUDA_R_32F;
    check(gemm_(handle_, op(p.b), op(p.a), static_cast<int>(p.n), static_cast<int>(p.m),
                static_cast<int>(p.k), alpha_data, p.b.data, type, static_cast<int>(p.b.stride),
                p.b.batch_stride, p.a.data, type, static_cast<int>(p.a.stride), p.a.batch_stride,
                beta_data, p.c, type, static_cast<int>(p.c_stride), p.c_batch_stride,
                static_cast<int>(p.batch),
                wide ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_32F_PEDANTIC,
                CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  }

 private:
  /// The header overloads this name in C++.
  using Gemm = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, long long,
                                  const void*, cudaDataType, int, long long, const void*, void*,
                                  cudaDataType, int, long long, int, cublasComputeType_t,
                                  cublasGemmAlgo_t);

  static void check(cublasStatus_t status, const char* call) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw Error(ErrorCode::kInternal,
                fmt::format("{}: cuBLAS status {}", call, static_cast<int>(status)));
  }

  void use(CudaStream stream) {
    if (stream == stream_) return;
    // Setting the stream resets the workspace, so set ours again. With cuBLAS's own pool the choice
    // of algorithm, and with it the bits, would depend on what else is running.
    check(set_stream_(handle_, stream), "cublasSetStream");
    constexpr std::size_t kWorkspace = std::size_t{32} << 20;  // cuBLAS's recommendation for Hopper
    if (workspace_ == nullptr && cudaMalloc(&workspace_, kWorkspace) != cudaSuccess) {
      throw Error(ErrorCode::kInternal, "out of GPU memory: 32 MiB wanted for cuBLAS");
    }
    check(set_workspace_(handle_, workspace_, kWorkspace), "cublasSetWorkspace");
    stream_ = stream;
  }

  SharedLibrary library_;
  decltype(&cublasCreate_v2) create_;
  decltype(&cublasDestroy_v2) destroy_;
  decltype(&cublasSetStream_v2) set_stream_;
  decltype(&cublasSetWorkspace_v2) set_workspace_;
  decltype(&cublasSetMathMode) set_math_mode_;
  Gemm gemm_;
  cublasHandle_t handle_ = nullptr;
  CudaStream stream_ = nullptr;
  void* workspace_ = nullptr;
};

}  // namespace

std::unique_ptr<CublasApi> open_cublas() {
  const std::string name = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  return std::make_unique<Cublas>(SharedLibrary("cuBLAS", {name, GRADSYNC_CUBLAS_FOUND}));
}

}  // namespace gradsync

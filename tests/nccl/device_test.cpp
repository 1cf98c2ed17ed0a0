#include "gradsync/backends/cuda/cuda_device.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_conformance.hpp"

using namespace gradsync;
using namespace gradsync::test;

TEST_CASE("cuda: every operation against the CPU's, with the kernels' source run on the host") {
  FakeCuda cuda;
  FakeCublas products;
  CudaDevice device(cuda, products, 0, {});
  check_device_conformance(device);
}

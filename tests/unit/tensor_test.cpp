#include "gradsync/tensor/tensor.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gradsync/autograd/ops.hpp"
#include "gradsync/core/error.hpp"
#include "gradsync/tensor/half.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fake_clock.hpp"

using gradsync::BFloat16;
using gradsync::cpu_device;
using gradsync::DType;
using gradsync::Half;
using gradsync::meta_device;
using gradsync::Tensor;
using gradsync::test::Approx;
using gradsync::test::contains;

TEST_CASE("dtype names and sizes are PyTorch's") {
  CHECK(gradsync::to_string(DType::kBFloat16) == "bfloat16");
  CHECK(gradsync::parse_dtype("int64") == DType::kInt64);
  CHECK(gradsync::element_size(DType::kFloat16) == 2);
  CHECK(gradsync::is_floating_point(DType::kFloat16));
  CHECK_FALSE(gradsync::is_floating_point(DType::kUInt8));
  REQUIRE_THROWS_WITH(gradsync::parse_dtype("fp32"), contains("float32, float64"));
}

TEST_CASE("storage is aligned to 64 bytes, whatever its size") {
  for (const std::int64_t count : {0, 1, 3, 17, 1000}) {
    const Tensor tensor = Tensor::empty({count}, DType::kUInt8, cpu_device());
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.data()) % 64 == 0);
  }
}

TEST_CASE("views and slices share the bytes of their tensor") {
  const Tensor tensor = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  const Tensor row = tensor.slice(3, {3});
  CHECK(row.span<float>()[0] == 3.0f);
  row.span<float>()[0] = 7.0f;
  CHECK(tensor.span<float>()[3] == 7.0f);
  CHECK(tensor.view({6}).aliases(tensor));
  CHECK_FALSE(row.aliases(tensor));
  CHECK_FALSE(tensor.clone().aliases(tensor));
  CHECK_FALSE(Tensor().aliases(Tensor()));
  REQUIRE_THROWS_WITH(tensor.view({4}), contains("[2, 3]"));
  REQUIRE_THROWS_WITH(tensor.slice(4, {3}), contains("outside"));
}

TEST_CASE("a tensor over foreign memory is that memory") {
  std::vector<float> memory{1, 2, 3, 4, 5, 6};
  int released = 0;
  {
    Tensor row;
    {
      const Tensor tensor =
          Tensor::from_blob(memory.data(), {2, 3}, DType::kFloat32, cpu_device(), [&](void* data) {
            CHECK(data == memory.data());
            ++released;
          });
      CHECK(tensor.nbytes() == 24);
      Tensor first = tensor.slice(0, {1});
      cpu_device().fill(first, 7);
      CHECK(memory[0] == 7.0f);
      row = tensor.slice(3, {3});
    }
    CHECK(released == 0);
    CHECK(row.span<float>()[2] == 6.0f);
  }
  CHECK(released == 1);
}

TEST_CASE("foreign memory is never taken for a temporary") {
  std::vector<float> memory{-1, 2};
  const auto blob = [&] {
    return Tensor::from_blob(memory.data(), {2}, DType::kFloat32, cpu_device());
  };
  CHECK_FALSE(blob().unique());
  gradsync::test::FakeClock clock;
  gradsync::Graph graph(clock);
  const gradsync::Variable out = gradsync::ops::relu(graph, {blob(), nullptr});
  CHECK(out.data.span<float>()[0] == 0.0f);
  CHECK(memory[0] == -1.0f);
}

TEST_CASE("memory that cannot be a tensor is refused and stays the caller's") {
  std::vector<double> memory(2);
  int released = 0;
  const auto from_blob = [&](void* data, const gradsync::Shape& shape, gradsync::Device& device) {
    Tensor::from_blob(data, shape, DType::kFloat64, device, [&](void*) { ++released; });
  };
  CHECK_THROWS_WITH(from_blob(nullptr, {2}, cpu_device()), contains("pointer is null"));
  CHECK_THROWS_WITH(from_blob(memory.data(), {-1}, cpu_device()), contains("size is negative"));
  CHECK_THROWS_WITH(from_blob(memory.data(), {2}, meta_device()), contains("no memory"));
  CHECK_THROWS_WITH(from_blob(reinterpret_cast<char*>(memory.data()) + 4, {1}, cpu_device()),
                    contains("float64[1] on cpu") && contains("8 bytes"));
  CHECK(released == 0);
  from_blob(nullptr, {0, 3}, cpu_device());  // no elements, no memory
  CHECK(released == 1);
}

TEST_CASE("a tensor is read as what it is") {
  const Tensor tensor = Tensor::zeros({2}, DType::kInt64, cpu_device());
  REQUIRE_THROWS_WITH(tensor.span<float>(), contains("int64"));
  REQUIRE_THROWS_WITH(Tensor().span<float>(), contains("undefined"));
  const Tensor meta = Tensor::zeros({2}, DType::kFloat32, meta_device());
  CHECK(meta.data() == nullptr);
  CHECK(meta.nbytes() == 8);
  REQUIRE_THROWS_WITH(meta.span<float>(), contains("meta"));
}

TEST_CASE("half conversions round to nearest even over the whole range") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half half;
    half.bits = static_cast<std::uint16_t>(bits);
    const auto wide = static_cast<float>(half);
    if (std::isnan(wide)) {
      CHECK(std::isnan(static_cast<float>(Half(wide))));
      continue;
    }
    REQUIRE(Half(wide).bits == half.bits);
    if (bits >= 0x7bff) continue;
    // Halfway to the next value goes to the even one, and anything beyond to the next.
    Half next;
    next.bits = static_cast<std::uint16_t>(bits + 1);
    const float middle = (wide + static_cast<float>(next)) / 2;
    REQUIRE(Half(middle).bits == (bits % 2 == 0 ? bits : bits + 1));
    REQUIRE(Half(std::nextafter(middle, 1e9f)).bits == bits + 1);
    REQUIRE(Half(std::nextafter(middle, 0.0f)).bits == bits);
  }
  CHECK(Half(65519.0f).bits == 0x7bff);
  CHECK(Half(65520.0f).bits == 0x7c00);
  CHECK(Half(-1e10f).bits == 0xfc00);
}

TEST_CASE("bfloat16 conversions round to nearest even") {
  CHECK(BFloat16(1.0f).bits == 0x3f80);
  CHECK(BFloat16(1.00390625f).bits == 0x3f80);  // half an ulp above 1: to even
  CHECK(BFloat16(1.01171875f).bits == 0x3f82);  // one and a half: to even
  CHECK(BFloat16(1.0039064f).bits == 0x3f81);
  CHECK(BFloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
}

TEMPLATE_TEST_CASE("element-wise operations round once an element", "", float, double) {
  gradsync::Device& device = cpu_device();
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-2, 2);
  std::vector<TestType> a(37), b(37);
  for (auto& x : a) x = static_cast<TestType>(uniform(random));
  for (auto& x : b) x = static_cast<TestType>(uniform(random));
  Tensor sum = Tensor::from(a, {37});
  const Tensor other = Tensor::from(b, {37});
  Tensor scaled = sum.empty_like();
  device.scale(scaled, sum, 1.0 / 3);
  Tensor in_place = sum.clone();
  device.scale(in_place, in_place, 1.0 / 3);
  Tensor divided = sum.clone();
  device.divide(divided, 3);
  device.add(sum, other);
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(sum.span<TestType>()[i] == a[i] + b[i]);
    REQUIRE(scaled.span<TestType>()[i] == a[i] * static_cast<TestType>(1.0 / 3));
    REQUIRE(in_place.span<TestType>()[i] == scaled.span<TestType>()[i]);
    REQUIRE(divided.span<TestType>()[i] == a[i] / 3);
  }
}

TEST_CASE("16-bit types add and scale through float") {
  Tensor a = Tensor::from<float>({1.0f, 2048.0f, -3.5f}, {3});
  Tensor half = Tensor::empty({3}, DType::kFloat16, cpu_device());
  cpu_device().cast(half, a);
  Tensor ones = Tensor::empty({3}, DType::kFloat16, cpu_device());
  cpu_device().fill(ones, 1);
  cpu_device().add(half, ones);
  cpu_device().cast(a, half);
  CHECK(a.span<float>()[0] == 2.0f);
  CHECK(a.span<float>()[1] == 2048.0f);  // 2049 lies between two halves: to even
  CHECK(a.span<float>()[2] == -2.5f);
}

TEST_CASE("integers add and convert, and refuse to be scaled") {
  Tensor a = Tensor::from<std::int32_t>({1, -5}, {2});
  cpu_device().add(a, Tensor::from<std::int32_t>({2, 2}, {2}));
  CHECK(a.span<std::int32_t>()[1] == -3);
  Tensor wide = Tensor::empty({2}, DType::kInt64, cpu_device());
  cpu_device().cast(wide, Tensor::from<double>({2.9, -2.9}, {2}));
  CHECK(wide.span<std::int64_t>()[0] == 2);
  CHECK(wide.span<std::int64_t>()[1] == -2);
  REQUIRE_THROWS_WITH(cpu_device().scale(a, a, 0.5), contains("int32"));
  REQUIRE_THROWS_WITH(cpu_device().add(a, wide), contains("int64[2] on cpu"));
}

TEST_CASE("norms of order 1, 2 and infinity") {
  const Tensor x = Tensor::from<float>({3, -4, 0}, {3});
  CHECK(cpu_device().norm(x, 1) == 7);
  CHECK(cpu_device().norm(x, 2) == 5);
  CHECK(cpu_device().norm(x, std::numeric_limits<double>::infinity()) == 4);
  REQUIRE_THROWS_WITH(cpu_device().norm(x, 0), contains("order 0"));
  const Tensor nan = Tensor::from<float>({3, std::nanf(""), 9}, {3});
  CHECK(std::isnan(cpu_device().norm(nan, std::numeric_limits<double>::infinity())));
}

TEST_CASE("the host reads and writes the bytes of a CPU tensor, not of a meta tensor") {
  Tensor x = Tensor::from<float>({1, 2}, {2});
  std::vector<std::byte> bytes(8);
  cpu_device().copy_to_host(bytes, x);
  float first = 0;
  std::memcpy(&first, bytes.data(), sizeof first);
  CHECK(first == 1.0f);
  REQUIRE_THROWS_WITH(cpu_device().copy_to_host(std::span(bytes).first(4), x), contains("4 bytes"));
  Tensor meta = Tensor::empty({2}, DType::kFloat32, meta_device());
  REQUIRE_THROWS_WITH(meta_device().copy_to_host(bytes, meta), contains("no bytes"));
  REQUIRE_NOTHROW(meta_device().add(meta, meta));
}

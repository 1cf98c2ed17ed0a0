#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gradsync/core/random.hpp"
#include "gradsync/tensor/host_read.hpp"
#include "gradsync/tensor/kernels.hpp"
#include "gradsync/tensor/tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_conformance.hpp"

namespace gradsync::test {
namespace {

using Tensors = std::vector<Tensor>;
using Operation = std::function<void(Device&, Tensors&)>;

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.nbytes()));
  tensor.device().copy_to_host(bytes, tensor);
  return bytes;
}

Tensor on(Device& device, const Tensor& tensor) {
  if (!tensor.defined()) return {};
  Tensor copy = Tensor::empty(tensor.shape(), tensor.dtype(), device);
  device.copy_from_host(copy, bytes_of(tensor));
  return copy;
}

std::vector<double> as_doubles(const Tensor& tensor) {
  Tensor host = on(cpu_device(), tensor);
  Tensor wide = Tensor::empty(host.shape(), DType::kFloat64, cpu_device());
  cpu_device().cast(wide, host);
  const auto values = wide.span<double>();
  return {values.begin(), values.end()};
}

/// Normally distributed, the same on every call.
Tensor values(Shape shape, DType dtype, std::uint64_t stream) {
  const CounterRandom random(7, stream);
  std::vector<double> numbers(static_cast<std::size_t>(numel_of(shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = random.normal(i);
  Tensor tensor = Tensor::empty(shape, dtype, cpu_device());
  cpu_device().cast(tensor, Tensor::from<double>(numbers, std::move(shape)));
  return tensor;
}

/// |values|, for second moments.
Tensor positive_values(Shape shape, DType dtype, std::uint64_t stream) {
  Tensor squares = values(std::move(shape), DType::kFloat64, stream);
  for (double& value : squares.span<double>()) value = value * value;
  Tensor tensor = Tensor::empty(squares.shape(), dtype, cpu_device());
  cpu_device().cast(tensor, squares);
  return tensor;
}

Tensor indices(std::vector<std::int64_t> numbers, Shape shape) {
  return Tensor::from<std::int64_t>(numbers, std::move(shape));
}

/// Runs the operation on copies of `given` on both devices and compares all of them afterwards, to
/// the bit where `tolerance` is 0.
void check_same(Device& device, const std::string& name, const Tensors& given,
                const Operation& operation, double tolerance = 0) {
  INFO(name << " on " << device.name());
  Tensors expected, actual;
  for (const Tensor& tensor : given) {
    expected.push_back(on(cpu_device(), tensor));
    actual.push_back(on(device, tensor));
  }
  operation(cpu_device(), expected);
  operation(device, actual);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].defined()) continue;
    INFO("tensor " << i << ", " << to_string(given[i].dtype()) << to_string(given[i].shape()));
    if (tolerance == 0) {
      CHECK((bytes_of(actual[i]) == bytes_of(expected[i])));
      continue;
    }
    const auto wanted = as_doubles(expected[i]), found = as_doubles(actual[i]);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const bool near = std::abs(found[k] - wanted[k]) <= tolerance * (1 + std::abs(wanted[k]));
      if (!near) {
        CAPTURE(k, found[k], wanted[k]);
        CHECK(near);
        break;
      }
    }
  }
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-12;
    case DType::kFloat32:
      return 2e-5;
    case DType::kFloat16:
      return 4e-3;
    default:
      return 4e-2;
  }
}

void check_elements(Device& device, DType dtype, std::int64_t count) {
  const Tensor a = values({count}, dtype, 1), b = values({count}, dtype, 2);
  check_same(device, "copy", {a, b}, [](Device& d, Tensors& t) { d.copy(t[0], t[1]); });
  check_same(device, "fill", {a}, [](Device& d, Tensors& t) { d.fill(t[0], 0.1); });
  check_same(device, "fill with 0", {a}, [](Device& d, Tensors& t) { d.fill(t[0], 0); });
  check_same(device, "add", {a, b}, [](Device& d, Tensors& t) { d.add(t[0], t[1]); });
  check_same(device, "scale", {a, b}, [](Device& d, Tensors& t) { d.scale(t[0], t[1], 1.0 / 3); });
  check_same(device, "scale in place", {a},
             [](Device& d, Tensors& t) { d.scale(t[0], t[0], 1.0 / 3); });
  check_same(device, "divide", {a}, [](Device& d, Tensors& t) { d.divide(t[0], 3); });
  check_same(device, "fill_signed_powers", {a},
             [](Device& d, Tensors& t) { d.fill_signed_powers(t[0], 0x12345678u, 3); });
  for (const DType to : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                         DType::kInt32, DType::kInt64}) {
    check_same(device, "cast", {Tensor::zeros({count}, to, cpu_device()), a},
               [](Device& d, Tensors& t) { d.cast(t[0], t[1]); });
  }
}

void check_updates(Device& device, DType dtype) {
  const Shape shape{301};
  const Tensors given{values(shape, dtype, 1), values(shape, dtype, 2), values(shape, dtype, 3),
                      positive_values(shape, dtype, 4), positive_values(shape, dtype, 5)};
  for (const bool amsgrad : {false, true}) {
    check_same(device, "adamw_step", given, [amsgrad](Device& d, Tensors& t) {
      const AdamWStep step{1e-2, 0.9, 0.999, 1e-8, 0.1, false, 7};
      Tensor none;
      d.adamw_step(t[0], t[1], t[2], t[3], amsgrad ? t[4] : none, step);
    });
  }
  for (const bool nesterov : {false, true}) {
    check_same(device, "sgd_step", given, [nesterov](Device& d, Tensors& t) {
      d.sgd_step(t[0], t[1], t[2], {0.1, 0.9, nesterov ? 0 : 0.2, 0.01, nesterov, true, false});
      Tensor none;
      d.sgd_step(t[0], t[1], none, {0.1, 0, 0, 0.01, false, false, true});
    });
  }
}

/// More tensors than one launch takes, some without elements, of two dtypes.
void check_many(Device& device) {
  Tensors given;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const DType dtype = i < 150 ? DType::kFloat32 : DType::kBFloat16;
    given.push_back(positive_values({static_cast<std::int64_t>(i % 5 * 17)}, dtype, i));
  }
  const auto pairs_of = [](Tensors& t) {
    std::vector<TensorPair> pairs;
    for (std::size_t i = 0; i + 5 < t.size(); ++i) {
      if (t[i].dtype() == t[i + 5].dtype() && i % 10 < 5) pairs.push_back({&t[i], &t[i + 5]});
    }
    return pairs;
  };
  check_same(device, "copy_many", given, [&](Device& d, Tensors& t) { d.copy_many(pairs_of(t)); });
  check_same(device, "scale_many", given,
             [&](Device& d, Tensors& t) { d.scale_many(pairs_of(t), 0.7); });
  for (const double norm : {0.5, 40.0}) {
    check_same(device, "clip_many", given, [&](Device& d, Tensors& t) {
      const Tensor there = on(d, Tensor::from<double>({norm}, {1}));
      d.clip_many(pairs_of(t), there, 3.0, DType::kFloat32);
    });
  }
  check_same(device, "adamw_many", given, [](Device& d, Tensors& t) {
    Tensor none;
    std::vector<AdamWUpdate> updates;
    for (std::size_t i = 0; i + 15 < t.size(); i += 20) {
      if (t[i].dtype() != t[i + 15].dtype()) continue;
      const std::int64_t step = i < 60 ? 1 : 2;  // some have been updated more often
      updates.push_back({&t[i],
                         &t[i + 5],
                         &t[i + 10],
                         &t[i + 15],
                         &none,
                         {1e-2, 0.9, 0.999, 1e-8, 0.1, false, step}});
    }
    d.adamw_many(updates);
  });
  check_same(device, "sgd_many", given, [](Device& d, Tensors& t) {
    Tensor none;
    std::vector<SgdUpdate> updates;
    for (std::size_t i = 0; i + 10 < t.size(); i += 15) {
      if (t[i].dtype() != t[i + 10].dtype()) continue;
      const bool first = i < 45;
      updates.push_back({&t[i],
                         &t[i + 5],
                         i % 2 == 0 ? &t[i + 10] : &none,
                         {0.1, i % 2 == 0 ? 0.9 : 0, 0, 0.01, false, false, first}});
    }
    d.sgd_many(updates);
  });
}

void check_norms(Device& device, DType dtype) {
  Tensors given;
  for (const std::int64_t count : {0, 1, 5, 1000, 30000})
    given.push_back(values({count}, dtype, 3));
  Tensors there;
  for (const Tensor& tensor : given) there.push_back(on(device, tensor));
  for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    std::vector<double> expected(given.size()), actual(given.size());
    cpu_device().norm_many(expected, given, p);
    device.norm_many(actual, there, p);
    const auto read = device.read(device.norms_of(there, p));
    CHECK(std::ranges::equal(read->bytes(), std::as_bytes(std::span(actual))));
    for (std::size_t i = 0; i < given.size(); ++i) {
      INFO("norm of order " << p << ", " << to_string(dtype) << ", tensor " << i);
      // One accumulator in order, as the CPU's, rounds more than a tree does.
      CHECK(actual[i] == Approx(expected[i]).epsilon(dtype == DType::kFloat64 ? 1e-12 : 2e-2));
      std::vector<double> again(1);
      device.norm_many(again, {&there[i], 1}, p);
      CHECK(again[0] == actual[i]);  // alone or among others
    }
  }
  Tensor clipped = on(device, given[2]);
  const TensorPair in_place{&clipped, &clipped};
  const Tensor nan = Tensor::from<double>({std::numeric_limits<double>::quiet_NaN()}, {1});
  device.clip_many({&in_place, 1}, on(device, nan), 1, DType::kFloat32);
  CHECK(std::isnan(device.norm(clipped, 2)));
  Tensor with_nan = values({100}, dtype, 1);
  cpu_device().fill(with_nan, std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isnan(device.norm(on(device, with_nan), 2)));
  CHECK(std::isnan(device.norm(on(device, with_nan), std::numeric_limits<double>::infinity())));
}

/// What the checks of one device and type have in common.
struct NetworkCheck {
  Device& device;
  DType dtype;

  void operator()(const std::string& name, const Tensors& given, const Operation& operation) const {
    check_same(device, name, given, operation, tolerance_of(dtype));
  }
  Tensor values_of(Shape shape, std::uint64_t stream) const {
    return values(std::move(shape), dtype, stream);
  }
};

void check_products(const NetworkCheck& check) {
  const auto v = [&](Shape shape, std::uint64_t stream) {
    return check.values_of(std::move(shape), stream);
  };
  check("linear", {v({2, 3, 5}, 1), v({2, 3, 4}, 2), v({5, 4}, 3), v({5}, 4)},
        [](Device& d, Tensors& t) { d.kernels().linear_forward(t[0], t[1], t[2], t[3]); });
  check("linear without bias", {v({2, 3, 5}, 1), v({2, 3, 4}, 2), v({5, 4}, 3)},
        [](Device& d, Tensors& t) { d.kernels().linear_forward(t[0], t[1], t[2], {}); });
  check("linear backward",
        {v({6, 4}, 1), v({5, 4}, 2), v({5}, 3), v({6, 5}, 4), v({6, 4}, 5), v({5, 4}, 6)},
        [](Device& d, Tensors& t) {
          d.kernels().linear_backward(t[0], t[1], t[2], t[3], t[4], t[5]);
        });

  const Tensor ids = indices({3, 0, 3, 6, 1, 3, 2, 2, 3, 5, 0}, {11});
  check("embedding", {v({11, 4}, 1), v({7, 4}, 2), ids},
        [](Device& d, Tensors& t) { d.kernels().embedding_forward(t[0], t[1], t[2]); });
  check("embedding backward", {v({7, 4}, 1), v({11, 4}, 2), ids},
        [](Device& d, Tensors& t) { d.kernels().embedding_backward(t[0], t[1], t[2]); });

  for (const std::int64_t batch : {2, 4}) {  // fewer sequences than heads, and more
    const Shape context{batch, 5, 12}, probabilities{batch, 3, 5, 5}, qkv{batch, 5, 36};
    check("attention", {v(context, 1), v(probabilities, 2), v(qkv, 3)},
          [](Device& d, Tensors& t) { d.kernels().attention_forward(t[0], t[1], t[2], 3); });
    check("attention backward", {v(qkv, 1), v(context, 2), v(qkv, 3), v(probabilities, 4)},
          [](Device& d, Tensors& t) { d.kernels().attention_backward(t[0], t[1], t[2], t[3], 3); });
  }
}

void check_norms(const NetworkCheck& check) {
  const auto v = [&](Shape shape, std::uint64_t stream) {
    return check.values_of(std::move(shape), stream);
  };
  check("layer_norm", {v({4, 19}, 1), v({4}, 2), v({4}, 3), v({4, 19}, 4), v({19}, 5), v({19}, 6)},
        [](Device& d, Tensors& t) {
          d.kernels().layer_norm_forward(t[0], t[1], t[2], t[3], t[4], t[5], 1e-5);
        });
  check("layer_norm backward",
        {v({9, 19}, 1), v({19}, 2), v({19}, 3), v({9, 19}, 4), v({9, 19}, 5), v({9}, 6),
         positive_values({9}, check.dtype, 7), v({19}, 8)},
        [](Device& d, Tensors& t) {
          d.kernels().layer_norm_backward(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
        });
  check("batch_norm",
        {v({9, 4}, 1), v({4}, 2), v({4}, 3), v({4}, 4), v({4}, 5), v({9, 4}, 6), v({4}, 7),
         v({4}, 8)},
        [](Device& d, Tensors& t) {
          d.kernels().batch_norm_forward(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], 0.1, 1e-5);
        });
  check("batch_norm backward",
        {v({9, 4}, 1), v({4}, 2), v({4}, 3), v({9, 4}, 4), v({9, 4}, 5), v({4}, 6),
         positive_values({4}, check.dtype, 7), v({4}, 8)},
        [](Device& d, Tensors& t) {
          d.kernels().batch_norm_backward(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]);
        });
}

void check_activations_and_losses(const NetworkCheck& check) {
  const auto v = [&](Shape shape, std::uint64_t stream) {
    return check.values_of(std::move(shape), stream);
  };
  check("relu", {v({50}, 1), v({50}, 2)},
        [](Device& d, Tensors& t) { d.kernels().relu_forward(t[0], t[1]); });
  check("relu backward", {v({50}, 1), v({50}, 2), v({50}, 3)},
        [](Device& d, Tensors& t) { d.kernels().relu_backward(t[0], t[1], t[2]); });
  check("add", {v({50}, 1), v({50}, 2), v({50}, 3)},
        [](Device& d, Tensors& t) { d.kernels().add_forward(t[0], t[1], t[2]); });
  check("sum", {v({}, 1), v({300}, 2)},
        [](Device& d, Tensors& t) { d.kernels().sum_forward(t[0], t[1]); });
  check("sum backward", {v({30}, 1), v({}, 2)},
        [](Device& d, Tensors& t) { d.kernels().sum_backward(t[0], t[1]); });

  const Tensor targets = indices({3, 0, 12, 6, 1}, {5});
  check("cross_entropy", {v({}, 1), v({5}, 2), v({5, 13}, 3), targets},
        [](Device& d, Tensors& t) { d.kernels().cross_entropy_forward(t[0], t[1], t[2], t[3]); });
  check("cross_entropy backward", {v({5, 13}, 1), v({}, 2), v({5, 13}, 3), v({5}, 4), targets},
        [](Device& d, Tensors& t) {
          d.kernels().cross_entropy_backward(t[0], t[1], t[2], t[3], t[4]);
        });
}

void check_network(Device& device, DType dtype) {
  const NetworkCheck check{device, dtype};
  check_products(check);
  check_norms(check);
  check_activations_and_losses(check);
}

}  // namespace

void check_device_conformance(Device& device) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    for (const std::int64_t count : {1, 37, 3000}) check_elements(device, dtype, count);
    check_updates(device, dtype);
    check_norms(device, dtype);
    check_network(device, dtype);
  }
  check_many(device);
  check_same(device, "add of integers", {indices({1, 2, -3}, {3}), indices({5, -6, 7}, {3})},
             [](Device& d, Tensors& t) { d.add(t[0], t[1]); });
}

}  // namespace gradsync::test

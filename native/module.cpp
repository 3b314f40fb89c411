// The Python bindings. Types and layouts of arrays are checked here, their contents in the classes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include "networks/network.h"
#include "networks/target.h"
#include "runtime/limits.h"
#include "runtime/runtime.h"
#include "updates/gather.h"
#include "updates/losses.h"
#include "updates/random.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace rewirl;

namespace {

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Records = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Grid = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IntsOut = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatsOut = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using View = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using ReadOnly = nb::ndarray<nb::numpy, const float, nb::ndim<1>>;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

// Keeps the memory alive for as long as NumPy looks at it.
nb::capsule hold(const std::shared_ptr<float>& memory) {
  return nb::capsule(new std::shared_ptr<float>(memory), [](void* p) noexcept { delete static_cast<std::shared_ptr<float>*>(p); });
}

nb::ndarray<nb::numpy, float, nb::ndim<2>> array_of(const Batch& batch) {
  const size_t shape[2] = {size_t(batch.features()), size_t(batch.size())};
  const int64_t strides[2] = {batch.stride(), 1};
  return {batch.data(), 2, shape, hold(batch.memory()), strides};
}

template <class V>
V view(float* data, int64_t n, nb::handle owner) {
  const size_t shape[1] = {size_t(n)};
  return V(data, 1, shape, owner);
}

template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> copied(const std::vector<T>& values) {
  auto* data = new std::vector<T>(values);
  const size_t shape[1] = {data->size()};
  nb::capsule owner(data, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {data->data(), 1, shape, owner};
}

void expect_size(size_t got, int64_t wanted, const char* what) {
  if (int64_t(got) != wanted)
    throw std::invalid_argument(std::string(what) + " must have " + std::to_string(wanted) + " numbers, not " + std::to_string(got));
}

// Memory for a layer's positions and for one value per link.
template <class Out>
void expect_links(const Layer& layer, const IntsOut& positions, const Out& values, const char* what) {
  const int64_t links = layer.bias_at - layer.weight_at;  // not links(): another thread may be rewiring the layer
  expect_size(positions.size(), links / layer.shape.block, "positions");
  expect_size(values.size(), links, what);
}

// A numpy.random.Generator that the core draws from. NumPy continues after the bits that the core has taken.
class RandomStream {
 public:
  explicit RandomStream(const nb::object& generator) {
    if (!nb::hasattr(generator, "bit_generator"))
      throw nb::type_error("random numbers come from a numpy.random.Generator, as numpy.random.default_rng(seed) makes one");
    owner_ = generator.attr("bit_generator");
    acquire_ = owner_.attr("lock").attr("acquire");
    release_ = owner_.attr("lock").attr("release");
    bits_ = static_cast<const BitGenerator*>(PyCapsule_GetPointer(nb::object(owner_.attr("capsule")).ptr(), "BitGenerator"));
    if (!bits_) throw nb::python_error();
  }

  // Under the generator's own lock, as NumPy draws.
  template <class F>
  void draw(const F& from) {
    acquire_();
    try {
      from(*bits_);
    } catch (...) {
      release_();
      throw;
    }
    release_();
  }

 private:
  nb::object owner_, acquire_, release_;
  const BitGenerator* bits_;
};

void bind_network(nb::module_& m) {
  nb::class_<Network>(m, "Network")
      .def("__init__",
           [](Network* self, const std::vector<std::tuple<int64_t, int64_t, int64_t, Ints>>& layers, bool layer_norm,
              const std::optional<std::tuple<double, float, float, float, int64_t>>& batch_norm) {
             std::vector<Layer> made;
             for (const auto& [n_in, n_out, block, positions] : layers)
               made.emplace_back(checked_shape(n_in, n_out, block), positions.data(), int64_t(positions.size()), made.empty());
             BatchNormOptions norm{};
             if (batch_norm) std::tie(norm.momentum, norm.eps, norm.r_max, norm.d_max, norm.warmup) = *batch_norm;
             new (self) Network(std::move(made), layer_norm, batch_norm ? &norm : nullptr);
           },
           "layers"_a, "layer_norm"_a = false, "batch_norm"_a = nb::none())
      .def("forward", &Network::forward, "x"_a, "training"_a = false, Unlocked())
      .def("backward", &Network::backward, "dy"_a, "weights"_a, "begin"_a, "end"_a, Unlocked())
      .def(
          "step",
          [](Network& net, float lr, float beta1, float beta2, float eps, float weight_decay, bool decoupled, float sparse_rate) {
            net.step({lr, beta1, beta2, eps, weight_decay, decoupled, sparse_rate});
          },
          "lr"_a, "beta1"_a, "beta2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a, "sparse_rate"_a, Unlocked())
      .def(
          "act",
          [](Network& net, Floats x, FloatsOut y) {
            expect_size(x.size(), net.layers().front().shape.n_in, "an observation");
            expect_size(y.size(), net.layers().back().shape.n_out, "an output");
            nb::gil_scoped_release unlocked;
            net.act(x.data(), y.data());
          },
          nb::arg("x").noconvert(), nb::arg("y").noconvert())
      .def(
          "rewire",
          [](Network& net, int64_t layer, Ints dropped, Ints grown, std::optional<Floats> second_moments) {
            const int64_t links = int64_t(grown.size()) * net.layer(layer).shape.block;
            if (second_moments) expect_size(second_moments->size(), links, "second_moments");
            nb::gil_scoped_release unlocked;
            net.rewire(layer, dropped.data(), int64_t(dropped.size()), grown.data(), int64_t(grown.size()),
                       second_moments ? second_moments->data() : nullptr);
          },
          "layer"_a, nb::arg("dropped").noconvert(), nb::arg("grown").noconvert(),
          nb::arg("second_moments").noconvert() = nb::none())
      .def(
          "set_parameters",
          [](Network& net, Floats values) {
            expect_size(values.size(), net.size(), "parameters");
            net.set_parameters(values.data());
          },
          nb::arg("values").noconvert())
      .def_rw("steps", &Network::steps)
      .def(
          "by_position",
          [](const Network& net, int64_t index, IntsOut positions, IntsOut slots) {
            expect_links(net.layer(index), positions, slots, "slots");
            net.by_position(index, positions.data(), slots.data());
          },
          "layer"_a, nb::arg("positions").noconvert(), nb::arg("slots").noconvert())
      .def(
          "weights_by_position",
          [](const Network& net, int64_t index, IntsOut positions, FloatsOut weights) {
            expect_links(net.layer(index), positions, weights, "weights");
            net.weights_by_position(index, positions.data(), weights.data());
          },
          "layer"_a, nb::arg("positions").noconvert(), nb::arg("weights").noconvert())
      .def("ranges",
           [](const Network& net, int64_t index) {
             const Layer& layer = net.layer(index);
             return std::pair<int64_t, int64_t>(layer.weight_at, layer.bias_at);
           })
      .def(
          "dense_gradient",
          [](const Network& net, int64_t index, int64_t begin, int64_t end, Grid out) {
            if (int64_t(out.shape(0)) != end - begin || int64_t(out.shape(1)) != net.layer(index).shape.n_out)
              throw std::invalid_argument("the gradients of inputs must be an array (inputs, outputs of the layer)");
            nb::gil_scoped_release unlocked;
            net.dense_gradient(index, begin, end, out.data());
          },
          "layer"_a, "begin"_a, "end"_a, nb::arg("out").noconvert())
      .def("statistics",
           [](nb::handle_t<Network> self, int64_t index) {
             Network& net = nb::cast<Network&>(self);
             const int64_t n = net.layer(index).shape.n_in;
             if (!net.norm()) throw std::invalid_argument("a network without batch normalisation has no statistics");
             return std::make_pair(view<ReadOnly>(net.norm()->mean(size_t(index)), n, self),
                                   view<ReadOnly>(net.norm()->variance(size_t(index)), n, self));
           })
      .def(
          "set_statistics",
          [](Network& net, int64_t index, Floats mean, Floats variance) {
            for (const Floats* values : {&mean, &variance}) expect_size(values->size(), net.layer(index).shape.n_in, "statistics");
            net.set_statistics(index, mean.data(), variance.data());
          },
          "layer"_a, nb::arg("mean").noconvert(), nb::arg("variance").noconvert())
      .def("folded", [](Network& net) { return copied(net.folded()); })
      .def_prop_rw(
          "batches", [](const Network& net) { return net.norm() ? net.norm()->steps : 0; },
          [](Network& net, int64_t batches) { if (net.norm()) net.norm()->steps = batches; })
      .def_prop_ro("parameters", [](nb::handle_t<Network> self) {
        Network& net = nb::cast<Network&>(self);
        return view<ReadOnly>(net.parameters(), net.size(), self);
      }, nb::rv_policy::reference)
      .def_prop_ro("gradients", [](nb::handle_t<Network> self) {
        Network& net = nb::cast<Network&>(self);
        return view<View>(net.gradients(), net.size(), self);
      }, nb::rv_policy::reference)
      .def_prop_ro("first_moments", [](nb::handle_t<Network> self) {
        Network& net = nb::cast<Network&>(self);
        return view<View>(net.first_moments(), net.size(), self);
      }, nb::rv_policy::reference)
      .def_prop_ro("second_moments", [](nb::handle_t<Network> self) {
        Network& net = nb::cast<Network&>(self);
        return view<View>(net.second_moments(), net.size(), self);
      }, nb::rv_policy::reference)
      .def("layer_input", &Network::layer_input, "layer"_a)
      .def("layer_delta", &Network::layer_delta, "layer"_a)
      .def("bytes", &Network::bytes);
}

void bind_target(nb::module_& m) {
  nb::class_<Target>(m, "Target")
      .def(nb::init<std::shared_ptr<Network>>(), "online"_a)
      .def("forward", &Target::forward, "x"_a, Unlocked())
      .def("update", &Target::update, "tau"_a, Unlocked())
      .def("weights", [](const Target& target, int64_t index) {
        const auto& memory = target.layer(index).weights;
        const Layer& layer = target.online()->layer(index);  // not links(): another thread may be rewiring the layer
        return view<View>(memory.get(), layer.bias_at - layer.weight_at, hold(memory));
      }, "layer"_a)
      .def("bias", [](const Target& target, int64_t index) {
        const auto& memory = target.layer(index).bias;
        return view<View>(memory.get(), target.online()->layer(index).shape.n_out, hold(memory));
      }, "layer"_a)
      .def("extra", [](const Target& target, int64_t layer) {
        const auto [positions, values] = target.extra(layer);
        return std::make_pair(copied(std::vector<int64_t>(positions.begin(), positions.end())), copied(values));
      }, "layer"_a)
      .def("set_extra", [](Target& target, int64_t layer, Ints positions, Floats weights) {
        expect_size(weights.size(), int64_t(positions.size()) * target.online()->layer(layer).shape.block, "extra weights");
        target.set_extra(layer, positions.data(), int64_t(positions.size()), weights.data());
      }, "layer"_a, nb::arg("positions").noconvert(), nb::arg("weights").noconvert())
      .def("alive", &Target::alive, "layer"_a)
      .def("bytes", &Target::bytes);
}

// The same for several networks, which threads may work on at the same time.
template <class Net, class F>
void for_each_of(const std::vector<Net*>& nets, const F& work) {
  for (size_t i = 0; i < nets.size(); ++i) {
    if (!nets[i]) throw nb::type_error("None is no network");
    if (std::count(nets.begin(), nets.end(), nets[i]) > 1) throw std::invalid_argument("a network is there more than once");
  }
  each(int64_t(nets.size()), [&](int64_t i) { work(*nets[size_t(i)], size_t(i)); });
}

template <class Net, class... Options>
std::vector<Batch> forward_each(const std::vector<Net*>& nets, const Batch& x, Options... options) {
  std::vector<Batch> out(nets.size());
  clear_padding(x);  // here, because two networks might do so at the same time
  for_each_of(nets, [&](Net& net, size_t i) { out[i] = net.forward(x, options...); });
  return out;
}

std::vector<Batch> backward_each(const std::vector<Network*>& nets, const std::vector<Batch>& dys, bool weights, int64_t begin,
                                 int64_t end) {
  if (dys.size() != nets.size())
    throw std::invalid_argument(std::to_string(nets.size()) + " networks need as many gradients at their outputs, not " +
                                std::to_string(dys.size()));
  std::vector<Batch> out(nets.size());
  for (const Batch& dy : dys) clear_padding(dy);
  for_each_of(nets, [&](Network& net, size_t i) { out[i] = net.backward(dys[i], weights, begin, end); });
  return out;
}

void bind_each(nb::module_& m) {
  m.def("forward_each", &forward_each<Network, bool>, "networks"_a, "x"_a, "training"_a = false, Unlocked());
  m.def("forward_each", &forward_each<Target>, "targets"_a, "x"_a, Unlocked());
  m.def("backward_each", &backward_each, "networks"_a, "dys"_a, "weights"_a, "begin"_a, "end"_a, Unlocked());
  m.def(
      "regress_each",
      [](const std::vector<Network*>& nets, const Batch& x, const Batch& y, float lr, float beta1, float beta2, float eps,
         float weight_decay, bool decoupled, float sparse_rate) {
        for (const Network* net : nets)
          if (net && net->overwrites(y))
            throw std::invalid_argument("y is a network's own output, which forward overwrites: give it a copy");
        std::vector<std::pair<double, double>> out(nets.size());
        clear_padding(x);
        for_each_of(nets, [&](Network& net, size_t i) { out[i] = regress(net, x, y, {lr, beta1, beta2, eps, weight_decay, decoupled, sparse_rate}); });
        return out;
      },
      "networks"_a, "x"_a, "y"_a, "lr"_a, "beta1"_a, "beta2"_a, "eps"_a, "weight_decay"_a, "decoupled"_a, "sparse_rate"_a,
      Unlocked());
  m.def(
      "update_each",
      [](const std::vector<Target*>& targets, float tau) {
        for_each_of(targets, [&](Target& target, size_t) { target.update(tau); });
      },
      "targets"_a, "tau"_a, Unlocked());
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The sparse engine: kernels on links.";
  kernels();  // reports an invalid REWIRL_ISA at import, not at the first forward

  nb::class_<Batch>(m, "Batch")
      .def(nb::init<int64_t, int64_t>(), "features"_a, "size"_a)
      .def("rows", &Batch::rows, "begin"_a, "end"_a)
      .def_prop_ro("features", &Batch::features)
      .def_prop_ro("size", &Batch::size)
      .def_prop_ro("array", [](const Batch& batch) {
        if (batch.features() == 0) throw std::invalid_argument("nothing was asked for, so nothing is there");
        return array_of(batch);
      }, nb::rv_policy::reference);

  nb::class_<RandomStream>(m, "RandomStream")
      .def(nb::init<nb::object>(), nb::arg("generator").none())
      .def(
          "integers",
          [](RandomStream& stream, int64_t below, IntsOut out) {
            stream.draw([&](const BitGenerator& bits) { draw_integers(bits, below, out.data(), int64_t(out.size())); });
          },
          "below"_a, nb::arg("out").noconvert())
      .def(
          "normal",
          [](RandomStream& stream, const Batch& out) { stream.draw([&](const BitGenerator& bits) { draw_normal(bits, out); }); },
          "out"_a);

  bind_network(m);
  bind_target(m);
  bind_each(m);

  m.def(
      "gather",
      [](Records records, Ints chosen, int64_t first, const Batch& out) {
        nb::gil_scoped_release unlocked;
        gather(records.data(), int64_t(records.shape(0)), int64_t(records.shape(1)), chosen.data(), int64_t(chosen.size()),
               first, out);
      },
      nb::arg("records").noconvert(), nb::arg("chosen").noconvert(), "first"_a, "out"_a);
  m.def(
      "extend",
      [](Records records, Ints chosen, int64_t newest, int64_t reward, int64_t n, float gamma, const Batch& out, int64_t apart) {
        nb::gil_scoped_release unlocked;
        extend(records.data(), int64_t(records.shape(0)), int64_t(records.shape(1)), chosen.data(), int64_t(chosen.size()),
               newest, reward, n, gamma, out, apart);
      },
      nb::arg("records").noconvert(), nb::arg("chosen").noconvert(), "newest"_a, "reward"_a, "n"_a, "gamma"_a, "out"_a,
      "apart"_a = 1);
  m.def(
      "standardise",
      [](const Batch& x, Floats mean, Floats std, float limit) {
        if (mean.size() != std.size()) throw std::invalid_argument("mean and std must have one number each per feature");
        standardise(x, mean.data(), std.data(), int64_t(mean.size()), limit);
      },
      "x"_a, nb::arg("mean").noconvert(), nb::arg("std").noconvert(), "limit"_a);
  m.def("tanh", nb::overload_cast<const Batch&, const Batch&>(&rewirl::tanh), "out"_a, "action"_a);
  m.def("smooth", &smooth, "action"_a, "noise"_a, "sigma"_a, "c"_a);
  m.def("bellman", &bellman, "reward"_a, "terminated"_a, "q1"_a, "q2"_a, "gamma"_a, "y"_a);
  m.def("soft_bellman", &soft_bellman, "reward"_a, "terminated"_a, "q1"_a, "q2"_a, "gamma"_a, "alpha"_a, "log_prob"_a, "y"_a);
  m.def("ascend", &ascend, "q"_a, "dq"_a);
  m.def("ascend_lower", &ascend_lower, "q1"_a, "q2"_a, "dq1"_a, "dq2"_a);
  m.def("through_tanh", &through_tanh, "action"_a, "da"_a, "du"_a);
  m.def("squash", &squash, "out"_a, "noise"_a, "action"_a, "std"_a, "log_prob"_a);
  m.def("through_squash", &through_squash, "out"_a, "noise"_a, "action"_a, "std"_a, "da1"_a, "da2"_a, "alpha"_a, "d_out"_a);
  m.def("isa", [] { return kernels().name; });
  m.def("available_isas", &available_isas);
  m.def("select_isa", &select_isa, "name"_a);
  m.def("threads", &threads);
  m.def("set_threads", &set_threads, "n"_a, "spin"_a);
  m.def("kernel_seconds", &kernel_seconds);
  m.attr("MAX_WIDTH") = kMaxWidth;
  m.attr("MAX_BATCH") = kMaxBatch;
  m.attr("MAX_THREADS") = kMaxThreads;
  m.attr("BLOCKS") = nb::make_tuple(kBlocks[0], kBlocks[1], kBlocks[2]);
  m.attr("LOG_STD") = nb::make_tuple(kLogStdMin, kLogStdMax);
  m.attr("compiler") = REWIRL_COMPILER;
  m.attr("sources") = REWIRL_SOURCES;
}

#include <algorithm>

#include "networks/network.h"
#include "networks/require.h"
#include "networks/workspace.h"
#include "runtime/runtime.h"

namespace rewirl {

Layer::Layer(const Shape& shape_, const int64_t* positions, int64_t n_positions, bool is_first)
    : shape(shape_), first(is_first) {
  ByPosition order;
  require(n_positions > 0, "a layer needs at least one link");
  check_positions(shape, positions, n_positions, order.positions);
  GroupedLayer made;
  group(order, made, workspace().wiring);
  wire(made);
  back_weights = aligned_floats(int64_t(slot.size()));
}

void Layer::group(ByPosition& order, GroupedLayer& to, WiringRoom& room) const {
  rewirl::group(shape, !first, order, to, room);
}

void Layer::wire(GroupedLayer& links) noexcept {
  std::swap(static_cast<GroupedLayer&>(*this), links);
  wiring = new_number();
}

const ByPosition& Layer::order(Workspace& work) const {
  for (const auto& kept : work.orders)
    if (kept.wiring == wiring) return kept.order;
  auto& oldest = work.orders[work.next_order++ % work.orders.size()];
  oldest.wiring = 0;  // not published until it is complete
  by_position(shape, outputs, oldest.order);
  oldest.wiring = wiring;
  return oldest.order;
}

const float* Layer::weights_by_inputs(const float* flat) {
  if (by_inputs_now) return back_weights.get();
  const float* w = flat + weight_at;
  float* to = back_weights.get();
  const int64_t n = links();
  for (int64_t k = 0; k < n; k += kPad) __builtin_prefetch(w + k);  // the loop below reads out of order: prefetched in order, the loads overlap
  const uint32_t* from = slot.data();
  parallel(n, kPad, n * 8, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) to[k] = w[from[k]];
  });
  by_inputs_now = true;
  return to;
}

void Layer::forward(const float* weights, const float* bias, const Groups& extra, const Batch& x, bool relu, const Batch& y) const {
  Forward args{};
  args.links = outputs.view(weights);
  args.extra = extra;
  args.bias = bias;
  args.x = x.data();
  args.y = y.data();
  args.stride = x.stride();
  args.batch = int(x.size());
  args.rows = shape.n_out;
  args.relu = relu;
  for_groups(args.links, 0, outputs.groups(), args.batch, [&](int b, int e) { kernels().forward(args, b, e); });
}

void Layer::input_gradients(const float* flat, const Batch& dy, const Batch* gate, int begin, int end, const Batch& dx,
                            Workspace& work) {
  const int batch = int(dy.size());
  if (has_inputs()) {
    Forward args{};
    args.links = inputs.view(weights_by_inputs(flat));
    args.gate = gate ? gate->data() : nullptr;
    args.x = dy.data();
    args.y = dx.data();
    args.stride = dy.stride();
    args.batch = batch;
    args.rows = shape.n_in;
    const bool all = begin == 0 && end == shape.n_in;  // or the groups that contain begin .. end, whose rows are then in order
    const int from = all ? 0 : begin / 4, to = all ? inputs.groups() : (end + 3) / 4;
    for_groups(args.links, from, to, batch, [&](int b, int e) { kernels().forward(args, b, e); });
    return;
  }
  const Kernels& use = kernels();
  float* sums = outputs.all ? nullptr : work.numbers(shape.n_in * dx.stride());
  const InputGradients args{outputs.view(flat + weight_at), dy.data(), gate ? gate->data() : nullptr, dx.data(), sums,
                            dy.stride(), batch, shape.n_out, shape.n_in, begin, end};
  const int vectors = (batch + use.width - 1) / use.width;
  parallel(vectors, 1, links() * batch, [&](int64_t b, int64_t e) { use.input_gradients(args, int(b), int(e)); });
}

bool Layer::one_dense_output() const { return shape.n_out == 1 && links() == shape.n_in; }
bool Layer::very_sparse() const { return has_inputs() && inputs.patterns == PatternSet::four; }

void Layer::both_gradients(const Kernels& use, const float* flat, const Batch& x, const Batch& dy, bool gate, const Batch& dx,
                           float* flat_gradients, Workspace& work) {
  BothGradients args{};
  args.links = inputs.view(weights_by_inputs(flat));
  args.x = x.data();
  args.dy = dy.data();
  args.dx = dx.data();
  args.dw = work.numbers(links());
  args.stride = dy.stride();
  args.batch = int(dy.size());
  args.rows = shape.n_in;
  args.gate = gate;
  float* to = flat_gradients + weight_at;
  for_groups(args.links, 0, inputs.groups(), 2 * args.batch, [&](int begin, int end) {
    use.both_gradients(args, begin, end);
    // Input by input to output by output, while they are in the caches.
    for (int g = begin; g < end; ++g) {
      const uint16_t* count = inputs.count.data() + list_of(PatternSet::four).size * size_t(g);
      const float* dw = args.dw + inputs.column[size_t(g)];
      const uint32_t *quads = slot.data() + inputs.column[size_t(g)], *single = quads + 4 * count[0];
      for (int r = 0; r < 4; ++r) {
        for (int i = 0; i < count[0]; ++i) to[quads[4 * i + r]] = *dw++;
        for (int i = 0; i < count[1 + r]; ++i) to[*single++] = *dw++;
      }
    }
  });
}

}  // namespace rewirl

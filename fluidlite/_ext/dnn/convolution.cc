/* Convolution forward and backward over two or three dimensions. The primitives are made at the first run of a call and kept in
 * its state; images stand in plain order with channels first or last, filters in plain OIHW order, and are reordered where the
 * primitive prefers a blocked layout, in memory that all share which run on a thread. A batch is cut into pieces of images by its size, and one of few positions into pieces of channels of what
 * is made; each has a primitive of its own, which works on one thread. */
#include "dnn/convolution.h"

#include "dnn/geometry.h"
#include "dnn/library.h"
#include "dnn/primitive.h"
#include "fork_gate.h"
#include "parallel.h"
#include "workspace.h"

#if FL_HAVE_DNNL

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace fl {
namespace {

using dnn::check;
using dnn::Convolution;
using dnn::Failure;
using dnn::Family;
using dnn::Geometry;
using dnn::Handle;
using dnn::is_slow;
using dnn::Layout;
using dnn::lib;
using dnn::make;

using Descriptor = Handle<dnnl_primitive_desc_t>;

/* `channels`: how the factors and shifts of a normalisation lie, or NULL (as it is by default). There is no relu behind them: the library's makes 0
 * of what is not a number. */
Handle<dnnl_primitive_attr_t> attributes(const_dnnl_memory_desc_t channels = nullptr) {
    auto attr = make(lib.primitive_attr_create);
    check(lib.primitive_attr_set_scratchpad_mode(attr.get(), dnnl_scratchpad_mode_user));
    if (channels != nullptr) {
        const auto after = make(lib.post_ops_create);
        check(lib.post_ops_append_binary(after.get(), dnnl_binary_mul, channels));
        check(lib.post_ops_append_binary(after.get(), dnnl_binary_add, channels));
        check(lib.primitive_attr_set_post_ops(attr.get(), after.get()));
    }
    return attr;
}

Descriptor forward_descriptor(const Geometry &g, const_dnnl_memory_desc_t bias, dnnl_prop_kind_t kind,
                              const_dnnl_memory_desc_t channels = nullptr) {
    const Layout input = g.input_layout(true), filter = g.filter_layout(true), output = g.output_layout(true);
    const auto attr = attributes(channels);
    return make(lib.convolution_forward_primitive_desc_create, lib.cpu, kind, dnnl_convolution_auto,
                const_dnnl_memory_desc_t(input.get()), const_dnnl_memory_desc_t(filter.get()), bias,
                const_dnnl_memory_desc_t(output.get()), g.strides, g.dilates, g.pad_before, g.pad_after,
                const_dnnl_primitive_attr_t(attr.get()));
}

/* Which channels a batch of few positions is cut by: those of what is made; none where it is cut by images alone. */
enum class Cut { images, input, output };

/* What there is to do around the primitive of a piece: nothing, mostly; and whether the primitive for images in blocks is the quicker one. */
struct Alone {
    static bool in_blocks(const Geometry &) { return true; }
    static void before(const Convolution &, const fl_call *) {}
    static void after(const Convolution &, const Geometry &, void *) {}
};

/* A relu of our own: what is not a number stays. */
void relu_of(const Geometry &g, void *images) {
    const int64_t places = g.output[2] * g.output[3], size = g.output[1] * places;
    float *y = static_cast<float *>(images);
    for (int64_t n = 0; g.relu && n < g.output[0]; ++n, y += g.output_room * places) {
        for (int64_t k = 0; k < size; ++k) y[k] = y[k] < 0 ? 0 : y[k];
    }
}

void connect_forward(Convolution &made, const Geometry &g, const_dnnl_primitive_desc_t desc, const Layout &bias, bool biased) {
    made.create(desc);
    made.connect(desc, 0, DNNL_ARG_SRC, g.input_layout(false), false, g.input_alike());
    made.connect(desc, 1, DNNL_ARG_WEIGHTS, g.filter_layout(false), false);
    if (biased) made.connect(desc, 2, DNNL_ARG_BIAS, bias, false);
    made.connect(desc, 3, DNNL_ARG_DST, g.output_layout(false), true, g.output_alike());
}

struct Forward : Alone {
    static constexpr int input = 0, output = 3, images = 3, filter = 1, bias = 2;
    static constexpr Cut cut = Cut::output;

    /* Without strides windows have a primitive for channels that come last, which gains more than it costs to bring the images into
     * that order where blocks are short, or where they are in it, as there is one block. */
    static bool in_blocks(const Geometry &g) {
        const bool flat = g.filter_rank > g.rank || (g.filter[2] == 1 && g.filter[3] == 1) || g.strides[0] > 1 || g.strides[1] > 1;
        return flat || (g.block > 8 && (g.input[1] > g.block || g.output[1] > g.block));
    }

    static size_t result_bytes(const Geometry &g) { return g.output_bytes(); }

    static void after(const Convolution &, const Geometry &g, void *images) { relu_of(g, images); }

    static void build(Convolution &made, const Geometry &g, void **operands) {
        const Layout bias = Geometry::layout(1, g.bias, dnnl_a);
        const bool biased = operands[2] != nullptr;
        const Descriptor desc = forward_descriptor(g, biased ? bias.get() : nullptr, dnnl_forward_inference);
        connect_forward(made, g, desc.get(), bias, biased);
    }
};

/* A convolution and what batch normalisation by moving statistics makes of it. */
struct Normalised {
    static constexpr int input = 0, output = 3, images = 3, filter = 1, bias = 2;
    static constexpr Cut cut = Cut::images;

    static bool in_blocks(const Geometry &g) { return Forward::in_blocks(g); }

    static size_t result_bytes(const Geometry &g) { return g.output_bytes(); }

    static void build(Convolution &made, const Geometry &g, void **operands) {
        const Layout bias = Geometry::layout(1, g.bias, dnnl_a);
        const bool biased = operands[2] != nullptr;
        const_dnnl_memory_desc_t added = biased ? bias.get() : nullptr;
        const dnnl_dims_t dims = {1, g.bias[0], 1, 1};
        const Layout channels = Geometry::layout(4, dims, dnnl_nchw);
        made.norm.numbers.reset(new float[static_cast<size_t>(2 * g.bias[0])]);
        made.norm.factor = make(lib.memory_create, const_dnnl_memory_desc_t(channels.get()), lib.cpu,
                                static_cast<void *>(made.norm.numbers.get()));
        made.norm.shift = make(lib.memory_create, const_dnnl_memory_desc_t(channels.get()), lib.cpu,
                               static_cast<void *>(made.norm.numbers.get() + g.bias[0]));
        Descriptor desc = forward_descriptor(g, added, dnnl_forward_inference, channels.get());
        made.norm.apart = is_slow(desc.get());
        if (made.norm.apart) desc = forward_descriptor(g, added, dnnl_forward_inference);
        connect_forward(made, g, desc.get(), bias, biased);
    }

    static void before(const Convolution &made, const fl_call *call) {
        const int64_t channels = call->i[4];
        const float *scale = static_cast<float *>(call->p[4]), *bias = static_cast<float *>(call->p[5]);
        const float *mean = static_cast<float *>(call->p[6]), *variance = static_cast<float *>(call->p[7]);
        float *factor = made.norm.numbers.get(), *shift = factor + channels;
        for (int64_t c = 0; c < channels; ++c) {
            const double f = static_cast<double>(scale[c]) / std::sqrt(static_cast<double>(variance[c]) + call->f[0]);
            factor[c] = static_cast<float>(f);
            shift[c] = static_cast<float>(static_cast<double>(bias[c]) - static_cast<double>(mean[c]) * f);
        }
    }

    static void after(const Convolution &made, const Geometry &g, void *images) {
        if (made.norm.apart) normalise(made, g, static_cast<float *>(images));
        relu_of(g, images);
    }

    static void normalise(const Convolution &made, const Geometry &g, float *y) {
        const int64_t block = g.output_in_blocks ? g.block : 1, size = g.output[2] * g.output[3];
        const float *factor = made.norm.numbers.get(), *shift = factor + g.output[1];
        for (int64_t row = 0; row < g.output[0] * g.output[1]; row += block) {
            const float *f = factor + row % g.output[1], *s = shift + row % g.output[1];
            for (int64_t k = 0; k < size; ++k, y += block) {
                for (int64_t c = 0; c < block; ++c) y[c] = y[c] * f[c] + s[c];
            }
        }
    }
};

struct GradInput : Alone {
    static constexpr int input = 2, output = 2, images = 1, filter = 0, bias = -1;
    static constexpr Cut cut = Cut::input;

    static size_t result_bytes(const Geometry &g) { return g.input_bytes(); }

    static void build(Convolution &made, const Geometry &g, void **) {
        const Descriptor hint = forward_descriptor(g, nullptr, dnnl_forward_training);
        const auto attr = attributes();
        const Layout input = g.input_layout(true), filter = g.filter_layout(true), output = g.output_layout(true);
        const Descriptor desc =
            make(lib.convolution_backward_data_primitive_desc_create, lib.cpu, dnnl_convolution_auto,
                 const_dnnl_memory_desc_t(input.get()), const_dnnl_memory_desc_t(filter.get()),
                 const_dnnl_memory_desc_t(output.get()), g.strides, g.dilates, g.pad_before, g.pad_after,
                 const_dnnl_primitive_desc_t(hint.get()), const_dnnl_primitive_attr_t(attr.get()));
        made.create(desc.get());
        made.connect(desc.get(), 0, DNNL_ARG_WEIGHTS, g.filter_layout(false), false);
        made.connect(desc.get(), 1, DNNL_ARG_DIFF_DST, g.output_layout(false), false, g.output_alike());
        made.connect(desc.get(), 2, DNNL_ARG_DIFF_SRC, g.input_layout(false), true, g.input_alike());
    }
};

struct GradFilter : Alone {
    static constexpr int input = 0, output = 2, images = 1, filter = 2, bias = -1;
    static constexpr Cut cut = Cut::output;

    static size_t result_bytes(const Geometry &g) { return g.filter_bytes(); }

    static void build(Convolution &made, const Geometry &g, void **) {
        const Descriptor hint = forward_descriptor(g, nullptr, dnnl_forward_training);
        const auto attr = attributes();
        const Layout input = g.input_layout(true), filter = g.filter_layout(true), output = g.output_layout(true);
        const Descriptor desc =
            make(lib.convolution_backward_weights_primitive_desc_create, lib.cpu, dnnl_convolution_auto,
                 const_dnnl_memory_desc_t(input.get()), const_dnnl_memory_desc_t(filter.get()),
                 const_dnnl_memory_desc_t(nullptr), const_dnnl_memory_desc_t(output.get()), g.strides, g.dilates,
                 g.pad_before, g.pad_after, const_dnnl_primitive_desc_t(hint.get()),
                 const_dnnl_primitive_attr_t(attr.get()));
        made.create(desc.get());
        made.connect(desc.get(), 0, DNNL_ARG_SRC, g.input_layout(false), false, g.input_alike());
        made.connect(desc.get(), 1, DNNL_ARG_DIFF_DST, g.output_layout(false), false, g.output_alike());
        made.connect(desc.get(), 2, DNNL_ARG_DIFF_WEIGHTS, g.filter_layout(false), true);
    }
};

/* Has the library compute, and prepare to compute, on the calling thread alone. */
class OneThread {
  public:
    OneThread() : before_(dnn::max_threads != nullptr ? dnn::max_threads() : 1) { set(1); }
    ~OneThread() { set(before_); }
    OneThread(const OneThread &) = delete;
    OneThread &operator=(const OneThread &) = delete;

  private:
    void set(int count) const {
        if (before_ > 1 && dnn::set_threads != nullptr) dnn::set_threads(count);
    }

    const int before_;
};

struct Pieces {
    explicit Pieces(const Geometry &geometry) : whole(geometry) {}

    Geometry whole;
    bool by_channels = false;
    std::vector<Convolution> parts;
    std::vector<float> sums; /* of the filter's gradient, for each piece but the first */
};

void free_pieces(void *state) { delete static_cast<Pieces *>(state); }

template <class Kind> constexpr bool adds_up = Kind::input != Kind::images && Kind::output != Kind::images && Kind::output != Kind::input;

/* What the operands of a piece are: its images, and for sums over all images memory of its own. */
template <class Kind> void operands_of(Pieces &made, int64_t which, const fl_call *call, void **operands) {
    const Geometry &g = made.whole;
    const int64_t count = static_cast<int64_t>(made.parts.size()), first = g.first_image(which, count);
    for (int k = 0; k < call->n_p; ++k) operands[k] = call->p[k];
    if (made.by_channels) {
        const auto move = [operands](int operand, int64_t elements) {
            if (operand >= 0 && operands[operand] != nullptr) operands[operand] = static_cast<float *>(operands[operand]) + elements;
        };
        if (Kind::cut == Cut::input) {
            const int64_t begin = which * g.input[1] / count;
            move(Kind::input, begin * g.channel_step(g.input));
            move(Kind::filter, begin * static_cast<int64_t>(g.bytes(g.rank - 2, g.filter + 2) / sizeof(float)));
        } else {
            const int64_t begin = which * g.output[1] / count;
            move(Kind::images, begin * g.channel_step(g.output));
            move(Kind::filter, begin * static_cast<int64_t>(g.filter_bytes() / sizeof(float)) / g.output[1]);
            move(Kind::bias, begin);
        }
        return;
    }
    const int64_t in = static_cast<int64_t>(g.input_bytes()) / g.input[0], out = static_cast<int64_t>(g.output_bytes()) / g.input[0];
    operands[Kind::input] = static_cast<char *>(operands[Kind::input]) + first * in;
    operands[Kind::images] = static_cast<char *>(operands[Kind::images]) + first * out;
    if (adds_up<Kind> && which > 0) {
        operands[Kind::output] = made.sums.data() + (which - 1) * static_cast<int64_t>(g.filter_bytes() / sizeof(float));
    }
}

/* Adds up the pieces' sums, in their order. */
void add_up(const Pieces &made, float *total) {
    const int64_t n = static_cast<int64_t>(made.whole.filter_bytes() / sizeof(float));
    const int64_t count = static_cast<int64_t>(made.parts.size());
    const float *sums = made.sums.data();
    in_ranges(n, count * static_cast<int64_t>(sizeof(float)), [=](int64_t begin, int64_t end) {
        for (int64_t piece = 1; piece < count; ++piece) {
            const float *part = sums + (piece - 1) * n;
            for (int64_t k = begin; k < end; ++k) total[k] += part[k];
        }
    });
}

/* A primitive that takes images in blocks, if the library has one that is quick, or else one that takes them as it likes. */
template <class Kind> void build(Convolution &part, const Geometry &g, void **operands) {
    if (g.block > 1 && Kind::in_blocks(g)) {
        try {
            Kind::build(part, g, operands);
            if (!part.slow) return;
        } catch (const Failure &failure) {
            if (failure.status != dnnl_unimplemented) throw;
        }
        part = Convolution();
    }
    Kind::build(part, g.as_liked(), operands);
}

template <class Kind> int convolve(fl_call *call, Family family) {
    try {
        const LibraryCall entered(threads.inside());
        if (call->state == nullptr) {
            const OneThread one;
            const Geometry g(call, family);
            if (const int k = g.impossible(); k >= 0) {
                call->err[0] = g.reach(k);
                call->err[1] = g.padded(k);
                return FL_TOO_LARGE;
            }
            if (g.empty()) {
                if (const size_t bytes = Kind::result_bytes(g)) std::memset(call->p[Kind::output], 0, bytes);
                return FL_OK;
            }
            auto made = std::make_unique<Pieces>(g);
            int64_t count = std::max(g.pieces(2048), std::min<int64_t>(g.pieces(1024), 2));
            if (count == 1 && Kind::cut != Cut::images) {
                const bool in = Kind::cut == Cut::input;
                const size_t shared = in ? g.output_bytes() : g.input_bytes();
                count = g.pieces_of(in ? g.input[1] : g.output[1], static_cast<int64_t>(shared / sizeof(float)));
                made->by_channels = count > 1;
            }
            if (count == 1) count = std::min<int64_t>(g.pieces(512), 2);
            made->parts.resize(static_cast<size_t>(count));
            if (adds_up<Kind> && !made->by_channels) made->sums.resize(static_cast<size_t>(count - 1) * g.filter_bytes() / sizeof(float));
            for (int64_t k = 0; k < count; ++k) {
                Convolution &part = made->parts[static_cast<size_t>(k)];
                build<Kind>(part, !made->by_channels ? g.piece(k, count) : Kind::cut == Cut::input ? g.part_of_input(count) : g.part_of_output(count),
                            call->p);
                part.stream = make(lib.stream_create, lib.cpu, static_cast<unsigned>(dnnl_stream_default_flags));
            }
            call->state = made.release();
            call->free_state = free_pieces;
        }
        Pieces &made = *static_cast<Pieces *>(call->state);
        const int64_t count = static_cast<int64_t>(made.parts.size());
        std::atomic<dnnl_status_t> failed{dnnl_success};
        in_pieces(count, [&made, call, count, &failed](int64_t k) {
            try {
                const OneThread one;
                const Convolution &part = made.parts[static_cast<size_t>(k)];
                void *operands[8];
                operands_of<Kind>(made, k, call, operands);
                Kind::before(part, call);
                part.run(operands);
                Kind::after(part, made.by_channels ? made.whole.part_of_output(count) : made.whole.piece(k, count), operands[Kind::output]);
            } catch (const Failure &failure) {
                failed.store(failure.status);
            } catch (const std::bad_alloc &) {
                failed.store(dnnl_out_of_memory);
            }
        });
        check(failed.load());
        if (adds_up<Kind> && count > 1 && !made.by_channels) add_up(made, static_cast<float *>(call->p[Kind::output]));
    } catch (const Failure &failure) {
        call->err[0] = failure.status;
        return FL_LIBRARY;
    } catch (const std::bad_alloc &) {
        call->err[0] = sizeof(Convolution);
        return FL_NO_MEMORY;
    }
    return FL_OK;
}

template <class Kind, int DIMS, bool LAST, bool BLOCKS = false> int convolution(fl_call *call) {
    return convolve<Kind>(call, {DIMS, LAST, BLOCKS});
}

}  // namespace

#define FLAT "|mmmmmmmddiiiiddd|"
#define DEEP "|mmmmmmmmmdddiiiiiidddd||?"
#define FL_FAMILY(NAME, DIMS, LAST, SIZES)                                    \
    {NAME ".f32", convolution<Forward, DIMS, LAST>, "xxnx" SIZES},            \
    {NAME "_grad_input.f32", convolution<GradInput, DIMS, LAST>, "xxx" SIZES}, \
    {NAME "_grad_filter.f32", convolution<GradFilter, DIMS, LAST>, "xxx" SIZES}
#define BLOCKED "|mmmmmmmddiiiiddddmm|"
#define BLOCKED_ACT "|mmmmmmmddiiiiddddmm[m]|"

std::vector<fl_entry> convolutions() {
    return {FL_FAMILY("conv2d", 2, false, FLAT "|?"), FL_FAMILY("conv2d_last", 2, true, FLAT "|?"),
            FL_FAMILY("conv3d", 3, false, DEEP), FL_FAMILY("conv3d_last", 3, true, DEEP),
            {"conv2d_norm.f32", convolution<Normalised, 2, false>, "xxnxxxxx" FLAT "f|?"},
            {"conv2d_blocks.f32", convolution<Forward, 2, false, true>, "xxnx" BLOCKED_ACT "|?"},
            {"conv2d_blocks_norm.f32", convolution<Normalised, 2, false, true>, "xxnxxxxx" BLOCKED_ACT "f|?"},
            {"conv2d_blocks_grad_input.f32", convolution<GradInput, 2, false, true>, "xxx" BLOCKED "|?"},
            {"conv2d_blocks_grad_filter.f32", convolution<GradFilter, 2, false, true>, "xxx" BLOCKED "|?"}};
}

}  // namespace fl

#endif

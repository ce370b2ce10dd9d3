/* The sizes of a convolution as a call has them, in oneDNN's terms, and how it is cut into pieces. */
#ifndef FLUIDLITE_DNN_GEOMETRY_H
#define FLUIDLITE_DNN_GEOMETRY_H

#include "abi.h"
#include "dnn/library.h"
#include "windows.h"

#if FL_HAVE_DNNL

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fl {
namespace dnn {

/* Over how many dimensions a convolution goes, and whether channels are the last dimension of images, or images may lie in blocks of
 * channels, as the integers behind the others say. */
struct Family {
    int dims;
    bool last, blocks;
};

constexpr int64_t channel_block = 32; /* channels that a piece of channels has a multiple of */

/* The integer arguments of a call, in oneDNN's terms. */
struct Geometry {
    Family family;
    int rank, filter_rank;
    dnnl_dims_t input, filter, output, bias, strides, dilates, pad_before, pad_after;
    int64_t input_room, output_room; /* channels of the images in memory, of which these may be some */
    int64_t block = 1;               /* channels of a block, in which primitives are to take the images as well */
    bool forced = true, input_in_blocks = false, output_in_blocks = false;
    bool relu = false; /* of what comes out */

    Geometry(const fl_call *call, Family kind) : family(kind), rank(kind.dims + 2) {
        const int d = family.dims;
        const int64_t *sizes = call->i + 2, *kernel = sizes + d + 1, *step = kernel + d, *pads = step + d, *reach = pads + 2 * d;
        const int64_t filters = kernel[-1], groups = reach[d];
        set(input, {call->i[0], call->i[1]});
        set(output, {call->i[0], filters});
        set(bias, {filters});
        filter_rank = groups == 1 ? rank : rank + 1;
        set(filter, {groups, filters / groups, call->i[1] / groups});
        if (groups == 1) set(filter, {filters, call->i[1]});
        input_room = call->i[1];
        output_room = filters;
        if (family.blocks) {
            block = reach[d + 1];
            input_in_blocks = reach[d + 2] != 0;
            output_in_blocks = reach[d + 3] != 0;
            relu = reach + d + 4 < call->i + call->n_i && reach[d + 4] != 0;
        }
        for (int k = 0; k < d; ++k) {
            input[2 + k] = sizes[k];
            filter[filter_rank - d + k] = kernel[k];
            strides[k] = step[k];
            pad_before[k] = pads[2 * k];
            pad_after[k] = pads[2 * k + 1];
            dilates[k] = reach[k] - 1;
            output[2 + k] = count_windows(sizes[k], pad_before[k], pad_after[k], kernel[k], reach[k], step[k]);
        }
    }

    static void set(dnnl_dims_t &dims, std::initializer_list<int64_t> values) {
        int k = 0;
        for (const int64_t value : values) dims[k++] = value;
    }

    static Layout layout(int rank, const dnnl_dims_t &dims, dnnl_format_tag_t tag) {
        return make(lib.memory_desc_create_with_tag, rank, dims, dnnl_f32, tag);
    }

    /* As `dims` lie in memory with room for so many elements of the second; LAST: that comes last. */
    static Layout among(int rank, const dnnl_dims_t &dims, int64_t room, bool last) {
        dnnl_dims_t steps;
        int64_t step = last ? room : 1;
        for (int k = rank - 1; k > 1; step *= dims[k--]) steps[k] = step;
        steps[1] = last ? 1 : step;
        steps[0] = last ? step : step * room;
        return make(lib.memory_desc_create_with_strides, rank, dims, dnnl_f32, steps);
    }

    Layout image_layout(const dnnl_dims_t &dims, int64_t room, bool any, bool in_blocks) const {
        if (any && !(block > 1 && forced)) return layout(rank, dims, dnnl_format_tag_any);
        if (any) return layout(rank, dims, dims[1] % block == 0 ? block_tag() : dims[1] < block ? dnnl_nchw : dnnl_format_tag_any);
        const dnnl_format_tag_t first = family.dims == 2 ? dnnl_nchw : dnnl_ncdhw, last = family.dims == 2 ? dnnl_nhwc : dnnl_ndhwc;
        const dnnl_format_tag_t tag = in_blocks ? block_tag() : family.last ? last : first;
        if (dims[1] == room) return layout(rank, dims, tag);
        if (!in_blocks) return among(rank, dims, room, family.last);
        dnnl_dims_t all, none = {};
        std::copy(dims, dims + rank, all);
        all[1] = room;
        const Layout whole = layout(rank, all, tag);
        return make(lib.memory_desc_create_submemory, const_dnnl_memory_desc_t(whole.get()), dims, none);
    }
    /* Of images in one block: channels last, which is the same. */
    Layout input_alike() const { return alike(input, input_room, input_in_blocks); }
    Layout output_alike() const { return alike(output, output_room, output_in_blocks); }
    Layout alike(const dnnl_dims_t &dims, int64_t room, bool in_blocks) const {
        return in_blocks && dims[1] == block && dims[1] == room ? layout(rank, dims, dnnl_nhwc) : Layout();
    }
    dnnl_format_tag_t block_tag() const { return block == 16 ? dnnl_nChw16c : dnnl_nChw8c; }
    Layout input_layout(bool any) const { return image_layout(input, input_room, any, input_in_blocks); }
    Layout output_layout(bool any) const { return image_layout(output, output_room, any, output_in_blocks); }
    Layout filter_layout(bool any) const {
        if (!any && input[1] != input_room) return among(filter_rank, filter, input_room, false);
        const dnnl_format_tag_t plain[] = {dnnl_oihw, dnnl_oidhw, dnnl_goidhw};
        const dnnl_format_tag_t tag = family.dims == 2 && filter_rank > rank ? dnnl_goihw : plain[filter_rank - 4];
        return layout(filter_rank, filter, any ? dnnl_format_tag_any : tag);
    }

    static size_t bytes(int rank, const dnnl_dim_t *dims) {
        size_t size = sizeof(float);
        for (int k = 0; k < rank; ++k) size *= static_cast<size_t>(dims[k]);
        return size;
    }
    size_t input_bytes() const { return bytes(rank, input); }
    size_t output_bytes() const { return bytes(rank, output); }
    size_t filter_bytes() const { return bytes(filter_rank, filter); }

    /* How many pieces of `least` positions or more a batch is cut into: none is small, and bringing the filter into the primitive's
     * order for each piece costs little. */
    int64_t pieces(int64_t least) const {
        const int64_t positions = static_cast<int64_t>(output_bytes() / sizeof(float)) / output[1];
        const int64_t weights = static_cast<int64_t>(filter_bytes() / sizeof(float));
        const int64_t moved = static_cast<int64_t>((input_bytes() + output_bytes()) / sizeof(float)); /* takes as long as 16 multiply-adds */
        const int64_t by_filter = std::max<int64_t>((1 << 22) / weights, 2), by_work = (positions * weights + 16 * moved) >> 22;
        return std::max<int64_t>(std::min({positions / least, by_work, by_filter, int64_t(16), int64_t(input[0])}), 1);
    }

    /* How many pieces a batch that is one piece of images is cut into by `channels` of what is made, where all of `shared` elements
     * are brought into the primitive's order for each: two if that is little to compute, up to four otherwise. */
    int64_t pieces_of(int64_t channels, int64_t shared) const {
        if (filter_rank > rank || channels % channel_block != 0) return 1;
        const int64_t positions = static_cast<int64_t>(output_bytes() / sizeof(float)) / output[1];
        const int64_t work = positions * static_cast<int64_t>(filter_bytes() / sizeof(float));
        int64_t count = std::min({work >> 22, channels / channel_block, std::max<int64_t>(work / (shared * 200) + 1, 2), int64_t(4)});
        while (count > 1 && channels / channel_block % count != 0) --count;
        return std::max<int64_t>(count, 1);
    }

    /* The same images for a primitive that takes them as it likes. */
    Geometry as_liked() const {
        Geometry loose = *this;
        loose.forced = false;
        return loose;
    }

    /* The geometry of piece `which` of so many. */
    Geometry piece(int64_t which, int64_t count) const {
        Geometry part = *this;
        part.input[0] = part.output[0] = first_image(which + 1, count) - first_image(which, count);
        return part;
    }

    int64_t first_image(int64_t which, int64_t count) const { return which * input[0] / count; }

    /* The geometry of one of so many pieces of the channels that come in, or of those that go out. */
    Geometry part_of_input(int64_t count) const {
        Geometry part = *this;
        part.input[1] = part.filter[1] = input[1] / count;
        return part;
    }
    Geometry part_of_output(int64_t count) const {
        Geometry part = *this;
        part.output[1] = part.filter[0] = part.bias[0] = output[1] / count;
        return part;
    }

    /* How far apart channels of the images lie. */
    int64_t channel_step(const dnnl_dims_t &image) const {
        return family.last ? 1 : static_cast<int64_t>(bytes(rank - 2, image + 2) / sizeof(float));
    }

    bool empty() const { return input_bytes() == 0 || output_bytes() == 0 || filter_bytes() == 0; }

    /* The first dimension of images into which no window fits; -1 if there is none. */
    int impossible() const {
        for (int k = 0; k < family.dims; ++k) {
            if (output[2 + k] == 0) return k;
        }
        return -1;
    }
    /* How many elements a window reaches over in a dimension, and how many there are. */
    int64_t reach(int k) const { return (filter[filter_rank - family.dims + k] - 1) * (dilates[k] + 1) + 1; }
    int64_t padded(int k) const { return input[2 + k] + pad_before[k] + pad_after[k]; }
};

}  // namespace dnn
}  // namespace fl

#endif

#endif

/* A primitive of oneDNN for a convolution, with what brings its operands into the layouts that it wants. */
#ifndef FLUIDLITE_DNN_PRIMITIVE_H
#define FLUIDLITE_DNN_PRIMITIVE_H

#include "dnn/geometry.h"
#include "dnn/library.h"
#include "workspace.h"

#if FL_HAVE_DNNL

#include <cstring>
#include <memory>

namespace fl {
namespace dnn {

/* Memory of a primitive, of whose kind each run finds some in the workspace. */
struct Passing {
    Handle<dnnl_memory_t> memory;
    size_t at = 0;

    void set(char *workspace) const { check(lib.memory_set_data_handle(memory.get(), workspace + at)); }
};

/* One operand of a primitive: the caller's memory and, if the primitive wants another layout, passing one. */
struct Port {
    int operand = 0, argument = 0;
    bool output = false;
    Handle<dnnl_memory_t> outer;
    Passing inner;
    Handle<dnnl_primitive_t> reorder;
};

/* Y = X * factor + shift of each channel behind a convolution: by the primitive itself, or `apart` where only the
 * library's slow reference implementation could do both. Numbers are written before each run: statistics may have changed. */
struct Normalisation {
    std::unique_ptr<float[]> numbers; /* factors, then shifts */
    Handle<dnnl_memory_t> factor, shift;
    bool apart = false;
};

/* Whether only the library's slow reference implementation does it. */
inline bool is_slow(const_dnnl_primitive_desc_t desc) {
    const char *name = nullptr;
    check(lib.primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name));
    return std::strncmp(name, "ref", 3) == 0;
}

struct Convolution {
    Handle<dnnl_stream_t> stream;
    Handle<dnnl_primitive_t> primitive;
    Passing scratchpad; /* the library's own belongs to the thread that made the primitive */
    size_t passing = 0;
    Normalisation norm;
    Port ports[4];
    int n_ports = 0;
    bool slow = false;

    void create(const_dnnl_primitive_desc_t desc) {
        slow = is_slow(desc);
        primitive = make(lib.primitive_create, desc);
        scratchpad = pass(lib.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0));
    }

    Passing pass(const_dnnl_memory_desc_t layout) {
        void *const later = nullptr;
        Passing made{make(lib.memory_create, layout, lib.cpu, later), passing};
        const size_t unit = Workspace<>::alignment;
        passing += (lib.memory_desc_get_size(layout) + unit - 1) / unit * unit;
        return made;
    }

    /* `alike`: how the images would lie as well, in the same order. */
    void connect(const_dnnl_primitive_desc_t desc, int operand, int argument, const Layout &given, bool output, const Layout &alike = Layout()) {
        const_dnnl_memory_desc_t wanted = lib.primitive_desc_query_md(desc, dnnl_query_exec_arg_md, argument);
        const Layout &plain = alike && lib.memory_desc_equal(wanted, alike.get()) ? alike : given;
        Port &port = ports[n_ports++];
        port.operand = operand;
        port.argument = argument;
        port.output = output;
        void *const later = nullptr; /* the address comes with every run */
        port.outer = make(lib.memory_create, const_dnnl_memory_desc_t(plain.get()), lib.cpu, later);
        if (lib.memory_desc_equal(wanted, plain.get())) return;
        port.inner = pass(wanted);
        const_dnnl_memory_desc_t from = output ? wanted : plain.get(), to = output ? plain.get() : wanted;
        const auto reorder = make(lib.reorder_primitive_desc_create, from, lib.cpu, to, lib.cpu,
                                  const_dnnl_primitive_attr_t(nullptr));
        port.reorder = make(lib.primitive_create, const_dnnl_primitive_desc_t(reorder.get()));
    }

    void move(const Port &port, dnnl_memory_t from, dnnl_memory_t to) const {
        const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        check(lib.primitive_execute(port.reorder.get(), stream.get(), 2, arguments));
    }

    void run(void **operands) const {
        dnnl_exec_arg_t arguments[7];
        int n = n_ports;
        char *const workspace = passing > 0 ? Workspace<>::of_this_thread(passing) : nullptr;
        if (workspace != nullptr) scratchpad.set(workspace);
        for (int k = 0; k < n_ports; ++k) {
            const Port &port = ports[k];
            check(lib.memory_set_data_handle(port.outer.get(), operands[port.operand]));
            if (port.reorder) port.inner.set(workspace);
            if (port.reorder && !port.output) move(port, port.outer.get(), port.inner.memory.get());
            arguments[k] = {port.argument, port.reorder ? port.inner.memory.get() : port.outer.get()};
        }
        if (norm.factor && !norm.apart) {
            arguments[n++] = {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, norm.factor.get()};
            arguments[n++] = {DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, norm.shift.get()};
        }
        arguments[n++] = {DNNL_ARG_SCRATCHPAD, scratchpad.memory.get()};
        check(lib.primitive_execute(primitive.get(), stream.get(), n, arguments));
        for (int k = 0; k < n_ports; ++k) {
            if (ports[k].reorder && ports[k].output) move(ports[k], ports[k].inner.memory.get(), ports[k].outer.get());
        }
        check(lib.stream_wait(stream.get()));
    }
};

}  // namespace dnn
}  // namespace fl

#endif
#endif

/* oneDNN's C interface, its functions found at run time in a library opened by name; its handles, and calls that throw where they
 * fail. */
#ifndef FLUIDLITE_DNN_LIBRARY_H
#define FLUIDLITE_DNN_LIBRARY_H

#if defined(__linux__) && __has_include(<dnnl.h>)
#define FL_HAVE_DNNL 1
#include <dnnl.h>

#include <memory>
#include <type_traits>

/* Every function that is used, without its prefix. */
#define FL_DNNL_FUNCTIONS(X)                      \
    X(engine_create)                              \
    X(stream_create)                              \
    X(stream_destroy)                             \
    X(stream_wait)                                \
    X(memory_desc_create_submemory)               \
    X(memory_desc_create_with_strides)            \
    X(memory_desc_create_with_tag)                \
    X(memory_desc_destroy)                        \
    X(memory_desc_equal)                          \
    X(memory_desc_get_size)                       \
    X(memory_create)                              \
    X(memory_destroy)                             \
    X(memory_set_data_handle)                     \
    X(primitive_attr_create)                      \
    X(primitive_attr_destroy)                     \
    X(primitive_attr_set_post_ops)                \
    X(primitive_attr_set_scratchpad_mode)         \
    X(post_ops_create)                            \
    X(post_ops_destroy)                           \
    X(post_ops_append_binary)                     \
    X(primitive_desc_query)                       \
    X(primitive_desc_query_md)                    \
    X(primitive_desc_destroy)                     \
    X(primitive_create)                           \
    X(primitive_destroy)                          \
    X(primitive_execute)                          \
    X(reorder_primitive_desc_create)              \
    X(convolution_forward_primitive_desc_create)  \
    X(convolution_backward_data_primitive_desc_create) \
    X(convolution_backward_weights_primitive_desc_create)

namespace fl {
namespace dnn {

struct Library {
#define FL_MEMBER(NAME) decltype(&dnnl_##NAME) NAME = nullptr;
    FL_DNNL_FUNCTIONS(FL_MEMBER)
#undef FL_MEMBER
    dnnl_engine_t cpu = nullptr;
};

extern Library lib;

/* How many threads the OpenMP library that oneDNN brings takes for the calling thread; NULL if it brings none. */
extern int (*max_threads)();
extern void (*set_threads)(int);

/* Handles destroy themselves. */
struct Destroy {
    void operator()(dnnl_memory_desc_t h) const { lib.memory_desc_destroy(h); }
    void operator()(dnnl_memory_t h) const { lib.memory_destroy(h); }
    void operator()(dnnl_primitive_t h) const { lib.primitive_destroy(h); }
    void operator()(dnnl_primitive_desc_t h) const { lib.primitive_desc_destroy(h); }
    void operator()(dnnl_primitive_attr_t h) const { lib.primitive_attr_destroy(h); }
    void operator()(dnnl_post_ops_t h) const { lib.post_ops_destroy(h); }
    void operator()(dnnl_stream_t h) const { lib.stream_destroy(h); }
};
template <class H> using Handle = std::unique_ptr<std::remove_pointer_t<H>, Destroy>;
using Layout = Handle<dnnl_memory_desc_t>;

struct Failure {
    dnnl_status_t status;
};

inline void check(dnnl_status_t status) {
    if (status != dnnl_success) throw Failure{status};
}

/* Calls a function that creates a handle in its first argument. */
template <class H, class... P, class... A> Handle<H> make(dnnl_status_t (*create)(H *, P...), A... arguments) {
    H handle = nullptr;
    check(create(&handle, arguments...));
    return Handle<H>(handle);
}

}  // namespace dnn
}  // namespace fl

#else
#define FL_HAVE_DNNL 0
#endif

#endif

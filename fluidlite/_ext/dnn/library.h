/* oneDNN's C interface, its functions found at run time in a library opened by name. */
#ifndef FLUIDLITE_DNN_LIBRARY_H
#define FLUIDLITE_DNN_LIBRARY_H

#if defined(__linux__) && __has_include(<dnnl.h>)
#define FL_HAVE_DNNL 1
#include <dnnl.h>

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

}  // namespace dnn
}  // namespace fl

#else
#define FL_HAVE_DNNL 0
#endif

#endif

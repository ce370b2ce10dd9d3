/* Handles of oneDNN that destroy themselves, and calls that throw where they fail. */
#ifndef FLUIDLITE_DNN_HANDLES_H
#define FLUIDLITE_DNN_HANDLES_H

#include "dnn/library.h"

#if FL_HAVE_DNNL

#include <memory>
#include <type_traits>

namespace fl {
namespace dnn {

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

#endif

#endif

#include "dnn/library.h"

#include "dnn/convolution.h"

#if FL_HAVE_DNNL

#include <dlfcn.h>

namespace fl {
namespace dnn {

Library lib;
int (*max_threads)() = nullptr;
void (*set_threads)(int) = nullptr;

}  // namespace dnn

bool load_onednn(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    dnn::Library found;
#define FL_FIND(NAME)                                                                      \
    found.NAME = reinterpret_cast<decltype(found.NAME)>(dlsym(handle, "dnnl_" #NAME));     \
    if (found.NAME == nullptr) {                                                           \
        dlclose(handle);                                                                   \
        return false;                                                                      \
    }
    FL_DNNL_FUNCTIONS(FL_FIND)
#undef FL_FIND
    if (found.engine_create(&found.cpu, dnnl_cpu, 0) != dnnl_success) return false;
    dnn::lib = found;
    dnn::max_threads = reinterpret_cast<decltype(dnn::max_threads)>(dlsym(handle, "omp_get_max_threads"));
    dnn::set_threads = reinterpret_cast<decltype(dnn::set_threads)>(dlsym(handle, "omp_set_num_threads"));
    return true;
}

}  // namespace fl

#else

namespace fl {

bool load_onednn(const char *) { return false; }

std::vector<fl_entry> convolutions() { return {}; }

}  // namespace fl

#endif

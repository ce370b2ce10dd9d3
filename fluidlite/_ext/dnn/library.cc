#include "dnn/library.h"

#include "dnn/convolution.h"

#if FL_HAVE_DNNL

#include <dlfcn.h>

namespace fl {
namespace dnn {

Library lib;

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
    return true;
}

}  // namespace fl

#else

namespace fl {

bool load_onednn(const char *) { return false; }

std::vector<fl_entry> convolutions() { return {}; }

}  // namespace fl

#endif

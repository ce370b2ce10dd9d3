#include "dnn/library.h"

#include "dnn/convolution.h"

#if FL_HAVE_DNNL

#include <dlfcn.h>

namespace fl {
namespace dnn {

Library lib;

}  // namespace dnn

namespace {

/* omp_pause_resource_all of the OpenMP library that oneDNN brings, if that has it. */
int (*pause_resources)(int) = nullptr;
constexpr int kPauseHard = 2;

}  // namespace

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
    pause_resources = reinterpret_cast<decltype(pause_resources)>(dlsym(handle, "omp_pause_resource_all"));
    return true;
}

void release_threads() {
    if (pause_resources != nullptr) pause_resources(kPauseHard);
}

}  // namespace fl

#else

namespace fl {

bool load_onednn(const char *) { return false; }

void release_threads() {}

std::vector<fl_entry> convolutions() { return {}; }

}  // namespace fl

#endif

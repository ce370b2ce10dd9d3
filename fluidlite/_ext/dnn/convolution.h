/* Convolution kernels that call oneDNN through functions found at run time. */
#ifndef FLUIDLITE_DNN_CONVOLUTION_H
#define FLUIDLITE_DNN_CONVOLUTION_H

#include <vector>

#include "abi.h"

namespace fl {

/* Opens the library and finds its functions; false if that is not possible or the header was missing when building. */
bool load_onednn(const char *path);

/* The kernels; to be asked for after a successful load_onednn. */
std::vector<fl_entry> convolutions();

}  // namespace fl

#endif

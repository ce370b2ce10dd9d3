/* The topics of chosen.cc. */
#ifndef FLUIDLITE_KERNELS_CHOSEN_H
#define FLUIDLITE_KERNELS_CHOSEN_H

#include "kernels/common.h"

namespace fl {

extern const Topic topic_drawing, topic_chosen;

}  // namespace fl

#endif

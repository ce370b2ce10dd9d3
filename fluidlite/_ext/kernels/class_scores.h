/* The topics of class_scores.cc. */
#ifndef FLUIDLITE_KERNELS_CLASS_SCORES_H
#define FLUIDLITE_KERNELS_CLASS_SCORES_H

#include "kernels/common.h"

namespace fl {

extern const Topic topic_drawing, topic_class_scores;

}  // namespace fl

#endif

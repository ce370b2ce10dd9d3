/* The threads that take pieces of work, of which there is one set in a process. */
#ifndef FLUIDLITE_THREADS_POOL_H
#define FLUIDLITE_THREADS_POOL_H

#include <cstdint>

#include "parallel.h"

namespace fl {

/* What other extensions are handed. */
Threads *pool_functions();

/* How many threads, the calling one among them, take pieces. */
void set_thread_count(int count);
int thread_count();

/* So many at most take those of the calling thread from now on; 0: as many as there are. */
void set_own_share(int count);

}  // namespace fl

#endif

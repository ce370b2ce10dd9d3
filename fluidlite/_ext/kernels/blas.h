/* The BLAS the kernels call: column-major Fortran routines, handed over when the extension is imported. */
#ifndef FLUIDLITE_KERNELS_BLAS_H
#define FLUIDLITE_KERNELS_BLAS_H

namespace fl {

template <class T>
using gemm_t = void(char *trans_a, char *trans_b, int *m, int *n, int *k, T *alpha, T *a, int *lda, T *b, int *ldb,
                    T *beta, T *c, int *ldc);

struct Blas {
    gemm_t<float> *sgemm = nullptr;
    gemm_t<double> *dgemm = nullptr;
    void (*set_threads)(int) = nullptr; /* NULL where this BLAS has no such switch */
    int most_threads = 1;
    int threads = 0; /* what was set last; a race between engines costs one set-up, never a result */
};

extern Blas blas;

/* Takes the addresses of the two routines. */
inline void set_blas(void *sgemm, void *dgemm) {
    blas.sgemm = reinterpret_cast<gemm_t<float> *>(sgemm);
    blas.dgemm = reinterpret_cast<gemm_t<double> *>(dgemm);
}

/* Takes the switch for the number of threads, and how many there are to be had. */
inline void set_blas_threads(void *set_threads, int most) {
    blas.set_threads = reinterpret_cast<void (*)(int)>(set_threads);
    blas.most_threads = most;
}

/* Products below this many multiply-adds run on one thread: waiting for each other costs the threads of a BLAS more
 * than they gain as soon as the processors have anything else to do, such as reading the next batch. */
constexpr double threaded_work = 1 << 25;

inline void choose_threads(double work) {
    if (blas.set_threads == nullptr) return;
    const int wanted = work < threaded_work ? 1 : blas.most_threads;
    if (__atomic_load_n(&blas.threads, __ATOMIC_RELAXED) == wanted) return;
    __atomic_store_n(&blas.threads, wanted, __ATOMIC_RELAXED);
    blas.set_threads(wanted);
}

}  // namespace fl

#endif

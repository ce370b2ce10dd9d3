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
};

extern Blas blas;

/* Takes the addresses of the two routines. */
inline void set_blas(void *sgemm, void *dgemm) {
    blas.sgemm = reinterpret_cast<gemm_t<float> *>(sgemm);
    blas.dgemm = reinterpret_cast<gemm_t<double> *>(dgemm);
}

}  // namespace fl

#endif

// y = A x for a matrix in compressed sparse row (CSR) form. Row i has the elements data[k] in the columns col[k],
// for row[i] <= k < row[i + 1].
extern "C" __global__
void spmv(const int* row, const int* col, const float* data, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float sum = 0.0f;
        for (int k = row[i]; k < row[i + 1]; ++k) sum += data[k] * x[col[k]];
        y[i] = sum;
    }
}

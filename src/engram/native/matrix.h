// Matrices with padded rows, their product, softmax: what every kernel needs.
//
// Every matrix is row-major with rows padded to whole blocks of columns (PAD), so the matrix product has no ragged edge
// on the right.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__AVX512F__)
constexpr int VECTOR = 64, BLOCK = 4, ROWS = 6;  // 24 of 32 registers hold sums
#else
constexpr int VECTOR = 32, BLOCK = 2, ROWS = 6;  // 12 of 16
#endif

template <typename real> struct Lanes {
  typedef real type __attribute__((vector_size(VECTOR), aligned(sizeof(real))));
  static constexpr int count = VECTOR / sizeof(real);
  static constexpr int pad = count * BLOCK;
};
template <typename real> int padded(int columns) {
  constexpr int pad = Lanes<real>::pad;
  return (columns + pad - 1) / pad * pad;
}

// A matrix with padded rows. View only; Owned keeps its memory.
template <typename real> struct Matrix {
  real* at;
  int stride;
  real* operator[](int row) const { return at + (size_t)row * stride; }
};
template <typename real> struct Owned : Matrix<real> {
  std::vector<real> memory;
  Owned(int rows, int columns) : memory((size_t)rows * padded<real>(columns), real(0)) {
    this->at = memory.data();
    this->stride = padded<real>(columns);
  }
  Owned(Owned&&) = default;  // a moved vector keeps its memory where it was
  Owned(const Owned& other) : Matrix<real>(other), memory(other.memory) { this->at = memory.data(); }
  Owned(const real* from, int rows, int columns) : Owned(rows, columns) {
    for (int i = 0; i < rows; i++) std::copy(from + (size_t)i * columns, from + (size_t)(i + 1) * columns, (*this)[i]);
  }
  void clear() { std::fill(memory.begin(), memory.end(), real(0)); }
  void give(real* to, int rows, int columns) const {
    for (int i = 0; i < rows; i++) std::copy((*this)[i], (*this)[i] + columns, to + (size_t)i * columns);
  }
  void add(const Owned& other) {
    for (size_t i = 0; i < memory.size(); i++) memory[i] += other.memory[i];
  }
};
// to ← mᵀ, square by square: whole columns of rows a power of two apart would fight for the same few lines of cache.
template <typename real> void transpose(const Matrix<real>& m, int rows, int columns, const Matrix<real>& to) {
  constexpr int side = 16;
  for (int top = 0; top < rows; top += side)
    for (int left = 0; left < columns; left += side)
      for (int j = left; j < std::min(left + side, columns); j++)
        for (int i = top; i < std::min(top + side, rows); i++) to[j][i] = m[i][j];
}
template <typename real> Owned<real> transposed(const Matrix<real>& m, int rows, int columns) {
  Owned<real> t(columns, rows);
  transpose(m, rows, columns, t);
  return t;
}

// C[i, j] (+)= Σ_{k0≤k<k1} A[i, k] B[k, j] for `rows` ≤ ROWS rows and `blocks` ≤ BLOCK vectors of columns; A is read by
// strides, so it may be a transpose.
template <typename real, int rows, int blocks>
void tile(const real* A, size_t down, size_t along, const Matrix<real>& B, real* C, int stride, int column, int k0, int k1, bool add) {
  using V = typename Lanes<real>::type;
  constexpr int lanes = Lanes<real>::count;
  V sum[rows][blocks];
  for (int i = 0; i < rows; i++)
    for (int b = 0; b < blocks; b++) sum[i][b] = add ? *(const V*)(C + (size_t)i * stride + column + b * lanes) : V{};
  const real* from = B[k0] + column;
  const real* a = A + k0 * along;
  for (int k = k0; k < k1; k++, from += B.stride, a += along) {
    V right[blocks];
    for (int b = 0; b < blocks; b++) right[b] = *(const V*)(from + b * lanes);
    for (int i = 0; i < rows; i++)
      for (int b = 0; b < blocks; b++) sum[i][b] += a[i * down] * right[b];
  }
  for (int i = 0; i < rows; i++)
    for (int b = 0; b < blocks; b++) *(V*)(C + (size_t)i * stride + column + b * lanes) = sum[i][b];
}
template <typename real, int blocks, typename... Rest> void tiles(int rows, Rest... rest) {
  switch (rows) {
    case 6: return tile<real, 6, blocks>(rest...);
    case 5: return tile<real, 5, blocks>(rest...);
    case 4: return tile<real, 4, blocks>(rest...);
    case 3: return tile<real, 3, blocks>(rest...);
    case 2: return tile<real, 2, blocks>(rest...);
    default: return tile<real, 1, blocks>(rest...);
  }
}

// C (m×n) (+)= A (m×k) B (k×n). `first(i)`, `last(i)`: the sum over k of the rows that begin at i runs from first to last;
// `width(i)`: only so many columns are wanted there. Masked parts are skipped with them.
template <typename real, typename First, typename Last, typename Width>
void product(int m, const real* A, size_t down, size_t along, const Matrix<real>& B, const Matrix<real>& C, bool add, First first, Last last, Width width) {
  constexpr int lanes = Lanes<real>::count;
  for (int i = 0; i < m; i += ROWS) {
    const int rows = std::min(ROWS, m - i), k0 = first(i), k1 = last(i + rows - 1), n = width(i + rows - 1);
    for (int column = 0; column < n; column += BLOCK * lanes) {
      const real* a = A + i * down;
      switch (std::min(BLOCK, (n - column + lanes - 1) / lanes)) {  // a narrow matrix does not pay for its padding
#if defined(__AVX512F__)
        case 4: tiles<real, 4>(rows, a, down, along, B, C[i], C.stride, column, k0, k1, add); break;
        case 3: tiles<real, 3>(rows, a, down, along, B, C[i], C.stride, column, k0, k1, add); break;
#endif
        case 2: tiles<real, 2>(rows, a, down, along, B, C[i], C.stride, column, k0, k1, add); break;
        default: tiles<real, 1>(rows, a, down, along, B, C[i], C.stride, column, k0, k1, add);
      }
    }
  }
}
template <typename real>
void product(int m, int n, int k, const real* A, size_t down, size_t along, const Matrix<real>& B, const Matrix<real>& C, bool add) {
  product(m, A, down, along, B, C, add, [](int) { return 0; }, [=](int) { return k; }, [=](int) { return n; });
}

inline double exponential(double x) { return std::exp(x); }
// exp of a float: 2^i · p(f), the polynomial of Cephes; relative error below 2e-7, and the compiler can vectorise it.
inline float exponential(float x) {
  x = std::max(x, -87.0f);
  const float i = std::floor(x * 1.44269504f + 0.5f);
  const float f = x - i * 0.693359375f + i * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * f + 1.3981999507e-3f;
  p = p * f + 8.3334519073e-3f;
  p = p * f + 4.1665795894e-2f;
  p = p * f + 1.6666665459e-1f;
  p = p * f + 5.0000001201e-1f;
  p = p * f * f + f + 1.0f;
  const int32_t bits = ((int32_t)i + 127) << 23;
  float power;
  std::memcpy(&power, &bits, 4);
  return p * power;
}

// Whether an entry is infinite or not a number, by its bits: fast arithmetic may take for granted that none is.
inline bool special(const float* row, int n) {
  uint32_t found = 0, bits;
  for (int s = 0; s < n; s++) std::memcpy(&bits, row + s, 4), found |= (bits & 0x7f800000u) == 0x7f800000u;
  return found;
}
inline bool special(const double* row, int n) {
  uint64_t found = 0, bits;
  for (int s = 0; s < n; s++) std::memcpy(&bits, row + s, 8), found |= (bits & 0x7ff0000000000000u) == 0x7ff0000000000000u;
  return found;
}

// row ← softmax(row) over the first n entries, zero up to `end`.
template <typename real> void softmax(real* row, int n, int end) {
  real largest = row[0], sum = 0;
  for (int s = 1; s < n; s++) largest = std::max(largest, row[s]);
  for (int s = 0; s < n; s++) row[s] = exponential(row[s] - largest);
  for (int s = 0; s < n; s++) sum += row[s];
  const real share = 1 / sum;
  for (int s = 0; s < n; s++) row[s] *= share;
  for (int s = n; s < end; s++) row[s] = 0;
}
// row ← a ⊙ (row − Σ a row): back through the softmax.
template <typename real> void softmax_back(real* row, const real* a, int n, int end) {
  real mean = 0;
  for (int s = 0; s < n; s++) mean += a[s] * row[s];
  for (int s = 0; s < n; s++) row[s] = a[s] * (row[s] - mean);
  for (int s = n; s < end; s++) row[s] = 0;
}

// Calls share(0) … share(count − 1), on threads of their own where `pays` says that they are worth it, else one after the
// other: a share is the same part of the work either way, so the numbers are the same. Whoever waits here sleeps.
template <typename Share> void in_shares(int count, bool pays, const Share& share) {
  std::vector<std::thread> others;
  for (int i = 1; i < count; i++) {
    if (!pays) {
      share(i);
      continue;
    }
    try {
      others.emplace_back(std::cref(share), i);
    } catch (const std::system_error&) {  // no thread to be had
      share(i);
    }
  }
  share(0);
  for (auto& other : others) other.join();
}
constexpr double WORTH_A_THREAD = 3e7;  // multiplications: about two milliseconds, ten times what a busy machine takes to begin one

// Full-batch training of a small memory, the whole loop in one call: y = W x, or y = W2 ReLU(W1 x + b); logits u_k · y;
// mean cross-entropy over N pairs; Adam.
//
// Rows go through in blocks, so that their logits stay in cache and the N×M map is never held. A memory that is learned
// well, or with a large learning rate, has a softmax whose entries are zero in float but for a few: then only these few are
// computed, in the softmax and in the products behind it. This is exact: what is left out is below e^{−87} of the largest.

#include "adam.h"

constexpr int TOGETHER = 48, FEW = 12;

template <typename real> constexpr real CUT = sizeof(real) == 4 ? real(87) : real(740);

template <typename real> struct Store {
  const int N, M, d, m;  // m = 0: one matrix
  const Owned<real> X, U, UT;
  const int32_t* f;
  Owned<real> H, Y, L, dY, dH, active, hidden, answers, g1, g2, g0;
  int wrong = 0;
  bool overflow = false;

  Store(int N, int M, int d, int m, const real* x, const real* u, const int32_t* f)
      : N(N), M(M), d(d), m(m), X(x, N, d), U(u, M, d), UT(transposed<real>(U, M, d)), f(f), H(TOGETHER, std::max(m, 1)), Y(TOGETHER, d),
        L(TOGETHER, M), dY(TOGETHER, d), dH(TOGETHER, std::max(m, 1)), active(TOGETHER, d), hidden(TOGETHER, std::max(m, 1)),
        answers(TOGETHER, d), g1(std::max(m, d), d), g2(d, std::max(m, 1)), g0(1, std::max(m, 1)) {}

  // Sums the gradient over all pairs and returns how many are right.
  int pass(const Matrix<real>& W1T, const real* b, const Matrix<real>& W2, const Matrix<real>& W2T) {
    g1.clear(), g2.clear(), g0.clear();
    int right = 0;
    for (int first = 0; first < N && !overflow; first += TOGETHER) right += block(first, std::min(TOGETHER, N - first), W1T, b, W2, W2T);
    return right;
  }

  int block(int first, int rows, const Matrix<real>& W1T, const real* b, const Matrix<real>& W2, const Matrix<real>& W2T) {
    const real* x = X[first];
    if (m == 0) {
      product(rows, d, d, x, X.stride, 1, W1T, Y, false);
    } else {
      product(rows, m, d, x, X.stride, 1, W1T, H, false);
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < m; j++) H[i][j] = std::max(H[i][j] + b[j], real(0));
      product(rows, d, m, H.at, H.stride, 1, W2T, Y, false);
    }
    product(rows, M, d, Y.at, Y.stride, 1, UT, L, false);
    const int right = errors(first, rows);
    if (m == 0) {
      product(d, d, wrong, dY.at, 1, dY.stride, active, g1, true);  // ∇W = Σ dy xᵀ
    } else {
      product(d, m, wrong, dY.at, 1, dY.stride, hidden, g2, true);  // ∇W2 = Σ dy hᵀ
      product(wrong, m, d, dY.at, dY.stride, 1, W2, dH, false);
      for (int i = 0; i < wrong; i++)
        for (int j = 0; j < m; j++) dH[i][j] = hidden[i][j] > 0 ? dH[i][j] : real(0);
      for (int i = 0; i < wrong; i++)
        for (int j = 0; j < m; j++) g0[0][j] += dH[i][j];
      product(m, d, wrong, dH.at, 1, dH.stride, active, g1, true);  // ∇W1 = Σ dh xᵀ
    }
    return right;
  }

  // dY = (softmax(L) − onehot(y)) U / N for the rows where it is not zero; these are moved together, with their inputs.
  // Returns how many rows have their largest logit at y.
  int errors(int first, int rows) {
    int right = 0, full = 0, from[TOGETHER];
    wrong = 0;
    for (int i = 0; i < rows; i++) {
      real* l = L[i];
      const int y = f[first + i];
      if (special(l, M)) {  // fast arithmetic must not meet what is no number
        overflow = true;
        return 0;
      }
      real largest = l[0];
      for (int k = 1; k < M; k++) largest = std::max(largest, l[k]);
      const real least = largest - CUT<real>;
      int count = 0, top = 0;
      for (int k = 0; k < M; k++) count += l[k] >= least;
      while (top < M - 1 && l[top] != largest) top++;
      right += top == y;
      std::fill(dY[wrong], dY[wrong] + d, real(0));
      if (count > FEW)
        many(l, y, L[full]), from[full++] = wrong;
      else if (!few(l, y, least, largest, count, dY[wrong]))
        continue;
      std::copy(X[first + i], X[first + i] + X.stride, active[wrong]);
      if (m) std::copy(H[i], H[i] + H.stride, hidden[wrong]);
      wrong++;
    }
    product(full, d, M, L.at, L.stride, 1, U, answers, false);
    for (int i = 0; i < full; i++) std::copy(answers[i], answers[i] + d, dY[from[i]]);
    return right;
  }

  bool few(const real* l, int y, real least, real largest, int count, real* dy) {
    int at[FEW];
    real p[FEW], sum = 0;
    for (int k = 0, i = 0; k < M && i < count; k++)
      if (l[k] >= least) at[i] = k, sum += p[i] = exponential(l[k] - largest), i++;
    bool moves = false, found = false;
    for (int i = 0; i < count; i++) {
      p[i] = p[i] / sum - (at[i] == y), found |= at[i] == y, moves |= p[i] != 0;
      add(dy, p[i], U[at[i]]);
    }
    if (!found) add(dy, real(-1), U[y]), moves = true;
    return moves;
  }

  void many(real* l, int y, real* to) {
    softmax(l, M, L.stride);
    l[y] -= 1;
    for (int k = 0; k < L.stride; k++) to[k] = l[k] / N;
  }

  void add(real* dy, real p, const real* u) {
    for (int j = 0; j < d; j++) dy[j] += p / N * u[j];
  }
};

// Trains from step t0 on; before every `check`-th step and before step `last` accuracy is looked at. Ends at `last`, at
// `stop`, when accuracy exceeds the target, or when a score overflows. found: steps done, best accuracy, whether it got
// there, whether it overflowed.
template <typename real>
void train(int N, int M, int d, int m, int t0, int stop, int last, int check, const double* plan, const real* x, const real* u,
           const int32_t* f, real* w, real* mean, real* square, double* found) {
  Store<real> store(N, M, d, m, x, u, f);
  const Adam<real> adam{plan[0], plan[1], plan[2], plan[3]};
  const size_t n1 = (size_t)(m ? m : d) * d, n0 = m;
  const int width = m ? m : d;
  real *b = w + n1, *w2 = b + n0;
  int t = t0;
  for (;; t++) {
    const Owned<real> W1(w, width, d), W2(w2, m ? d : 0, std::max(m, 1));
    const int right = store.pass(transposed<real>(W1, width, d), b, W2, transposed<real>(W2, m ? d : 0, std::max(m, 1)));
    found[3] = store.overflow;
    if (!store.overflow && (t % check == 0 || t == last)) {
      const double accuracy = (double)right / N;
      found[1] = std::max(found[1], accuracy);
      found[2] = accuracy > plan[4];
    }
    if (found[2] || found[3] || t == last || t == stop) break;
    adam.step(w, mean, square, store.g1, width, d, t + 1);
    if (m) {
      adam.step(b, mean + n1, square + n1, store.g0, 1, m, t + 1);
      adam.step(w2, mean + n1 + n0, square + n1 + n0, store.g2, d, m, t + 1);
    }
  }
  found[0] = t;
}

extern "C" {
int train_float(int N, int M, int d, int m, int t0, int stop, int last, int check, const double* plan, const float* x, const float* u,
                const int32_t* f, float* w, float* mean, float* square, double* found) {
  try {
    train(N, M, d, m, t0, stop, last, check, plan, x, u, f, w, mean, square, found);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}
int train_double(int N, int M, int d, int m, int t0, int stop, int last, int check, const double* plan, const double* x, const double* u,
                 const int32_t* f, double* w, double* mean, double* square, double* found) {
  try {
    train(N, M, d, m, t0, stop, last, check, plan, x, u, f, w, mean, square, found);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}
}

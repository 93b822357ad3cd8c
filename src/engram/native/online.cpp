// Memories that see every sample once: batches in order, softmax cross-entropy on the logits u_k · h(x), where
//
//   matrix       h = e_x W        W is trained
//   learned      h = e_x W        E, W and U are trained
//   exponential  h = ReLU(e_x)    E and U are trained
//
// perhaps with layer norm, h/√(‖h‖² + 1e-6); by gradient descent, or by steps g/(|g| + 1e-8), which are signs.
//
// A batch counts by its distinct tokens, which are few. With ∂loss/∂h_z = g_z the gradient of W is Σ e_z g_zᵀ: of rank M
// without layer norm, where every g_z lies in the span of the u_k, and of as many ranks as there are tokens with it. So W is
// read and written once a step, row by row: changed, and at once read for the h of the next batch.
//
// Gradient descent on W alone never leaves W0 + span{e_z u_kᵀ, e_z h_z'ᵀ}: it needs no W at all, only the inner products of
// the e_z, of the u_k and of the h_z, whatever the width (Span).

#include "matrix.h"

#include <limits>

namespace {
enum Kind { MATRIX, LEARNED, EXPONENTIAL };
constexpr double INSIDE_NORM = 1e-6, INSIDE_SIGN = 1e-8;
constexpr int ROWS_AT_ONCE = 24;  // of W: changed rows are read again while they are in cache

// The distinct tokens of a batch, and their shares of it.
struct Batch {
  std::vector<int> tokens, place;
  std::vector<double> share;
  explicit Batch(int N) : place(N, -1) {}
  void read(const int32_t* from, int size) {
    for (int z : tokens) place[z] = -1;
    tokens.clear(), share.clear();
    for (int i = 0; i < size; i++) {
      int& at = place[from[i]];
      if (at < 0) at = (int)tokens.size(), tokens.push_back(from[i]), share.push_back(0);
      share[at] += 1.0 / size;
    }
  }
  int count() const { return (int)tokens.size(); }
};

// δ ← share · (softmax(l / r) − onehot(y)) / r, and how much of h is taken back: Σ_k δ_k l_k / r², with l before the norm.
template <typename real> real surprise(const real* l, int M, real r, int y, double share, real* delta) {
  for (int k = 0; k < M; k++) delta[k] = l[k] / r;
  softmax(delta, M, M);
  delta[y] -= 1;
  real back = 0;
  for (int k = 0; k < M; k++) delta[k] *= (real)share / r, back += delta[k] * l[k];
  return back / (r * r);
}

template <typename real> void change(real* w, const real* g, int n, real rate, bool sign) {
  if (sign)
    for (int j = 0; j < n; j++) w[j] -= rate * (g[j] / (std::abs(g[j]) + (real)INSIDE_SIGN));
  else
    for (int j = 0; j < n; j++) w[j] -= rate * g[j];
}

// to[i][k] = Σ_j W[i][j] R[k][j] for all rows of W: inner products, since R has few rows.
template <typename real, int few> void inner(const Matrix<real>& W, int rows, int d, const Matrix<real>& R, int first, const Matrix<real>& to) {
  using V = typename Lanes<real>::type;
  constexpr int lanes = Lanes<real>::count;
  for (int i = 0; i < rows; i++) {
    V sum[few] = {};
    for (int j = 0; j < d; j += lanes) {
      const V w = *(const V*)(W[i] + j);
      for (int k = 0; k < few; k++) sum[k] += w * *(const V*)(R[first + k] + j);
    }
    for (int k = 0; k < few; k++) {
      real total = 0;
      for (int lane = 0; lane < lanes; lane++) total += sum[k][lane];
      to[i][first + k] = total;
    }
  }
}
template <typename real> void inner_products(const Matrix<real>& W, int rows, int d, const Matrix<real>& R, int count, const Matrix<real>& to) {
  int k = 0;
  for (; k + 6 <= count; k += 6) inner<real, 6>(W, rows, d, R, k, to);
  switch (count - k) {
    case 5: return inner<real, 5>(W, rows, d, R, k, to);
    case 4: return inner<real, 4>(W, rows, d, R, k, to);
    case 3: return inner<real, 3>(W, rows, d, R, k, to);
    case 2: return inner<real, 2>(W, rows, d, R, k, to);
    case 1: return inner<real, 1>(W, rows, d, R, k, to);
  }
}

template <typename real> struct Online {
  const Kind kind;
  const bool sign, norm;
  const int N, M, d;
  const real rate, rate_of_embeddings;
  const int32_t* f;
  Owned<real> E, U, W;
  Owned<real> H, G, left, right, asked, gradient, products, of_U;
  Batch batch;
  std::vector<real> logits, delta;
  bool overflow = false;

  Online(Kind kind, bool sign, bool norm, int N, int M, int d, const double* rates, const int32_t* f, const real* e, const real* w, const real* u)
      : kind(kind), sign(sign), norm(norm), N(N), M(M), d(d), rate(rates[0]), rate_of_embeddings(rates[1]), f(f), E(e, N, d), U(u, M, d),
        W(w, kind == EXPONENTIAL ? 0 : d, d), H(N, d), G(N, d), left(std::max(N, M), d), right(std::max(N, M), d), asked(N, d),
        gradient(std::max(ROWS_AT_ONCE, M), d), products(kind == LEARNED ? d : 0, std::max(N, M)), of_U(M, d), batch(N),
        logits(M), delta((size_t)N * M) {}

  // H ← the h of the tokens of the batch, from all of W.
  void read_all() {
    const int count = batch.count();
    for (int a = 0; a < count; a++) std::copy(E[batch.tokens[a]], E[batch.tokens[a]] + E.stride, asked[a]);
    if (kind == EXPONENTIAL)
      for (int a = 0; a < count; a++)
        for (int j = 0; j < d; j++) H[a][j] = std::max(asked[a][j], real(0));
    else
      product(count, d, d, asked.at, asked.stride, 1, W, H, false);
  }

  void logits_of(const real* h) {
    for (int k = 0; k < M; k++) {
      real sum = 0;
      for (int j = 0; j < d; j++) sum += U[k][j] * h[j];
      logits[k] = sum;
    }
    overflow |= special(logits.data(), M);  // fast arithmetic must not meet what is no number
  }

  real size_of(const real* h) const {
    real square = (real)INSIDE_NORM;
    for (int j = 0; j < d; j++) square += h[j] * h[j];
    return norm ? std::sqrt(square) : real(1);
  }

  // G ← ∂loss/∂h of every token of the batch.
  void differentiate() {
    for (int a = 0; a < batch.count() && !overflow; a++) {
      logits_of(H[a]);
      const real r = size_of(H[a]);
      overflow |= special(&r, 1);
      if (overflow) return;
      real* c = &delta[(size_t)a * M];
      const real back = surprise(logits.data(), M, r, f[batch.tokens[a]], batch.share[a], c);
      for (int j = 0; j < d; j++) G[a][j] = norm ? -back * H[a][j] : real(0);
      for (int k = 0; k < M; k++)
        for (int j = 0; j < d; j++) G[a][j] += c[k] * U[k][j];
    }
  }

  // The gradient of W as left ᵀ right with as few rows as it has; returns how many. Without layer norm the right ones are U.
  bool through_U() const { return !norm && M < batch.count(); }
  int factorise() {
    const int count = batch.count();
    if (!through_U()) {
      for (int a = 0; a < count; a++)
        std::copy(asked[a], asked[a] + asked.stride, left[a]), std::copy(G[a], G[a] + G.stride, right[a]);
      return count;
    }
    for (int k = 0; k < M; k++) {
      std::copy(U[k], U[k] + U.stride, right[k]);
      std::fill(left[k], left[k] + left.stride, real(0));
      for (int a = 0; a < count; a++)
        for (int j = 0; j < d; j++) left[k][j] += delta[(size_t)a * M + k] * asked[a][j];
    }
    return M;
  }

  // One step on the embeddings, whose gradients need the old W: ∂/∂e_z = W g_z, ∂/∂u_k = Σ_z δ_zk h_z.
  void change_embeddings(int rank) {
    const int count = batch.count();
    of_U.clear();
    for (int a = 0; a < count; a++)
      for (int k = 0; k < M; k++)
        for (int j = 0; j < d; j++) of_U[k][j] += delta[(size_t)a * M + k] * H[a][j];
    if (kind == LEARNED) inner_products<real>(W, d, d, right, rank, products);
    for (int a = 0; a < count; a++) {
      real* g = gradient[0];
      const real* c = &delta[(size_t)a * M];
      if (kind == EXPONENTIAL)
        for (int j = 0; j < d; j++) g[j] = H[a][j] > 0 ? G[a][j] : real(0);
      else if (!through_U())
        for (int i = 0; i < d; i++) g[i] = products[i][a];
      else
        for (int i = 0; i < d; i++) {
          g[i] = 0;
          for (int k = 0; k < M; k++) g[i] += c[k] * products[i][k];
        }
      change(E[batch.tokens[a]], g, d, rate_of_embeddings, sign);
    }
    for (int k = 0; k < M; k++) change(U[k], of_U[k], d, rate_of_embeddings, sign);
  }

  // W ← W − rate · step, a few rows at a time; at once H += e W for the tokens of the next batch.
  void change_matrix(int rank, int next) {
    if (!sign)
      for (int k = 0; k < rank; k++)
        for (int j = 0; j < d; j++) left[k][j] *= -rate;
    for (int a = 0; a < next; a++) std::fill(H[a], H[a] + H.stride, real(0));
    for (int i = 0; i < d; i += ROWS_AT_ONCE) {
      const int rows = std::min(ROWS_AT_ONCE, d - i);
      const Matrix<real> part{W[i], W.stride};
      product(rows, d, rank, left.at + i, 1, left.stride, right, sign ? (const Matrix<real>&)gradient : part, !sign);
      if (sign)
        for (int r = 0; r < rows; r++) change(W[i + r], gradient[r], d, rate, true);
      product(next, asked.at, asked.stride, 1, W, H, true, [=](int) { return i; }, [=](int) { return i + rows; }, [=](int) { return d; });
    }
  }

  // One step, and the h of the next batch; `next` is null after the last one.
  void step(const int32_t* next, int size) {
    differentiate();
    if (overflow) return;
    const int rank = kind == EXPONENTIAL ? 0 : factorise();
    if (kind != MATRIX) change_embeddings(rank);
    if (next) batch.read(next, size);
    const int count = next ? batch.count() : 0;
    if (kind == EXPONENTIAL) return read_all();
    for (int a = 0; a < count; a++) std::copy(E[batch.tokens[a]], E[batch.tokens[a]] + E.stride, asked[a]);
    change_matrix(rank, count);
  }

  // scores[z][k] of all tokens; not a number once a step has overflowed.
  void look(real* scores) {
    if (overflow) return std::fill(scores, scores + (size_t)N * M, std::numeric_limits<real>::quiet_NaN());
    Owned<real> all(N, d);
    if (kind == EXPONENTIAL)
      for (int z = 0; z < N; z++)
        for (int j = 0; j < d; j++) all[z][j] = std::max(E[z][j], real(0));
    else
      product(N, d, d, E.at, E.stride, 1, W, all, false);
    for (int z = 0; z < N; z++) {
      logits_of(all[z]);
      const real r = size_of(all[z]);
      for (int k = 0; k < M; k++) scores[(size_t)z * M + k] = logits[k] / r;
    }
  }
};

// The same for gradient descent on W alone, in the inner products: h_x·u_k, and with layer norm h_x·h_z.
struct Span {
  const bool norm;
  const int N, M;
  const double rate;
  const int32_t* f;
  Owned<double> EE, UU, HU, HH;
  Owned<double> c, VU, VH, VV, part, grown;
  std::vector<double> b;
  Batch batch;
  bool overflow = false;

  template <typename real> Span(const Online<real>& from, const real* w, double rate)
      : norm(from.norm), N(from.N), M(from.M), rate(rate), f(from.f), EE(N, N), UU(M, M), HU(N, M), HH(N, N), c(N, M), VU(N, M), VH(N, N),
        VV(N, N), part(N, N), grown(N, N), b(N), batch(N) {
    const int d = from.d;
    Owned<double> E(N, d), U(M, d), W(d, d), H(N, d);
    for (int z = 0; z < N; z++) std::copy(from.E[z], from.E[z] + d, E[z]);
    for (int k = 0; k < M; k++) std::copy(from.U[k], from.U[k] + d, U[k]);
    for (int i = 0; i < d; i++) std::copy(w + (size_t)i * d, w + (size_t)(i + 1) * d, W[i]);
    product(N, d, d, E.at, E.stride, 1, W, H, false);
    inner_products<double>(E, N, d, E, N, EE), inner_products<double>(U, M, d, U, M, UU);
    inner_products<double>(H, N, d, U, M, HU), inner_products<double>(H, N, d, H, N, HH);
  }

  // With the batch's tokens Z, W changes by Σ_z e_z v_zᵀ, v_z = Σ_k c_zk u_k + b_z h_z.
  void step() {
    const int count = batch.count();
    for (int a = 0; a < count; a++) {
      const int z = batch.tokens[a];
      const double r = norm ? std::sqrt(HH[z][z] + INSIDE_NORM) : 1.0;
      overflow |= special(HU[z], M) || special(&r, 1);
      if (overflow) return;
      b[a] = norm ? rate * surprise(HU[z], M, r, f[z], batch.share[a], c[a]) : (surprise(HU[z], M, r, f[z], batch.share[a], c[a]), 0.0);
      for (int k = 0; k < M; k++) c[a][k] *= -rate;
      for (int k = 0; k < M; k++) {
        VU[a][k] = b[a] * HU[z][k];
        for (int y = 0; y < M; y++) VU[a][k] += c[a][y] * UU[y][k];
      }
    }
    if (norm) change_squares(count);
    for (int x = 0; x < N; x++)
      for (int a = 0; a < count; a++)
        for (int k = 0; k < M; k++) HU[x][k] += EE[x][batch.tokens[a]] * VU[a][k];
  }

  // HH ← (H + K V)(H + K V)ᵀ, K = the columns Z of EE: it grows by X + Xᵀ, X = K (V Hᵀ + V Vᵀ Kᵀ / 2).
  void change_squares(int count) {
    for (int a = 0; a < count; a++) {
      const int z = batch.tokens[a];
      for (int x = 0; x < N; x++) {
        VH[a][x] = b[a] * HH[z][x];
        for (int k = 0; k < M; k++) VH[a][x] += c[a][k] * HU[x][k];
      }
    }
    for (int a = 0; a < count; a++)
      for (int o = 0; o < count; o++) {
        VV[a][o] = b[a] * VH[o][batch.tokens[a]];
        for (int k = 0; k < M; k++) VV[a][o] += c[a][k] * VU[o][k];
      }
    for (int a = 0; a < count; a++) std::copy(EE[batch.tokens[a]], EE[batch.tokens[a]] + EE.stride, part[a]);
    for (int a = 0; a < count; a++)
      for (int o = 0; o < count; o++) VV[a][o] /= 2;
    product(count, N, count, VV.at, VV.stride, 1, part, VH, true);
    product(N, N, count, part.at, 1, part.stride, VH, grown, false);
    for (int x = 0; x < N; x++)
      for (int z = 0; z < N; z++) HH[x][z] += grown[x][z] + grown[z][x];
  }

  template <typename real> void look(real* scores) const {
    for (int z = 0; z < N; z++)
      for (int k = 0; k < M; k++) {
        const double r = norm ? std::sqrt(HH[z][z] + INSIDE_NORM) : 1.0;
        scores[(size_t)z * M + k] = overflow ? std::numeric_limits<real>::quiet_NaN() : (real)(HU[z][k] / r);
      }
  }
};

template <typename Memory, typename real> void give_looks(Memory& memory, int t, int looks, const int32_t* at, real* scores) {
  for (int i = 0; i < looks; i++)
    if (at[i] == t) memory.look(scores + (size_t)i * memory.N * memory.M);
}

// Trains on steps × size tokens; scores are looked at after the numbers of steps `at`.
template <typename real>
void online(int kind, int sign, int norm, int N, int M, int d, int size, int steps, const double* rates, const int32_t* tokens,
            const int32_t* f, real* e, real* w, real* u, int looks, const int32_t* at, real* scores) {
  const bool spanned = kind == MATRIX && !sign;
  Online<real> memory((Kind)kind, sign, norm, N, M, d, rates, f, e, w, u);
  if (spanned) {
    Span span(memory, w, rates[0]);
    for (int t = 0; t < steps; t++) {
      give_looks(span, t, looks, at, scores);
      span.batch.read(tokens + (size_t)t * size, size);
      if (!span.overflow) span.step();
    }
    return give_looks(span, steps, looks, at, scores);
  }
  memory.batch.read(tokens, size);
  memory.read_all();
  for (int t = 0; t < steps; t++) {
    give_looks(memory, t, looks, at, scores);
    if (!memory.overflow) memory.step(t + 1 < steps ? tokens + (size_t)(t + 1) * size : nullptr, size);
  }
  give_looks(memory, steps, looks, at, scores);
  memory.E.give(e, N, d), memory.U.give(u, M, d);
  if (kind != EXPONENTIAL) memory.W.give(w, d, d);
}
}  // namespace

extern "C" {
int online_float(int kind, int sign, int norm, int N, int M, int d, int size, int steps, const double* rates, const int32_t* tokens,
                 const int32_t* f, float* e, float* w, float* u, int looks, const int32_t* at, float* scores) {
  try {
    online(kind, sign, norm, N, M, d, size, steps, rates, tokens, f, e, w, u, looks, at, scores);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}
int online_double(int kind, int sign, int norm, int N, int M, int d, int size, int steps, const double* rates, const int32_t* tokens,
                  const int32_t* f, double* e, double* w, double* u, int looks, const int32_t* at, double* scores) {
  try {
    online(kind, sign, norm, N, M, d, size, steps, rates, tokens, f, e, w, u, looks, at, scores);
  } catch (const std::bad_alloc&) {
    return 1;
  }
  return 0;
}
}

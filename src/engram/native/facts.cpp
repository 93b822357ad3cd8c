// Factual recall by one layer of attention that is read at EOS (models/factual.py): exact loss, gradients and steps of Adam.
//
// The query is always that of EOS and nothing has a position, so attention scores are a table over heads and the vocabulary,
// values another, and a prompt is a bag of tokens (all of them, or their counts). What is left for a token of a prompt is one
// entry of exp(S) a head and one row of values; no key, query or value is ever computed for it.
//
//   q = W_Q e_EOS      S[h, v] = e_v · W_K[h]ᵀ q_h / √d_h      G[v] = W_V e_v      o_h = Σ_t a_ht G[z_t]_h      x = W_O o
//   y = x + W_F ReLU(W_I x + b)                                logits = U y

#include <limits>
#include <numeric>

#include "adam.h"

namespace {  // names of this file alone

constexpr int TOGETHER = 48;

struct Sizes {
  int V, A, d, H, dh, m, B, L, threads;
  int read() const { return H * dh; }
  int hidden() const { return std::max(m, 1); }
};

// Prompts: tokens (L of each), or counts of every token of the vocabulary (then L = V).
template <typename real> struct Prompts {
  const int32_t* tokens;
  const real* counts;
  const int32_t* answers;
};

template <typename real> struct Matrices {
  const Sizes n;
  const Owned<real> Q, K, WV, O, I, F;
  const real* b;
  const Owned<real> VT, OT, IT, FT;
  Matrices(const Sizes& n, const real* w)
      : n(n), Q(w, n.read(), n.d), K(w + (size_t)n.read() * n.d, n.read(), n.d), WV(w + 2 * (size_t)n.read() * n.d, n.read(), n.d),
        O(w + 3 * (size_t)n.read() * n.d, n.d, n.read()), I(w + 4 * (size_t)n.read() * n.d, n.m, n.d),
        F(w + 4 * (size_t)n.read() * n.d + (size_t)n.m * n.d + n.m, n.m ? n.d : 0, n.hidden()),
        b(w + 4 * (size_t)n.read() * n.d + (size_t)n.m * n.d), VT(transposed<real>(WV, n.read(), n.d)), OT(transposed<real>(O, n.d, n.read())),
        IT(transposed<real>(I, n.m, n.d)), FT(transposed<real>(F, n.m ? n.d : 0, n.hidden())) {}
};

// What attention needs to know of the vocabulary. X[h] = exp(S[h] − max S[h]).
template <typename real> struct Tables {
  Owned<real> q, a, S, X, G;  // a_h = W_K[h]ᵀ q_h / √d_h
  Tables(const Sizes& n, const Matrix<real>& E, const Matrix<real>& ET, const Matrices<real>& w)
      : q(1, n.read()), a(n.H, n.d), S(n.H, n.V), X(n.H, n.V), G(n.V, n.read()) {
    const real scale = 1 / std::sqrt(real(n.dh));
    for (int j = 0; j < n.read(); j++)
      for (int i = 0; i < n.d; i++) q[0][j] += w.Q[j][i] * E[n.V - 1][i];
    for (int j = 0; j < n.read(); j++)
      for (int i = 0; i < n.d; i++) a[j / n.dh][i] += scale * q[0][j] * w.K[j][i];
    product(n.H, n.V, n.d, a.at, a.stride, 1, ET, S, false);
    product(n.V, n.read(), n.d, E.at, E.stride, 1, w.VT, G, false);
    for (int h = 0; h < n.H; h++) {
      const real top = *std::max_element(S[h], S[h] + n.V);
      for (int v = 0; v < n.V; v++) X[h][v] = exponential(std::min(S[h][v] - top, real(0)));
    }
  }
};

template <typename real> struct Gradient {
  Owned<real> S, G, O, I, b, F;
  double loss = 0;
  int right = 0;
  bool overflow = false;
  explicit Gradient(const Sizes& n)
      : S(n.H, n.V), G(n.V, n.read()), O(n.d, n.read()), I(n.m, n.d), b(1, n.hidden()), F(n.m ? n.d : 0, n.hidden()) {}
  void clear() {
    S.clear(), G.clear(), O.clear(), I.clear(), b.clear(), F.clear();
    loss = right = 0, overflow = false;
  }
  void add(const Gradient& other) {
    S.add(other.S), G.add(other.G), O.add(other.O), I.add(other.I), b.add(other.b), F.add(other.F);
    loss += other.loss, right += other.right, overflow |= other.overflow;
  }
};

// One head over the L tokens z of a prompt; G and `to` begin at its first column.
//   gather: to = Σ_t a_t G[z_t]      scatter: gain_t = back · G[z_t],  to[z_t] += a_t back
template <typename real> struct Head {
  void (*gather)(const int32_t* z, int L, const real* a, const real* G, int stride, real* to, int dh);
  void (*scatter)(const int32_t* z, int L, const real* a, const real* back, const real* G, real* to, int stride, real* gain, int dh);

  static Head chosen(int dh) {
    switch (dh) {
      case 1: return {gather_as<1>, scatter_as<1>};
      case 2: return {gather_as<2>, scatter_as<2>};
      case 4: return {gather_as<4>, scatter_as<4>};
      case 8: return {gather_as<8>, scatter_as<8>};
      case 16: return {gather_as<16>, scatter_as<16>};
      default: return {gather_any, scatter_any};
    }
  }
  static void gather_any(const int32_t* z, int L, const real* __restrict a, const real* __restrict G, int stride, real* __restrict to, int dh) {
    std::fill(to, to + dh, real(0));
    for (int s = 0; s < L; s++)
      for (int k = 0; k < dh; k++) to[k] += a[s] * G[(size_t)z[s] * stride + k];
  }
  static void scatter_any(const int32_t* z, int L, const real* __restrict a, const real* __restrict back, const real* __restrict G, real* __restrict to, int stride,
                          real* __restrict gain, int dh) {
    for (int s = 0; s < L; s++) {
      const size_t row = (size_t)z[s] * stride;
      gain[s] = 0;
      for (int k = 0; k < dh; k++) gain[s] += back[k] * G[row + k], to[row + k] += a[s] * back[k];
    }
  }
  // A head whose width is known when compiling is one vector: left alone, the compiler turns to vectors of tokens, with slow gathers.
  template <int size> struct Vector {
    typedef real type __attribute__((vector_size(size * sizeof(real)), aligned(sizeof(real)), may_alias));
  };
  template <int size> static void gather_as(const int32_t* z, int L, const real* a, const real* G, int stride, real* to, int) {
    using V = typename Vector<size>::type;
    V even{}, odd{};  // two sums, so that one need not wait for the other
    int s = 0;
    for (; s + 1 < L; s += 2) {
      even += a[s] * *(const V*)(G + (size_t)z[s] * stride);
      odd += a[s + 1] * *(const V*)(G + (size_t)z[s + 1] * stride);
    }
    if (s < L) even += a[s] * *(const V*)(G + (size_t)z[s] * stride);
    *(V*)to = even + odd;
  }
  template <int size>
  static void scatter_as(const int32_t* z, int L, const real* a, const real* back, const real* G, real* to, int stride, real* gain, int) {
    using V = typename Vector<size>::type;
    const V from = *(const V*)back;
    for (int s = 0; s < L; s++) {
      const size_t row = (size_t)z[s] * stride;
      const V products = from * *(const V*)(G + row);
      *(V*)(to + row) += a[s] * from;
      real sum = 0;
      for (int k = 0; k < size; k++) sum += products[k];
      gain[s] = sum;
    }
  }
};

template <typename real> struct Worker {
  const Sizes& n;
  const Matrix<real>&U, &UT;
  Gradient<real> g;
  Head<real> head;
  Owned<real> o, x, hid, y, l, dy, dhid, dx, dout;
  std::vector<real> a, gain;   // a of every prompt of a block, head and token
  std::vector<int32_t> every;  // the whole vocabulary: the tokens of prompts that are counted

  Worker(const Sizes& n, const Matrix<real>& U, const Matrix<real>& UT)
      : n(n), U(U), UT(UT), g(n), head(Head<real>::chosen(n.dh)), o(TOGETHER, n.read()), x(TOGETHER, n.d), hid(TOGETHER, n.hidden()), y(TOGETHER, n.d),
        l(TOGETHER, n.A), dy(TOGETHER, n.d), dhid(TOGETHER, n.hidden()), dx(TOGETHER, n.d), dout(TOGETHER, n.read()),
        a((size_t)TOGETHER * n.H * n.L), gain(n.L), every(n.V) {
    std::iota(every.begin(), every.end(), 0);
  }
  const int32_t* tokens(const Prompts<real>& prompts, int prompt) const {
    return prompts.tokens ? prompts.tokens + (size_t)prompt * n.L : every.data();
  }

  void pass(const Prompts<real>& prompts, const Matrices<real>& w, const Tables<real>& t, int first, int last, bool learn) {
    g.clear();
    for (int i = first; i < last && !g.overflow; i += TOGETHER) block(prompts, w, t, i, std::min(TOGETHER, last - i), learn);
  }

  void block(const Prompts<real>& prompts, const Matrices<real>& w, const Tables<real>& t, int first, int rows, bool learn) {
    for (int i = 0; i < rows; i++) attend(prompts, t, first + i, i);
    product(rows, n.d, n.read(), o.at, o.stride, 1, w.OT, x, false);
    read(w, rows);
    product(rows, n.A, n.d, y.at, y.stride, 1, UT, l, false);
    for (int i = 0; i < rows; i++) judge(i, prompts.answers[first + i]);
    if (!learn || g.overflow) return;
    product(rows, n.d, n.A, l.at, l.stride, 1, U, dy, false);
    back(w, rows);
    product(n.d, n.read(), rows, dx.at, 1, dx.stride, o, g.O, true);
    product(rows, n.read(), n.d, dx.at, dx.stride, 1, w.O, dout, false);
    for (int i = 0; i < rows; i++) unattend(prompts, t, first + i, i);
  }

  // y = x + W_F ReLU(W_I x + b)
  void read(const Matrices<real>& w, int rows) {
    if (n.m) {
      product(rows, n.m, n.d, x.at, x.stride, 1, w.IT, hid, false);
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < n.m; j++) hid[i][j] = std::max(hid[i][j] + w.b[j], real(0));
      product(rows, n.d, n.m, hid.at, hid.stride, 1, w.FT, y, false);
    }
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < n.d; j++) y[i][j] = x[i][j] + (n.m ? y[i][j] : real(0));
  }

  // dx from dy, and the gradients of the MLP.
  void back(const Matrices<real>& w, int rows) {
    if (n.m) {
      product(n.d, n.m, rows, dy.at, 1, dy.stride, hid, g.F, true);
      product(rows, n.m, n.d, dy.at, dy.stride, 1, w.F, dhid, false);
      for (int i = 0; i < rows; i++)
        for (int j = 0; j < n.m; j++) {
          dhid[i][j] = hid[i][j] > 0 ? dhid[i][j] : real(0);
          g.b[0][j] += dhid[i][j];
        }
      product(n.m, n.d, rows, dhid.at, 1, dhid.stride, x, g.I, true);
      product(rows, n.d, n.m, dhid.at, dhid.stride, 1, w.I, dx, false);
    }
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < n.d; j++) dx[i][j] = dy[i][j] + (n.m ? dx[i][j] : real(0));
  }

  // Logits of a row become their gradient.
  void judge(int i, int answer) {
    real* row = l[i];
    if (special(row, n.A)) {  // fast arithmetic must not meet what is no number
      g.overflow = true;
      return;
    }
    real largest = row[0], sum = 0;
    for (int k = 1; k < n.A; k++) largest = std::max(largest, row[k]);
    g.right += row[answer] == largest && std::find(row, row + answer, largest) == row + answer;  // the first of equals
    const real own = row[answer] - largest;
    for (int k = 0; k < n.A; k++) row[k] = exponential(row[k] - largest);
    for (int k = 0; k < n.A; k++) sum += row[k];
    g.loss += std::log((double)sum) - own;
    const real share = 1 / (sum * n.B);
    for (int k = 0; k < n.A; k++) row[k] *= share;
    for (int k = n.A; k < l.stride; k++) row[k] = 0;
    row[answer] -= real(1) / n.B;
  }

  // o_h = Σ_t a_ht G[z_t]_h, where a_h is the softmax of S[h, z_t] over the prompt; a token counts as often as it comes.
  void attend(const Prompts<real>& prompts, const Tables<real>& t, int prompt, int i) {
    const int32_t* z = tokens(prompts, prompt);
    const real* count = prompts.tokens ? nullptr : prompts.counts + (size_t)prompt * n.L;
    for (int h = 0; h < n.H; h++) {
      real* share = &a[((size_t)i * n.H + h) * n.L];
      real sum = take(t.X[h], z, count, share);
      if (sum < std::sqrt(std::numeric_limits<real>::min())) sum = far(t.S[h], z, count, share);
      for (int s = 0; s < n.L; s++) share[s] /= sum;
      head.gather(z, n.L, share, t.G.at + h * n.dh, t.G.stride, o[i] + h * n.dh, n.dh);
    }
  }
  real take(const real* X, const int32_t* z, const real* count, real* share) const {
    real sum = 0;
    for (int s = 0; s < n.L; s++) share[s] = X[z[s]];
    if (count)
      for (int s = 0; s < n.L; s++) share[s] *= count[s];
    for (int s = 0; s < n.L; s++) sum += share[s];
    return sum;
  }
  // All tokens of this prompt score so far below the best of the vocabulary that their X are too small: once more from S.
  real far(const real* S, const int32_t* z, const real* count, real* share) const {
    real top = std::numeric_limits<real>::lowest(), sum = 0;
    for (int s = 0; s < n.L; s++)
      if (!count || count[s] > 0) top = std::max(top, S[z[s]]);
    for (int s = 0; s < n.L; s++) sum += share[s] = (count ? count[s] : real(1)) * exponential(std::min(S[z[s]] - top, real(0)));
    return sum;
  }

  // Back through o to the tables: ∇S[h, z_t] += a_ht (gain_ht − Σ a gain), ∇G[z_t]_h += a_ht do_h.
  void unattend(const Prompts<real>& prompts, const Tables<real>& t, int prompt, int i) {
    const int32_t* z = tokens(prompts, prompt);
    for (int h = 0; h < n.H; h++) {
      const real* share = &a[((size_t)i * n.H + h) * n.L];
      const int column = h * n.dh;
      head.scatter(z, n.L, share, dout[i] + column, t.G.at + column, g.G.at + column, g.G.stride, gain.data(), n.dh);
      real mean = 0;
      for (int s = 0; s < n.L; s++) mean += share[s] * gain[s];
      real* to = g.S[h];
      for (int s = 0; s < n.L; s++) to[z[s]] += share[s] * (gain[s] - mean);
    }
  }
};

template <typename real> struct Layer {
  const Sizes n;
  const Owned<real> E, ET, U, UT;
  std::vector<Worker<real>> workers;
  Owned<real> gQ, gK, gV;

  Layer(const Sizes& n, const real* e, const real* u)
      : n(n), E(e, n.V, n.d), ET(transposed<real>(E, n.V, n.d)), U(u, n.A, n.d), UT(transposed<real>(U, n.A, n.d)), gQ(n.read(), n.d),
        gK(n.read(), n.d), gV(n.read(), n.d) {
    workers.reserve(n.threads);
    for (int i = 0; i < n.threads; i++) workers.emplace_back(this->n, U, UT);
  }

  // Loss, right answers, and (if wanted) gradients of one batch; the latter lie in workers[0].g and gQ, gK, gV.
  const Gradient<real>& pass(const Prompts<real>& prompts, const real* weights, bool learn) {
    const Matrices<real> w(n, weights);
    const Tables<real> t(n, E, ET, w);
    const auto share = [&](int i) {
      workers[i].pass(prompts, w, t, (int)((int64_t)n.B * i / n.threads), (int)((int64_t)n.B * (i + 1) / n.threads), learn);
    };
    in_shares(n.threads, (double)n.B * n.d * (n.read() + 2.0 * n.m + n.A) > WORTH_A_THREAD, share);
    Gradient<real>& g = workers[0].g;
    for (int i = 1; i < n.threads; i++) g.add(workers[i].g);
    if (learn && !g.overflow) chain(w, t, g);
    return g;
  }

  // From tables to matrices: ∇W_V = ∇Gᵀ E;  with c_h = Eᵀ ∇S_h / √d_h:  ∇W_K[h] = q_h c_hᵀ,  ∇W_Q[h] = (W_K[h] c_h) e_EOSᵀ.
  void chain(const Matrices<real>& w, const Tables<real>& t, const Gradient<real>& g) {
    product(n.read(), n.d, n.V, g.G.at, 1, g.G.stride, E, gV, false);
    Owned<real> c(n.H, n.d);
    product(n.H, n.d, n.V, g.S.at, g.S.stride, 1, E, c, false);
    const real scale = 1 / std::sqrt(real(n.dh));
    for (int j = 0; j < n.read(); j++) {
      const real* of = c[j / n.dh];
      real back = 0;
      for (int i = 0; i < n.d; i++) back += scale * of[i] * w.K[j][i];
      for (int i = 0; i < n.d; i++) gK[j][i] = scale * t.q[0][j] * of[i], gQ[j][i] = back * E[n.V - 1][i];
    }
  }

  // Calls what(gradient, rows, columns) for every matrix in the order of the weights.
  template <typename What> void each(const Gradient<real>& g, What what) const {
    what(gQ, n.read(), n.d), what(gK, n.read(), n.d), what(gV, n.read(), n.d), what(g.O, n.d, n.read());
    if (n.m) what(g.I, n.m, n.d), what(g.b, 1, n.m), what(g.F, n.d, n.m);
  }
};

// found: summed loss, right answers, whether a score overflowed. `gradient` may be null.
template <typename real>
void measure(const int32_t* sizes, const real* e, const real* u, const real* w, const int32_t* tokens, const real* counts, const int32_t* answers,
             real* gradient, double* found) {
  Layer<real> layer(*(const Sizes*)sizes, e, u);
  const Gradient<real>& g = layer.pass({tokens, counts, answers}, w, gradient != nullptr);
  found[0] = g.loss, found[1] = g.right, found[2] = g.overflow;
  if (!gradient || g.overflow) return;
  layer.each(g, [&](const Owned<real>& part, int rows, int columns) {
    part.give(gradient, rows, columns);
    gradient += (size_t)rows * columns;
  });
}

// `steps` steps of Adam from step t0 on, each on prompts of its own. found: summed loss and right answers of the last batch,
// whether a score overflowed, steps taken.
template <typename real>
void train(const int32_t* sizes, int t0, int steps, const double* plan, const real* e, const real* u, const int32_t* tokens, const real* counts,
           const int32_t* answers, real* w, real* mean, real* square, double* found) {
  Layer<real> layer(*(const Sizes*)sizes, e, u);
  const Sizes& n = layer.n;
  const Adam<real> adam{plan[0], plan[1], plan[2], plan[3]};
  for (int t = 0; t < steps; t++) {
    const size_t first = (size_t)t * n.B;
    const Prompts<real> prompts{tokens ? tokens + first * n.L : nullptr, counts ? counts + first * n.L : nullptr, answers + first};
    const Gradient<real>& g = layer.pass(prompts, w, true);
    found[0] = g.loss, found[1] = g.right, found[2] = g.overflow, found[3] = t;
    if (g.overflow) return;
    size_t at = 0;
    layer.each(g, [&](const Owned<real>& part, int rows, int columns) {
      adam.step(w + at, mean + at, square + at, part, rows, columns, t0 + t + 1);
      at += (size_t)rows * columns;
    });
  }
  found[3] = steps;
}

constexpr int NO_MEMORY = 1;
template <typename Work> int guarded(Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return NO_MEMORY;
  }
  return 0;
}

}  // namespace

extern "C" {
int facts_measure_float(const int32_t* sizes, const float* e, const float* u, const float* w, const int32_t* tokens, const float* counts,
                        const int32_t* answers, float* gradient, double* found) {
  return guarded([&] { measure(sizes, e, u, w, tokens, counts, answers, gradient, found); });
}
int facts_measure_double(const int32_t* sizes, const double* e, const double* u, const double* w, const int32_t* tokens, const double* counts,
                         const int32_t* answers, double* gradient, double* found) {
  return guarded([&] { measure(sizes, e, u, w, tokens, counts, answers, gradient, found); });
}
int facts_train_float(const int32_t* sizes, int t0, int steps, const double* plan, const float* e, const float* u, const int32_t* tokens,
                      const float* counts, const int32_t* answers, float* w, float* mean, float* square, double* found) {
  return guarded([&] { train(sizes, t0, steps, plan, e, u, tokens, counts, answers, w, mean, square, found); });
}
int facts_train_double(const int32_t* sizes, int t0, int steps, const double* plan, const double* e, const double* u, const int32_t* tokens,
                       const double* counts, const int32_t* answers, double* w, double* mean, double* square, double* found) {
  return guarded([&] { train(sizes, t0, steps, plan, e, u, tokens, counts, answers, w, mean, square, found); });
}
}

// Exact loss and gradients of the general transformer: any number of layers and heads, layer norms, feed-forward layers.
//
//   x = E[z_t] + P[t] (without P, queries and keys are turned by t);   every layer:   x ← x + W_O Σ_s a_ts W_V n_s,   x ← x + W_F ReLU(W_I n)   (or W_F n)
//   logits = U n(x),   a_t· = softmax_s( W_Q n_t · W_K n_s );   W n stands for W n + b where there is a bias
//
// Work goes sequence by sequence: what a sequence leaves behind for the way back stays near the processor, no thread waits
// for another, and the masked half of every map is skipped. The last layer has queries only at the positions that the
// loss reads. Each thread adds up its own sums, so equal threads give equal bytes.
//
// Shapes: T positions, N tokens, d width, Q positions with queries. Matrices come with padded columns, and a head has
// `wide` columns, whole vectors: those beyond its own are zero.

#include "matrix.h"

namespace {

constexpr int PAD = 64;  // columns of what is given
static_assert(PAD % Lanes<float>::pad == 0 && PAD % Lanes<double>::pad == 0, "rows must be whole blocks");

struct Sizes {
  int32_t B, T, Tmax, N, d, layers, norm, rotary, groups, threads;
};
struct Kind {
  int32_t heads, wide, units;  // units: columns of W_F, 0 without a feed-forward layer
};
enum Part { QUERY, KEY, VALUE, OUTPUT, INNER, FEED, PARTS };

// Rows whose distance is no power of two: those would fight for the same few lines of cache.
template <typename real> struct Rows : Owned<real> {
  Rows(int rows, int columns) : Owned<real>(rows, columns + Lanes<real>::count) {}
};

// W as products read it, forward (t, its transpose) and backward (m), and where its gradient is added; each may be missing.
// m and t are given in panels of PAD columns, one after the other: a panel stays in the first cache for all rows.
template <typename real> struct Weight {
  int rows, columns;
  real *m, *t;
  Matrix<real> g;

  Weight(int rows, int columns, real* const* from, real* to, int share)
      : rows(rows), columns(columns), m(from[0]), t(from[1]), g{to ? to + (size_t)share * rows * up(columns) : nullptr, up(columns)} {}
  static int up(int columns) { return (columns + PAD - 1) / PAD * PAD; }
  real* row(int i) const { return m + (size_t)i * up(columns); }  // of one that is not given in panels

  static Matrix<real> part(const Matrix<real>& m, int column) { return {m.at + column, m.stride}; }
  static void by_panels(int n, int columns, int k, const Matrix<real>& x, real* panels, const Matrix<real>& y, bool add) {
    for (int j = 0; j < columns; j += PAD, panels += (size_t)k * PAD)
      product(n, std::min(PAD, columns - j), k, x.at, x.stride, 1, Matrix<real>{panels, PAD}, part(y, j), add);
  }
  void forward(int n, const Matrix<real>& x, const Matrix<real>& y, bool add) const { by_panels(n, rows, columns, x, t, y, add); }
  void backward(int n, const Matrix<real>& dy, const Matrix<real>& dx, bool add) const { by_panels(n, columns, rows, dy, m, dx, add); }
  void learn(int n, const Matrix<real>& dy, const Matrix<real>& x) const {
    for (int j = 0; g.at && j < columns; j += PAD)
      product(rows, std::min(PAD, columns - j), n, dy.at, 1, dy.stride, part(x, j), part(g, j), true);
  }
};

// A bias: one row, added to every row that its matrix makes.
template <typename real> struct Bias : Weight<real> {
  Bias(int length, real* const* from, real* to, int share) : Weight<real>(1, length, from, to, share) {}
  void add(int n, const Matrix<real>& y) const {
    for (int i = 0; this->m && i < n; i++)
      for (int j = 0; j < this->columns; j++) y[i][j] += this->m[j];
  }
  void learn(int n, const Matrix<real>& dy) const {
    for (int i = 0; this->g.at && i < n; i++)
      for (int j = 0; j < this->columns; j++) this->g.at[j] += dy[i][j];
  }
};

// R_t turns the coordinates j and j + d_h/2 of every head by t 10000^(−2j/d_h); `sign` −1 turns back.
template <typename real> struct Rotation {
  int half = 0;
  std::vector<real> cos, sin;

  Rotation(const Sizes& n, const Kind& kind) : half(n.rotary ? n.d / kind.heads / 2 : 0), cos((size_t)n.T * half), sin(cos.size()) {
    for (int t = 0; t < n.T; t++)
      for (int j = 0; j < half; j++) {
        const double angle = t * std::pow(10000.0, -double(j) / half);
        cos[(size_t)t * half + j] = std::cos(angle), sin[(size_t)t * half + j] = std::sin(angle);
      }
  }
  void turn(real* row, int t, const Kind& kind, real sign) const {
    const real *c = cos.data() + (size_t)t * half, *s = sin.data() + (size_t)t * half;
    for (int h = 0; h < kind.heads; h++, row += kind.wide)
      for (int j = 0; j < half; j++) {
        const real a = row[j], b = row[j + half];
        row[j] = a * c[j] - sign * b * s[j], row[j + half] = b * c[j] + sign * a * s[j];
      }
  }
};

template <typename real> struct Layer {
  const Kind kind;
  std::vector<Weight<real>> parts;
  std::vector<Bias<real>> biases;
  Rotation<real> rotation;
  bool deeper = false;  // whether a matrix below this layer is wanted

  Layer(const Sizes& n, const Kind& kind, real* const* from, real* const* to, int share) : kind(kind), rotation(n, kind) {
    const int D = kind.heads * kind.wide, shapes[PARTS][2] = {{D, n.d}, {D, n.d}, {D, n.d}, {n.d, D}, {kind.units, n.d}, {n.d, kind.units}};
    for (int part = 0; part < PARTS; part++) parts.emplace_back(shapes[part][0], shapes[part][1], from + 2 * part, to[part], share);
    for (int part = 0; part < PARTS; part++) biases.emplace_back(shapes[part][0], from + 2 * (PARTS + part), to[PARTS + part], share);
  }
  const Weight<real>& operator[](Part part) const { return parts[part]; }
  bool has(Part part) const { return parts[part].m; }
  bool wants(Part first, Part last) const {
    for (int part = first; part <= last; part++)
      if (parts[part].g.at || biases[part].g.at) return true;
    return false;
  }
  void forward(Part part, int n, const Matrix<real>& x, const Matrix<real>& y, bool add) const {
    parts[part].forward(n, x, y, add), biases[part].add(n, y);
  }
  void learn(Part part, int n, const Matrix<real>& dy, const Matrix<real>& x) const {
    parts[part].learn(n, dy, x), biases[part].learn(n, dy);
  }
  void turn(const Matrix<real>& rows, const std::vector<int>& at, real sign) const {
    for (size_t i = 0; rotation.half && i < at.size(); i++) rotation.turn(rows[i], at[i], kind, sign);
  }
};

template <typename real> struct Model {
  const Sizes n;
  Weight<real> E, P, U;
  std::vector<Layer<real>> layers;

  Model(const Sizes& n, const Kind* kinds, real* const* from, real* const* to, int share)
      : n(n), E(n.N, n.d, from, to[0], share), P(n.Tmax, n.d, from + 2, to[1], share), U(n.N, n.d, from + 4, to[2], share) {
    bool deeper = E.g.at || P.g.at;
    for (int i = 0; i < n.layers; i++) {
      layers.emplace_back(n, kinds[i], from + 6 + 4 * PARTS * i, to + 3 + 2 * PARTS * i, share);
      layers[i].deeper = deeper;
      deeper |= layers[i].wants(QUERY, FEED);
    }
  }
  bool deeper() const { return layers.back().deeper || layers.back().wants(QUERY, FEED); }
};

// Rows normed, and the factor of each.
template <typename real> struct Normed : Rows<real> {
  std::vector<real> factor;
  const int d;
  const bool norm;
  Normed(const Sizes& n) : Rows<real>(n.T, n.d), factor(n.T), d(n.d), norm(n.norm) {}

  void from(const Matrix<real>& x, int rows) {
    for (int t = 0; t < rows; t++) {
      real mean = 0, square = 0, *to = (*this)[t];
      if (norm) {
        for (int j = 0; j < d; j++) mean += x[t][j];
        mean /= d;
        for (int j = 0; j < d; j++) square += (x[t][j] - mean) * (x[t][j] - mean);
      }
      const real by = factor[t] = norm ? 1 / std::sqrt(square / d + real(1e-5)) : 1;
      for (int j = 0; j < d; j++) to[j] = (x[t][j] - mean) * by;
    }
  }
  // dx += what the gradient dn of the normed rows is in x: (dn − mean dn − n mean(n dn)) factor.
  void back(const Matrix<real>& dn, const Matrix<real>& dx, int rows) const {
    for (int t = 0; t < rows; t++) {
      const real *n = (*this)[t], *g = dn[t];
      real mean = 0, along = 0, *to = dx[t];
      if (norm)
        for (int j = 0; j < d; j++) mean += g[j] / d, along += n[j] * g[j] / d;
      for (int j = 0; j < d; j++) to[j] += (g[j] - mean - n[j] * along) * factor[t];
    }
  }
};

// What a layer leaves behind for the way back.
template <typename real> struct Kept {
  Normed<real> n1, n2;
  Rows<real> asking, q, k, kT, v, vT, mixed, h;
  std::vector<Rows<real>> a;
  Kept(const Sizes& n, const Kind& kind, int D)
      : n1(n), n2(n), asking(n.T, n.d), q(n.T, D), k(n.T, D), kT(D, n.T), v(n.T, D), vT(D, n.T), mixed(n.T, D), h(n.T, kind.units),
        a(kind.heads, Rows<real>(n.T, n.T)) {}
};

template <typename real> struct Sequence {
  const Model<real>& w;
  const real weight;
  double* const groups;
  std::vector<Kept<real>> kept;
  Normed<real> last;
  Rows<real> x, dx, dn, dask, dq, dk, dv, dmixed, dh, da, other, logits;
  std::vector<int> everywhere, read;
  bool overflow = false;

  Sequence(const Model<real>& w, real weight, double* groups)
      : w(w), weight(weight), groups(groups), last(w.n), x(w.n.T, w.n.d), dx(w.n.T, w.n.d), dn(w.n.T, w.n.d), dask(w.n.T, w.n.d),
        dq(w.n.T, widest()), dk(w.n.T, widest()), dv(w.n.T, widest()), dmixed(w.n.T, widest()), dh(w.n.T, most_units()), da(w.n.T, w.n.T),
        other(w.n.T, w.n.d), logits(w.n.T, w.n.N) {
    kept.reserve(w.n.layers);
    for (const auto& layer : w.layers) kept.emplace_back(w.n, layer.kind, layer[KEY].rows);
  }
  int widest() const {
    int most = 0;
    for (const auto& layer : w.layers) most = std::max(most, layer[KEY].rows);
    return most;
  }
  int most_units() const {
    int most = 0;
    for (const auto& layer : w.layers) most = std::max(most, layer.kind.units);
    return most;
  }

  // Row i of a map is read, in blocks of ROWS rows or of ROWS columns, beyond its own last key: zeros must stand there.
  int read_until(const std::vector<int>& at, int i) const {
    const int Q = at.size();
    return std::min(at[std::min(i / ROWS * ROWS + ROWS, Q) - 1] + 1 + ROWS, da.stride);
  }
  static Matrix<real> head(const Matrix<real>& m, int column) { return {m.at + column, m.stride}; }

  void attend(const Layer<real>& layer, Kept<real>& s, const std::vector<int>& at, int T) {
    const int Q = at.size(), d = w.n.d, wide = layer.kind.wide;
    auto none = [](int) { return 0; };
    auto seen = [&](int i) { return at[i] + 1; };
    auto width = [=](int) { return wide; };
    s.n1.from(x, T);
    for (int i = 0; i < Q; i++) std::copy(s.n1[at[i]], s.n1[at[i]] + d, s.asking[i]), std::copy(x[at[i]], x[at[i]] + d, x[i]);
    if (layer.has(QUERY)) layer.forward(QUERY, Q, s.asking, s.q, false);
    else for (int i = 0; i < Q; i++) std::copy(s.asking[i], s.asking[i] + d, s.q[i]);
    layer.forward(KEY, T, s.n1, s.k, false);
    layer.turn(s.q, at, 1), layer.turn(s.k, everywhere, 1);
    transpose<real>(s.k, T, layer[KEY].rows, s.kT);
    layer.forward(VALUE, T, s.n1, s.v, false), transpose<real>(s.v, T, layer[KEY].rows, s.vT);
    for (int h = 0; h < layer.kind.heads; h++) {
      const int from = h * wide;
      Rows<real>& a = s.a[h];
      product(Q, s.q.at + from, s.q.stride, 1, Matrix<real>{s.kT[from], s.kT.stride}, a, false, none, width, seen);
      for (int i = 0; i < Q; i++) {
        overflow |= special(a[i], at[i] + 1);
        softmax(a[i], at[i] + 1, read_until(at, i));
      }
      product(Q, a.at, a.stride, 1, head(s.v, from), head(s.mixed, from), false, none, seen, width);
    }
    layer.forward(OUTPUT, Q, s.mixed, x, true);
  }

  void feed(const Layer<real>& layer, Kept<real>& s, int Q) {
    s.n2.from(x, Q);
    if (layer.has(INNER)) {
      layer.forward(INNER, Q, s.n2, s.h, false);
      for (int i = 0; i < Q; i++)
        for (int j = 0; j < layer.kind.units; j++) s.h[i][j] = std::max(s.h[i][j], real(0));
    }
    layer.forward(FEED, Q, layer.has(INNER) ? (Matrix<real>)s.h : s.n2, x, true);
  }

  // The logits become the gradient of the loss in them.
  void loss(const std::vector<int>& at, const int32_t* target, const int8_t* group) {
    const int Q = at.size(), N = w.n.N;
    last.from(x, Q);
    w.U.forward(Q, last, logits, false);
    for (int i = 0; i < Q; i++) {
      real* l = logits[i];
      overflow |= special(l, N);
      const int y = target[at[i]], guess = std::max_element(l, l + N) - l;
      double sum = 0, largest = l[guess], right = l[y];
      for (int j = 0; j < N; j++) sum += l[j] = exponential(l[j] - (real)largest);
      for (int j = 0; j < N; j++) l[j] *= weight / (real)sum;
      l[y] -= weight;
      double* to = groups + 3 * group[at[i]];
      to[0] += std::log(sum) + largest - right, to[1] += guess == y, to[2] += 1;
    }
  }

  void unread(int Q) {
    w.U.learn(Q, logits, last);
    w.U.backward(Q, logits, dn, false);
    clear(dx, Q);
    last.back(dn, dx, Q);
  }

  void unfeed(const Layer<real>& layer, Kept<real>& s, int Q) {
    const bool inner = layer.has(INNER);
    layer.learn(FEED, Q, dx, inner ? (Matrix<real>)s.h : s.n2);
    if (!layer.deeper && !layer.wants(QUERY, INNER)) return;
    layer[FEED].backward(Q, dx, inner ? dh : dn, false);
    if (inner) {
      for (int i = 0; i < Q; i++)
        for (int j = 0; j < layer.kind.units; j++) dh[i][j] = s.h[i][j] > 0 ? dh[i][j] : 0;
      layer.learn(INNER, Q, dh, s.n2);
      layer[INNER].backward(Q, dh, dn, false);
    }
    s.n2.back(dn, dx, Q);
  }

  void unattend(const Layer<real>& layer, Kept<real>& s, const std::vector<int>& at, int T) {
    const int Q = at.size();
    layer.learn(OUTPUT, Q, dx, s.mixed);
    if (!layer.deeper && !layer.wants(QUERY, VALUE)) return;
    layer[OUTPUT].backward(Q, dx, dmixed, false);
    for (int h = 0; h < layer.kind.heads; h++) unmix(s, at, T, h, layer.kind.wide);
    layer.turn(dq, at, -1), layer.turn(dk, everywhere, -1);
    if (layer.has(QUERY)) layer.learn(QUERY, Q, dq, s.asking);
    layer.learn(KEY, T, dk, s.n1);
    layer.learn(VALUE, T, dv, s.n1);
    if (layer.deeper) unshow(layer, s, at, T);
  }

  // Back through one head, from what it mixed to its queries, keys and values.
  void unmix(Kept<real>& s, const std::vector<int>& at, int T, int h, int wide) {
    const int Q = at.size(), from = h * wide;
    const Rows<real>& a = s.a[h];
    auto none = [](int) { return 0; };
    auto seen = [&](int i) { return at[i] + 1; };
    auto width = [=](int) { return wide; };
    auto later = [&](int t) { return int(std::lower_bound(at.begin(), at.end(), t) - at.begin()); };  // queries from t on
    auto all = [=](int) { return Q; };
    product(Q, dmixed.at + from, dmixed.stride, 1, Matrix<real>{s.vT[from], s.vT.stride}, da, false, none, width, seen);
    for (int i = 0; i < Q; i++) softmax_back(da[i], a[i], at[i] + 1, read_until(at, i));
    product(Q, da.at, da.stride, 1, head(s.k, from), head(dq, from), false, none, seen, width);
    product(T, da.at, 1, da.stride, head(s.q, from), head(dk, from), false, later, all, width);
    product(T, a.at, 1, a.stride, head(dmixed, from), head(dv, from), false, later, all, width);
  }

  // Back from queries, keys and values to what the layer was shown, at all positions.
  void unshow(const Layer<real>& layer, Kept<real>& s, const std::vector<int>& at, int T) {
    const int Q = at.size(), d = w.n.d;
    layer[KEY].backward(T, dk, dn, false);
    layer[VALUE].backward(T, dv, dn, true);
    if (layer.has(QUERY)) layer[QUERY].backward(Q, dq, dask, false);
    clear(other, T);
    for (int i = 0; i < Q; i++) {
      const real* asked = layer.has(QUERY) ? dask[i] : dq[i];
      for (int j = 0; j < d; j++) dn[at[i]][j] += asked[j], other[at[i]][j] = dx[i][j];
    }
    s.n1.back(dn, other, T);
    std::swap(dx.memory, other.memory), std::swap(dx.at, other.at);
  }

  void unembed(const int32_t* z, int T) {
    for (int t = 0; t < T; t++)
      for (int j = 0; j < w.n.d; j++) {
        if (w.E.g.at) w.E.g[z[t]][j] += dx[t][j];
        if (w.P.g.at) w.P.g[t][j] += dx[t][j];
      }
  }

  static void clear(const Rows<real>& m, int rows) { std::fill(m.at, m[rows], real(0)); }

  void run(const int32_t* z, const int32_t* target, const int8_t* group) {
    read.clear();
    for (int t = 0; t < w.n.T; t++)
      if (group[t] >= 0) read.push_back(t);
    if (read.empty()) return;
    const int T = read.back() + 1, L = w.n.layers;  // nothing after the last position read can matter
    everywhere.resize(T);
    for (int t = 0; t < T; t++) everywhere[t] = t;
    for (int t = 0; t < T; t++)
      for (int j = 0; j < w.n.d; j++) x[t][j] = w.E.row(z[t])[j] + (w.P.m ? w.P.row(t)[j] : 0);
    for (int i = 0; i < L; i++) {
      const auto& at = i + 1 < L ? everywhere : read;
      attend(w.layers[i], kept[i], at, T);
      if (w.layers[i].kind.units) feed(w.layers[i], kept[i], at.size());
    }
    loss(read, target, group);
    if (!w.deeper() && !w.U.g.at) return;
    unread(read.size());
    for (int i = L - 1; i >= 0; i--) {
      const auto& at = i + 1 < L ? everywhere : read;
      if (!w.layers[i].deeper && !w.layers[i].wants(QUERY, FEED)) return;
      if (w.layers[i].kind.units) unfeed(w.layers[i], kept[i], at.size());
      if (w.layers[i].deeper || w.layers[i].wants(QUERY, OUTPUT)) unattend(w.layers[i], kept[i], at, T);
    }
    if (w.layers[0].deeper) unembed(z, T);
  }
};

enum Outcome { FINE = 0, NO_MEMORY = 1, OVERFLOW_SEEN = 2 };

template <typename real>
int gradients(const Sizes& n, const Kind* kinds, double weight, const int32_t* tokens, const int32_t* targets, const int8_t* group,
              real* const* from, real* const* to, double* sums) try {
  std::vector<int> outcome(n.threads, FINE);
  auto work = [&](int i) {
    try {
      const Model<real> w(n, kinds, from, to, i);
      Sequence<real> sequence(w, (real)weight, sums + (size_t)i * 3 * n.groups);
      for (int b = i; b < n.B; b += n.threads) sequence.run(tokens + (size_t)b * n.T, targets + (size_t)b * n.T, group + (size_t)b * n.T);
      outcome[i] = sequence.overflow ? OVERFLOW_SEEN : FINE;
    } catch (const std::bad_alloc&) {
      outcome[i] = NO_MEMORY;
    }
  };
  in_shares(n.threads, (double)n.B * n.T * n.layers * (n.T + 6.0 * n.d) * n.d > WORTH_A_THREAD, work);
  const bool no_memory = std::find(outcome.begin(), outcome.end(), NO_MEMORY) != outcome.end();
  return no_memory ? NO_MEMORY : *std::max_element(outcome.begin(), outcome.end());
} catch (const std::bad_alloc&) {
  return NO_MEMORY;
}

}  // namespace

extern "C" {
int layers_float(const int32_t* sizes, const int32_t* kinds, double weight, const int32_t* tokens, const int32_t* targets, const int8_t* group,
                 float* const* from, float* const* to, double* sums) {
  return gradients(*(const Sizes*)sizes, (const Kind*)kinds, weight, tokens, targets, group, from, to, sums);
}
int layers_double(const int32_t* sizes, const int32_t* kinds, double weight, const int32_t* tokens, const int32_t* targets, const int8_t* group,
                  double* const* from, double* const* to, double* sums) {
  return gradients(*(const Sizes*)sizes, (const Kind*)kinds, weight, tokens, targets, group, from, to, sums);
}
}

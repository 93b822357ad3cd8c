// Exact loss and gradients of the simplified transformer from the memory algebra, and the walk of the bigram task.
//
// Inputs are embeddings of finite sets, so linear maps of the input are tables (rows for tokens and for positions):
//
//   layer-1 score   s1[t,s] = PP[t,s] + EP[z_t,s] + PE[t,z_s] + EE[z_t,z_s]        x_t · W_K1 x_s / τ
//   layer-1 value   y_s     = F[z_s] + G[s]                                        Φ1 x_s
//   layer 1         x1_t    = E[z_t] + P[t] + Σ_{s≤t} a1[t,s] y_s
//   layer 2         s2[t,s] = x1_t · (W_K2/τ) x1_s,   c_t = Σ_{s≤t} a2[t,s] x1_s   only at positions t that the loss reads
//   logits          l_t     = U x1_t + H c_t                                       H = U W_O2 W_V2
//
// Work goes sequence by sequence, so that every map stays in cache, and skips the masked half. Each thread adds up its
// own sums; they are joined in the order of the threads, so equal threads give equal bytes.
//
// Shapes: T positions, N tokens, d width, Q positions read.

#include "matrix.h"

template <typename real> struct Tables {
  int T, N, d;
  Owned<real> PP, EP, PE, EE, F, G, E, P, U, H, K, UT, HT, KT;
  Tables(int T, int N, int d, real* const* from)
      : T(T), N(N), d(d), PP(from[0], T, T), EP(from[1], N, T), PE(from[2], T, N), EE(from[3], N, N), F(from[4], N, d),
        G(from[5], T, d), E(from[6], N, d), P(from[7], T, d), U(from[8], N, d), H(from[9], N, d), K(from[10], d, d),
        UT(transposed<real>(U, N, d)), HT(transposed<real>(H, N, d)), KT(transposed<real>(K, d, d)) {}
};
// Sums over sequences: gradients of the tables, and loss, right guesses and positions of each group.
template <typename real> struct Sums {
  Owned<real> PP, EP, PE, EE, F, G, LX, LC, K;
  std::vector<double> groups;
  Sums(int T, int N, int d, int groups)
      : PP(T, T), EP(N, T), PE(T, N), EE(N, N), F(N, d), G(T, d), LX(N, d), LC(N, d), K(d, d), groups(3 * groups) {}
  void add(const Sums& o) {
    PP.add(o.PP), EP.add(o.EP), PE.add(o.PE), EE.add(o.EE), F.add(o.F), G.add(o.G), LX.add(o.LX), LC.add(o.LC), K.add(o.K);
    for (size_t i = 0; i < groups.size(); i++) groups[i] += o.groups[i];
  }
};
enum Wanted { NOTHING = 0, OUTPUT = 1, KEYS2 = 2, KEYS1 = 4, VALUES1 = 8, READOUT = 16 };

template <typename real> struct Sequence {
  const Tables<real>& w;
  Sums<real>& sums;
  const int wanted;
  const real weight;
  Owned<real> A1, dA1, X1, X1T, Y, YT, dX1, dY, Xq, QK, A2, dA2, C, dC, dXq, dQK, L, row;
  std::vector<int> q;
  bool overflow = false;

  Sequence(const Tables<real>& w, Sums<real>& sums, int wanted, real weight)
      : w(w), sums(sums), wanted(wanted), weight(weight), A1(w.T, w.T), dA1(w.T, w.T), X1(w.T, w.d), X1T(w.d, w.T), Y(w.T, w.d), YT(w.d, w.T),
        dX1(w.T, w.d), dY(w.T, w.d), Xq(w.T, w.d), QK(w.T, w.d), A2(w.T, w.T), dA2(w.T, w.T), C(w.T, w.d), dC(w.T, w.d),
        dXq(w.T, w.d), dQK(w.T, w.d), L(w.T, w.N), row(1, w.N) {}

  void layer1(const int32_t* z, int T) {
    for (int t = 0; t < T; t++) {
      real *s1 = A1[t], *by_token = row[0];
      const real *pp = w.PP[t], *ep = w.EP[z[t]], *ee = w.EE[z[t]], *pe = w.PE[t];
      for (int n = 0; n < w.N; n++) by_token[n] = ee[n] + pe[n];
      for (int s = 0; s <= t; s++) s1[s] = pp[s] + ep[s] + by_token[z[s]];
      overflow |= special(s1, t + 1);
      softmax(s1, t + 1, std::min(t + ROWS, A1.stride));
      for (int j = 0; j < w.d; j++) Y[t][j] = w.F[z[t]][j] + w.G[t][j];
      for (int j = 0; j < w.d; j++) X1[t][j] = w.E[z[t]][j] + w.P[t][j];
    }
    product(T, A1.at, A1.stride, 1, Y, X1, true, [](int) { return 0; }, [](int i) { return i + 1; }, [&](int) { return w.d; });
  }

  // Row i of a layer-2 map is read, in blocks of ROWS rows or of ROWS columns, beyond its own last key: zeros must stand there.
  int read_until(int i, int Q) const {
    return std::min(q[std::min(i / ROWS * ROWS + ROWS, Q) - 1] + 1 + ROWS, A2.stride);
  }

  void layer2(int Q) {
    transpose<real>(X1, q[Q - 1] + 1, w.d, X1T);
    auto none = [](int) { return 0; };
    auto seen = [&](int i) { return q[i] + 1; };
    auto width = [&](int) { return w.d; };
    for (int i = 0; i < Q; i++) std::copy(X1[q[i]], X1[q[i]] + w.d, Xq[i]);
    product(Q, w.d, w.d, Xq.at, Xq.stride, 1, w.K, QK, false);
    product(Q, QK.at, QK.stride, 1, X1T, A2, false, none, [&](int) { return w.d; }, seen);
    for (int i = 0; i < Q; i++) {
      overflow |= special(A2[i], q[i] + 1);
      softmax(A2[i], q[i] + 1, read_until(i, Q));
    }
    product(Q, A2.at, A2.stride, 1, X1, C, false, none, seen, width);
    product(Q, w.N, w.d, Xq.at, Xq.stride, 1, w.UT, L, false);
    product(Q, w.N, w.d, C.at, C.stride, 1, w.HT, L, true);
  }

  // L becomes the gradient of the loss in the logits.
  void loss(int Q, const int32_t* target, const int8_t* group) {
    for (int i = 0; i < Q; i++) {
      real* l = L[i];
      overflow |= special(l, w.N);
      const int y = target[q[i]], guess = std::max_element(l, l + w.N) - l;
      double sum = 0, largest = l[guess], right = l[y];
      for (int n = 0; n < w.N; n++) sum += l[n] = exponential(l[n] - (real)largest);
      for (int n = 0; n < w.N; n++) l[n] *= weight / (real)sum;
      l[y] -= weight;
      double* to = &sums.groups[3 * group[q[i]]];
      to[0] += std::log(sum) + largest - right, to[1] += guess == y, to[2] += 1;
    }
  }

  void back2(int Q) {
    const int T = q[Q - 1] + 1;
    auto none = [](int) { return 0; };
    auto seen = [&](int i) { return q[i] + 1; };
    auto asking = [&](int s) { return int(std::lower_bound(q.begin(), q.end(), s) - q.begin()); };  // queries from s on
    product(w.N, w.d, Q, L.at, 1, L.stride, C, sums.LC, true);
    if (wanted & READOUT) product(w.N, w.d, Q, L.at, 1, L.stride, Xq, sums.LX, true);
    if (!(wanted & (KEYS2 | KEYS1 | VALUES1))) return;
    product(Q, w.d, w.N, L.at, L.stride, 1, w.H, dC, false);
    product(Q, dC.at, dC.stride, 1, X1T, dA2, false, none, [&](int) { return w.d; }, seen);
    for (int i = 0; i < Q; i++) softmax_back(dA2[i], A2[i], q[i] + 1, read_until(i, Q));
    product(Q, dA2.at, dA2.stride, 1, X1, dQK, false, none, seen, [&](int) { return w.d; });
    product(w.d, w.d, Q, Xq.at, 1, Xq.stride, dQK, sums.K, true);
    if (!(wanted & (KEYS1 | VALUES1))) return;
    auto all = [&](int) { return Q; };
    auto width = [&](int) { return w.d; };
    product(T, A2.at, 1, A2.stride, dC, dX1, false, asking, all, width);
    product(T, dA2.at, 1, dA2.stride, QK, dX1, true, asking, all, width);
    product(Q, w.d, w.N, L.at, L.stride, 1, w.U, dXq, false);
    product(Q, w.d, w.d, dQK.at, dQK.stride, 1, w.KT, dXq, true);
    for (int i = 0; i < Q; i++)
      for (int j = 0; j < w.d; j++) dX1[q[i]][j] += dXq[i][j];
  }

  void back1(const int32_t* z, int T) {
    auto none = [](int) { return 0; };
    if (wanted & KEYS1) {
      transpose<real>(Y, T, w.d, YT);
      product(T, dX1.at, dX1.stride, 1, YT, dA1, false, none, [&](int) { return w.d; }, [](int i) { return i + 1; });
      for (int t = 0; t < T; t++) {
        real *ds = dA1[t], *by_token = row[0], *pp = sums.PP[t], *ep = sums.EP[z[t]];
        softmax_back(ds, A1[t], t + 1, t + 1);
        std::fill(by_token, by_token + w.N, real(0));
        for (int s = 0; s <= t; s++) pp[s] += ds[s], ep[s] += ds[s];
        for (int s = 0; s <= t; s++) by_token[z[s]] += ds[s];
        for (int n = 0; n < w.N; n++) sums.PE[t][n] += by_token[n], sums.EE[z[t]][n] += by_token[n];
      }
    }
    if (wanted & VALUES1) {
      product(T, A1.at, 1, A1.stride, dX1, dY, false, [](int s) { return s; }, [=](int) { return T; }, [&](int) { return w.d; });
      for (int s = 0; s < T; s++)
        for (int j = 0; j < w.d; j++) sums.F[z[s]][j] += dY[s][j], sums.G[s][j] += dY[s][j];
    }
  }

  void run(const int32_t* z, const int32_t* target, const int8_t* group, int T) {
    q.clear();
    for (int t = 0; t < T; t++)
      if (group[t] >= 0) q.push_back(t);
    const int Q = q.size();
    if (Q == 0) return;
    const int end = q[Q - 1] + 1;  // nothing after the last position read can matter
    layer1(z, end);
    layer2(Q);
    loss(Q, target, group);
    if (wanted == NOTHING) return;
    back2(Q);
    if (wanted & (KEYS1 | VALUES1)) back1(z, end);
  }
};

enum Outcome { FINE = 0, NO_MEMORY = 1, OVERFLOW_SEEN = 2 };

template <typename real>
int gradients(int B, int T, int Tmax, int N, int d, int groups, int threads, int wanted, double weight, const int32_t* tokens,
              const int32_t* targets, const int8_t* group, real* const* tables, real* const* results, double* group_sums) try {
  threads = std::max(1, std::min(threads, B));
  const Tables<real> w(Tmax, N, d, tables);
  std::vector<Sums<real>> sums(threads, Sums<real>(Tmax, N, d, groups));
  std::vector<int> outcome(threads, FINE);
  auto work = [&](int i) {
    try {
      Sequence<real> sequence(w, sums[i], wanted, (real)weight);
      for (int b = i; b < B; b += threads) sequence.run(tokens + (size_t)b * T, targets + (size_t)b * T, group + (size_t)b * T, T);
      outcome[i] = sequence.overflow ? OVERFLOW_SEEN : FINE;
    } catch (const std::bad_alloc&) {
      outcome[i] = NO_MEMORY;
    }
  };
  in_shares(threads, (double)B * T * (T + d) * d > WORTH_A_THREAD, work);
  for (int i = 1; i < threads; i++) sums[0].add(sums[i]);
  const Sums<real>& s = sums[0];
  s.PP.give(results[0], Tmax, Tmax), s.EP.give(results[1], N, Tmax), s.PE.give(results[2], Tmax, N), s.EE.give(results[3], N, N);
  s.F.give(results[4], N, d), s.G.give(results[5], Tmax, d), s.LX.give(results[6], N, d), s.LC.give(results[7], N, d);
  s.K.give(results[8], d, d);
  std::copy(s.groups.begin(), s.groups.end(), group_sums);
  const bool no_memory = std::find(outcome.begin(), outcome.end(), NO_MEMORY) != outcome.end();
  return no_memory ? NO_MEMORY : *std::max_element(outcome.begin(), outcome.end());
} catch (const std::bad_alloc&) {
  return NO_MEMORY;
}

// How many of the sorted cuts are ≤ key. For short rows counting all of them beats a search: it has no branch to miss.
inline int64_t place(const int64_t* cuts, int N, int64_t key) {
  if (N > 256) return std::upper_bound(cuts, cuts + N, key) - cuts;
  int64_t below = 0;
  for (int j = 0; j < N; j++) below += cuts[j] <= key;
  return below;
}

extern "C" {
// The bigram task: z_{t+1} is what z_t forces (jumps ≥ 0), else the token whose interval of row z_t holds the 32 bits drawn
// for it. `occurrence` is m at the m-th visit of a token that forces, 0 elsewhere. Sixteen sequences go side by side: one
// waits while another looks up, and their bits share a line of cache.
void walk(int B, int T, int N, const int64_t* start, const int64_t* cuts, const int64_t* jumps, const uint32_t* bits, int64_t* z,
          int64_t* occurrence) {
  constexpr int TOGETHER = 16;
  std::vector<int64_t> visits((size_t)B * N, 0);
  for (int first = 0; first < B; first += TOGETHER) {
    const int end = std::min(first + TOGETHER, B);
    for (int b = first; b < end; b++) z[(size_t)b * (T + 1)] = place(start, N, bits[b]);
    for (int t = 0; t < T; t++)
      for (int b = first; b < end; b++) {
        int64_t* at = z + (size_t)b * (T + 1) + t;
        const int64_t now = *at, forced = jumps[(size_t)b * N + now];
        occurrence[(size_t)b * T + t] = forced >= 0 ? ++visits[(size_t)b * N + now] : 0;
        at[1] = forced >= 0 ? forced : place(cuts + now * N, N, (now << 32) + bits[(size_t)(t + 1) * B + b]);
      }
  }
}
int gradients_float(int B, int T, int Tmax, int N, int d, int groups, int threads, int wanted, double weight, const int32_t* tokens,
                     const int32_t* targets, const int8_t* group, float* const* tables, float* const* results, double* sums) {
  return gradients(B, T, Tmax, N, d, groups, threads, wanted, weight, tokens, targets, group, tables, results, sums);
}
int gradients_double(int B, int T, int Tmax, int N, int d, int groups, int threads, int wanted, double weight, const int32_t* tokens,
                      const int32_t* targets, const int8_t* group, double* const* tables, double* const* results, double* sums) {
  return gradients(B, T, Tmax, N, d, groups, threads, wanted, weight, tokens, targets, group, tables, results, sums);
}
}

// Adam, as torch has it.
#pragma once

#include "matrix.h"

// W ← W − η m̂ / (√v̂ + ε), where m and v are running means of the gradient and of its square.
template <typename real> struct Adam {
  double lr, beta1, beta2, eps;
  void step(real* w, real* m, real* v, const Owned<real>& gradient, int rows, int columns, int t) const {
    const real b1 = beta1, b2 = beta2, e = eps, rate = lr / (1 - std::pow(beta1, t)), root = 1 / (1 - std::pow(beta2, t));
    for (int i = 0; i < rows; i++)
      for (int j = 0; j < columns; j++) {
        const size_t at = (size_t)i * columns + j;
        const real g = gradient[i][j];
        m[at] = b1 * m[at] + (1 - b1) * g;
        v[at] = b2 * v[at] + (1 - b2) * g * g;
        w[at] -= rate * m[at] / (std::sqrt(v[at] * root) + e);
      }
  }
};

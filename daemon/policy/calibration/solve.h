// Symmetric positive definite systems of some dozens of unknowns, by Cholesky's method.
// Thread: pure functions, any. Not here: anything large or sparse.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace memdecay::calibration {

// A symmetric matrix; only the lower triangle (row >= column) is kept and read.
class Symmetric {
 public:
  explicit Symmetric(size_t size = 0) : size_(size), values_(size * (size + 1) / 2, 0.0) {}

  size_t size() const { return size_; }
  double& at(size_t row, size_t column) { return values_[row * (row + 1) / 2 + column]; }
  double at(size_t row, size_t column) const { return values_[row * (row + 1) / 2 + column]; }
  void add(size_t i, size_t j, double value) { i >= j ? at(i, j) += value : at(j, i) += value; }
  // Says nothing of this unknown any more.
  void clear(size_t index) {
    for (size_t i = 0; i < size_; ++i) (i <= index ? at(index, i) : at(i, index)) = 0.0;
  }
  // Of the same size.
  void add(const Symmetric& other) {
    for (size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
  }

 private:
  size_t size_;
  std::vector<double> values_;
};

// x of (matrix + damping * its diagonal) x = right. What the data say nothing of (a pivot of 0
// against its diagonal) gets 0.
inline std::vector<double> solve(Symmetric matrix, std::vector<double> right, double damping) {
  constexpr double kNothing = 1e-12;
  const size_t size = matrix.size();
  for (size_t j = 0; j < size; ++j) {
    const double diagonal = matrix.at(j, j) * (1 + damping);
    double pivot = diagonal;
    for (size_t k = 0; k < j; ++k) pivot -= matrix.at(j, k) * matrix.at(j, k);
    const bool known = pivot > kNothing * diagonal && diagonal > 0;
    const double root = known ? std::sqrt(pivot) : 0.0;
    matrix.at(j, j) = root;
    for (size_t i = j + 1; i < size; ++i) {
      double value = matrix.at(i, j);
      for (size_t k = 0; k < j; ++k) value -= matrix.at(i, k) * matrix.at(j, k);
      matrix.at(i, j) = known ? value / root : 0.0;
    }
  }
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = 0; k < i; ++k) right[i] -= matrix.at(i, k) * right[k];
    right[i] = matrix.at(i, i) > 0 ? right[i] / matrix.at(i, i) : 0.0;
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t k = i + 1; k < size; ++k) right[i] -= matrix.at(k, i) * right[k];
    right[i] = matrix.at(i, i) > 0 ? right[i] / matrix.at(i, i) : 0.0;
  }
  return right;
}

}  // namespace memdecay::calibration

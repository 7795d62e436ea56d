#include <contextune/tensor.hpp>

#include <contextune/error.hpp>

namespace contextune {
namespace {

/// "4096x1024"; a number where there is but one.
Key::Part joined(const std::vector<std::int64_t>& numbers) {
  if (numbers.size() == 1) return numbers.front();
  std::string text;
  for (const std::int64_t number : numbers) {
    if (!text.empty()) text += 'x';
    text += std::to_string(number);
  }
  return text;
}

bool is_contiguous(const Tensor& tensor) {
  std::int64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

Key tensor_key(const std::string& name, const Tensor& tensor) {
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size()) {
    throw Error("tensor '" + name + "' has " + std::to_string(tensor.shape.size()) +
                " dimensions and " + std::to_string(tensor.strides.size()) +
                " strides; give one stride for each dimension, or none");
  }
  Key key;
  key.add(name + ".shape", tensor.shape.empty() ? Key::Part("scalar") : joined(tensor.shape));
  key.add(name + ".type", tensor.type);
  if (!tensor.strides.empty() && !is_contiguous(tensor)) {
    key.add(name + ".strides", joined(tensor.strides));
  }
  return key;
}

}  // namespace contextune

// Colours of span kinds stay apart for people with any kind of colour blindness.

#include "trace/timeline/colours.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "tandem/timeline.h"
#include "trace/report/report_page.h"
#include "trace/temporary_folder.h"

namespace tandem::trace {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

Vector times(const Matrix& matrix, const Vector& vector) {
  Vector result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * vector[j];
  return result;
}

/// Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009),
/// severity 1; of linear RGB.
constexpr std::array<Matrix, 4> kViews{{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.152286, 1.052583, -0.204868},
      {0.114503, 0.786281, 0.099216},
      {-0.003882, -0.048116, 1.051998}}},  // protanopia
    {{{0.367322, 0.860646, -0.227968},
      {0.280085, 0.672501, 0.047413},
      {-0.011820, 0.042940, 0.968881}}},  // deuteranopia
    {{{1.255528, -0.076749, -0.178779},
      {-0.078411, 0.930809, 0.147602},
      {0.004733, 0.691367, 0.303900}}},  // tritanopia
}};

Vector linear(const std::string& hex) {
  Vector rgb{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double c = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    rgb[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return rgb;
}

/// CIE L*a*b*, D65.
Vector lab(Vector rgb) {
  for (double& c : rgb) c = std::min(1.0, std::max(0.0, c));
  constexpr Matrix kXyz{
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  const Vector xyz = times(kXyz, rgb);
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

/// The least distance over all ways to see them.
double distance(const std::string& a, const std::string& b) {
  double least = std::numeric_limits<double>::infinity();
  for (const Matrix& view : kViews) {
    const Vector x = lab(times(view, linear(a))), y = lab(times(view, linear(b)));
    least = std::min(least, std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
  }
  return least;
}

/// The colour of a property in CSS text behind `from`.
std::string property(const std::string& css, const std::string& name, std::size_t from = 0) {
  const std::size_t at = css.find(name + ": #", from);
  EXPECT_NE(at, std::string::npos) << name;
  return css.substr(at + name.size() + 2, 7);
}

std::map<std::string, std::string> colours(bool dark) {
  std::map<std::string, std::string> all;
  for (int kind = 0; kind < kSpanKinds; ++kind) {
    const std::string text(name(static_cast<SpanKind>(kind)));
    all[text] = property(kind_colours(dark), "--k-" + text);
  }
  const std::string style(report_file("style"));
  all["idle"] = property(style, "--track", dark ? style.find(":root.dark") : 0);
  return all;
}

class Colours : public ::testing::TestWithParam<bool> {};

TEST_P(Colours, AnyTwoStayApart) {
  const auto all = colours(GetParam());
  for (const auto& [a, colour] : all)
    for (const auto& [b, other] : all)
      if (a < b) {
        EXPECT_GE(distance(colour, other), 15) << a << " and " << b;
      }
}

TEST_P(Colours, WhatStandsSideBySideStaysFarApart) {
  const auto all = colours(GetParam());
  const std::set<std::pair<std::string, std::string>> pairs{
      {"compute", "copy"}, {"compute", "transfer"}, {"compute", "wait"}, {"copy", "transfer"},
      {"load", "store"},   {"kernel", "idle"},      {"wait", "idle"},    {"compute", "idle"}};
  for (const auto& [a, b] : pairs) EXPECT_GE(distance(all.at(a), all.at(b)), 28) << a << " and " << b;
}

INSTANTIATE_TEST_SUITE_P(Themes, Colours, ::testing::Bool(),
                         [](const auto& theme) { return theme.param ? "Dark" : "Light"; });

/// Pictures of documents are drawn from GPUs' timelines, so their colours do not follow by themselves.
TEST(Colours, PicturesOfTheDocumentsHaveThem) {
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../docs/pictures";
  int timelines = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string picture = testing::read_file(file.path().string());
    if (picture.find("--k-") == std::string::npos) continue;  // no timeline
    ++timelines;
    for (const bool dark : {false, true})
      EXPECT_NE(picture.find(kind_colours(dark)), std::string::npos) << file.path() << (dark ? ", dark" : "");
  }
  EXPECT_GE(timelines, 3);
}

}  // namespace
}  // namespace tandem::trace

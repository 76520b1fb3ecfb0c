// The convolutions of ResNet-50 at 224 x 224 (He, Zhang, Ren, Sun, arXiv 1512.03385, table 1, with
// the stride of each stage on its 3x3 layer, as in torchvision's version 1.5): each layer shape
// once. Data only.
#pragma once

namespace launchgap::shapes {

struct ConvolutionLayer {
  const char* name;
  int channels, height, width;  // of the input
  int filters, kernel, stride, pad;
};

inline constexpr ConvolutionLayer kResnet50[] = {
    {"conv1_7x7", 3, 224, 224, 64, 7, 2, 3},
    {"conv2_1x1_64", 64, 56, 56, 64, 1, 1, 0},
    {"conv2_3x3", 64, 56, 56, 64, 3, 1, 1},
    {"conv2_1x1_256", 64, 56, 56, 256, 1, 1, 0},
    {"conv2_1x1_reduce", 256, 56, 56, 64, 1, 1, 0},
    {"conv3_1x1_in", 256, 56, 56, 128, 1, 1, 0},
    {"conv3_3x3_stride2", 128, 56, 56, 128, 3, 2, 1},
    {"conv3_1x1_shortcut", 256, 56, 56, 512, 1, 2, 0},
    {"conv3_3x3", 128, 28, 28, 128, 3, 1, 1},
    {"conv3_1x1_512", 128, 28, 28, 512, 1, 1, 0},
    {"conv3_1x1_reduce", 512, 28, 28, 128, 1, 1, 0},
    {"conv4_1x1_in", 512, 28, 28, 256, 1, 1, 0},
    {"conv4_3x3_stride2", 256, 28, 28, 256, 3, 2, 1},
    {"conv4_1x1_shortcut", 512, 28, 28, 1024, 1, 2, 0},
    {"conv4_3x3", 256, 14, 14, 256, 3, 1, 1},
    {"conv4_1x1_1024", 256, 14, 14, 1024, 1, 1, 0},
    {"conv4_1x1_reduce", 1024, 14, 14, 256, 1, 1, 0},
    {"conv5_1x1_in", 1024, 14, 14, 512, 1, 1, 0},
    {"conv5_3x3_stride2", 512, 14, 14, 512, 3, 2, 1},
    {"conv5_1x1_shortcut", 1024, 14, 14, 2048, 1, 2, 0},
    {"conv5_3x3", 512, 7, 7, 512, 3, 1, 1},
    {"conv5_1x1_2048", 512, 7, 7, 2048, 1, 1, 0},
    {"conv5_1x1_reduce", 2048, 7, 7, 512, 1, 1, 0},
};

}  // namespace launchgap::shapes

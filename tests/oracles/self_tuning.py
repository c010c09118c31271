"""Layers that respond to hyperparameters, and pictures altered, one example after the other."""

import math

import torch
from torch.nn import functional as F  # noqa: N812

YIQ = torch.tensor(
    [[0.299, 0.587, 0.114], [0.5959, -0.2746, -0.3213], [0.2115, -0.5227, 0.3112]],
    dtype=torch.float64,
)


def weights_of(layer, h):
    """Return weight and bias of one example: W + diag(H_w h) W', b + (H_b h) o b'."""
    weight, bias = layer.weight.clone(), None if layer.bias is None else layer.bias.clone()
    for out in range(len(weight)):
        weight[out] += (layer.weight_response[out] @ h) * layer.weight_direction[out]
        if bias is not None:
            bias[out] += (layer.bias_response[out] @ h) * layer.bias_direction[out]
    return weight, bias


def linear(layer, x, h):
    return torch.stack(
        [F.linear(row, *weights_of(layer, at)) for row, at in zip(x, h, strict=True)]
    )


def convolution(layer, x, h):
    outputs = [
        F.conv2d(one[None], *weights_of(layer, at), stride=layer.stride, padding=1)
        for one, at in zip(x, h, strict=True)
    ]
    return torch.cat(outputs)


def batch_norm(layer, x, h, mean, var):
    y = torch.empty_like(x)
    channels = x.shape[1]
    for i in range(len(x)):
        for c in range(channels):
            gain = layer.weight[c] + layer.response[c] @ h[i]
            bias = layer.bias[c] + layer.response[channels + c] @ h[i]
            y[i, c] = gain * (x[i, c] - mean[c]) / (var[c] + 1e-5).sqrt() + bias
    return y


def jitter(picture, brightness, contrast, saturation, turn):
    """Change the colours of one picture step by step, and its hue in YIQ."""
    grey = YIQ[0]
    x = picture.double() * brightness
    x = contrast * x + (1 - contrast) * torch.einsum("c,chw->hw", grey, x).mean()
    x = saturation * x + (1 - saturation) * torch.einsum("c,chw->hw", grey, x)
    y, i, q = torch.einsum("kc,chw->khw", YIQ, x)
    cos, sin = math.cos(2 * math.pi * turn), math.sin(2 * math.pi * turn)
    turned = torch.stack([y, cos * i - sin * q, sin * i + cos * q])
    return torch.einsum("kc,chw->khw", torch.linalg.inv(YIQ), turned).clamp(0, 1)


def holes(centres, length, count, height, width):
    """Mark the pixels of the holes of one picture, pixel by pixel."""
    found = torch.zeros(height, width, dtype=torch.bool)
    for down, right in centres[: int(count)].tolist():
        top = math.floor(down * height) - int(length) // 2
        left = math.floor(right * width) - int(length) // 2
        for row in range(height):
            for column in range(width):
                inside = top <= row < top + length and left <= column < left + length
                found[row, column] |= inside
    return found

//! Fully connected and convolutional networks.

use super::layer::{Layers, Window};

const THREE: Window = Window {
    side: 3,
    stride: 1,
    padding: 1,
};

pub(super) fn linear() -> Layers {
    let mut net = Layers::input(&[1, 784]);
    for features in [10, 120, 100, 200, 10, 10] {
        net.linear(features, net.last());
        net.relu(net.last());
    }
    net.loss(10, net.last());
    net
}

pub(super) fn vgg16() -> Layers {
    let mut net = Layers::input(&[3, 32, 32]);
    for (channels, layers) in [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)] {
        for _ in 0..layers {
            net.conv(channels, THREE, net.last());
            net.relu(net.last());
        }
        net.pool(2, 2, net.last());
    }
    net.flatten(net.last());
    for _ in 0..2 {
        net.linear(4096, net.last());
        net.relu(net.last());
        net.each("dropout", net.last());
    }
    net.linear(10, net.last());
    net.loss(10, net.last());
    net
}

/// Every block has a convolution on its skip connection.
pub(super) fn resnet18_cifar() -> Layers {
    let mut net = Layers::input(&[3, 32, 32]);
    net.conv(16, THREE, net.last());
    net.norm(net.last());
    for (channels, stride) in [(16, 1), (32, 2), (64, 2)] {
        for stride in [stride, 1] {
            let (input, window) = (net.last(), Window { stride, ..THREE });
            let x = net.conv(channels, window, input);
            let x = net.norm(x);
            let x = net.relu(x);
            let x = net.conv(channels, THREE, x);
            let x = net.norm(x);
            let main = net.relu(x);
            let x = net.conv(channels, window, input);
            let side = net.norm(x);
            let x = net.add(main, side);
            net.relu(x);
        }
    }
    net.pool(8, 1, net.last());
    net.flatten(net.last());
    net.linear(10, net.last());
    net.loss(10, net.last());
    net
}

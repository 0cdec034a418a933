//! Fully connected and convolutional networks.

use super::layer::{Layers, Window};

const THREE: Window = Window {
    side: 3,
    stride: 1,
    padding: 1,
};
const ONE: Window = Window {
    side: 1,
    stride: 1,
    padding: 0,
};
const STEM: Window = Window {
    side: 7,
    stride: 2,
    padding: 3,
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

/// For images of that side.
pub(super) fn vgg16(side: u64, classes: u64) -> Layers {
    let mut net = Layers::input(&[3, side, side]);
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
    net.linear(classes, net.last());
    net.loss(classes, net.last());
    net
}

/// The skip connection starts behind the first activation of a block.
pub(super) fn resnet18() -> Layers {
    let mut net = imagenet_stem();
    for (channels, stride) in [(64, 1), (128, 2), (256, 2), (512, 2)] {
        for stride in [stride, 1] {
            let x = net.conv(channels, Window { stride, ..THREE }, net.last());
            let x = net.norm(x);
            let first = net.relu(x);
            let x = net.conv(channels, THREE, first);
            let x = net.norm(x);
            let x = net.add(first, x);
            net.relu(x);
        }
    }
    classify(&mut net, 7, 1000);
    net
}

/// The skip connection starts behind the first activation of a block, filled up with zeros.
pub(super) fn resnet50() -> Layers {
    let mut net = imagenet_stem();
    for (channels, blocks, stride) in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)] {
        for block in 0..blocks {
            let stride = if block == 0 { stride } else { 1 };
            let x = net.conv(channels, Window { stride, ..ONE }, net.last());
            let x = net.norm(x);
            let first = net.relu(x);
            let x = net.conv(channels, THREE, first);
            let x = net.norm(x);
            let x = net.relu(x);
            let x = net.conv(4 * channels, ONE, x);
            let x = net.norm(x);
            let x = net.add(x, first);
            net.relu(x);
        }
    }
    classify(&mut net, 7, 1000);
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
    classify(&mut net, 8, 10);
    net
}

fn imagenet_stem() -> Layers {
    let mut net = Layers::input(&[3, 224, 224]);
    net.conv(64, STEM, net.last());
    net.norm(net.last());
    net.pool(3, 2, net.last());
    net
}

fn classify(net: &mut Layers, side: u64, classes: u64) {
    net.pool(side, 1, net.last());
    net.flatten(net.last());
    net.linear(classes, net.last());
    net.loss(classes, net.last());
}

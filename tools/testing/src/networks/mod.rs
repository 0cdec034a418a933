//! The training steps that the POET paper (Patil et al., ICML 2022) schedules, as problems.
//!
//! They are built from its layer model, not from real models: each layer is an op with a number of operations and one result of
//! 4-byte elements; parameters are outside the budget. The backward pass is a chain over the list of layers: the gradient of a
//! layer reads the layer, the one after it and the gradient before, is as large as the layer after it, and takes twice the
//! operations of the layer. So gradients do not follow skip connections. The layers, and the sizes and operations that
//! their authors count, are those of the published program (`poet/architectures`, `poet/power_computation.py`), its
//! simplifications included.

mod blocks;
mod convolutional;
mod layer;
mod transformer;

use remat_cost::{Device, KernelClass};
use remat_ir::ElementType;
use remat_plan::Problem;

pub use self::blocks::Blocks;
use self::layer::{Layer, Layers};
use crate::net::paper;

/// Bytes of an element.
const ELEMENT: u64 = 4;

/// A training step of batch size 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TrainingNet {
    /// Six fully connected layers on MNIST.
    Linear,
    /// ResNet-18 on CIFAR-10: three stages of two blocks.
    Resnet18Cifar,
    /// VGG16 on CIFAR-10.
    Vgg16Cifar,
    /// One block of BERT base, 512 tokens.
    Transformer,
    /// BERT base, 12 blocks, 512 tokens.
    Bert,
}

impl TrainingNet {
    /// All of them, small ones first.
    pub const ALL: [Self; 5] = [
        Self::Linear,
        Self::Resnet18Cifar,
        Self::Vgg16Cifar,
        Self::Transformer,
        Self::Bert,
    ];

    /// Short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Resnet18Cifar => "resnet18-cifar",
            Self::Vgg16Cifar => "vgg16-cifar",
            Self::Transformer => "transformer",
            Self::Bert => "bert",
        }
    }

    /// The network of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|net| net.name() == name)
    }

    /// Operations of the whole step.
    #[must_use]
    pub fn operations(self) -> u64 {
        self.layers().iter().map(|layer| layer.operations).sum()
    }

    /// The problem of scheduling it on `device`, in fixed order and paper accounting, without budget: time and energy follow the
    /// operations alone, at the share of the peak that convolutions reach. The second memory is that of the device.
    #[must_use]
    pub fn problem(self, device: &Device) -> Problem {
        let layers = self.layers();
        let time = |layer: &Layer| device.arithmetic_ns(layer.operations, ElementType::Float32, KernelClass::Conv);
        let ops: Vec<_> = layers
            .iter()
            .map(|layer| (time(layer), layer.elements() * ELEMENT, &layer.reads))
            .collect();
        let mut problem = paper(&ops);
        self.name().clone_into(&mut problem.name);
        problem.paging = device.second_memory;
        for ((op, tensor), layer) in problem.ops.iter_mut().zip(&mut problem.tensors).zip(&layers) {
            op.name.clone_from(&layer.name);
            op.energy_pj = device.energy_pj(layer.operations, 0);
            tensor.name = format!("{}:0", layer.name);
        }
        problem
    }

    /// Forward layers, then gradients.
    fn layers(self) -> Vec<Layer> {
        let forward = match self {
            Self::Linear => convolutional::linear(),
            Self::Resnet18Cifar => convolutional::resnet18_cifar(),
            Self::Vgg16Cifar => convolutional::vgg16(),
            Self::Transformer => transformer::bert(1),
            Self::Bert => transformer::bert(12),
        };
        with_gradients(forward)
    }
}

fn with_gradients(forward: Layers) -> Vec<Layer> {
    let mut layers = forward.into_vec();
    for of in (0..layers.len() - 1).rev() {
        let next = of + 1;
        let mut reads = vec![of, next, layers.len() - 1];
        reads.dedup();
        layers.push(Layer {
            name: format!("{}_grad", layers[of].name),
            shape: layers[next].shape.clone(),
            operations: 2 * layers[of].operations,
            reads,
        });
    }
    layers
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

//! Layers as the POET paper's program counts them.

/// One op of a training step, with one result.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) shape: Vec<u64>,
    pub(super) operations: u64,
    /// Positions of the layers it reads, ascending.
    pub(super) reads: Vec<usize>,
}

impl Layer {
    pub(super) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// A kernel's side, its stride and the padding on each side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) side: u64,
    pub(super) stride: u64,
    pub(super) padding: u64,
}

impl Window {
    /// The side of the result for a square input.
    fn slide(self, input: u64) -> u64 {
        (input + 2 * self.padding - self.side) / self.stride + 1
    }
}

/// A forward pass that grows layer by layer; `x` is the position of the layer that is read. Images have shape
/// `[channels, side, side]`, sequences `[rows, features]`.
#[derive(Debug)]
pub(super) struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn input(shape: &[u64]) -> Self {
        let mut layers = Self(Vec::new());
        layers.push("input", shape.to_vec(), 0, &[]);
        layers
    }

    pub(super) fn into_vec(self) -> Vec<Layer> {
        self.0
    }

    /// Position of the newest layer.
    pub(super) fn last(&self) -> usize {
        self.0.len() - 1
    }

    pub(super) fn push(&mut self, kind: &str, shape: Vec<u64>, operations: u64, reads: &[usize]) -> usize {
        let name = format!("{kind}{}", self.0.len());
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        self.0.push(Layer {
            name,
            shape,
            operations,
            reads,
        });
        self.last()
    }

    pub(super) fn elements(&self, x: usize) -> u64 {
        self.0[x].elements()
    }

    /// Counts a product for each element of the *input*, whatever the stride.
    pub(super) fn conv(&mut self, channels: u64, window: Window, x: usize) -> usize {
        let side = window.slide(self.0[x].shape[1]);
        let shape = vec![channels, side, side];
        let products = window.side * window.side * self.elements(x) * channels;
        let operations = 2 * products + shape.iter().product::<u64>();
        self.push("conv", shape, operations, &[x])
    }

    pub(super) fn norm(&mut self, x: usize) -> usize {
        self.push("norm", self.0[x].shape.clone(), 2 * self.elements(x), &[x])
    }

    /// A layer of one operation per element.
    pub(super) fn each(&mut self, kind: &str, x: usize) -> usize {
        self.push(kind, self.0[x].shape.clone(), self.elements(x), &[x])
    }

    pub(super) fn relu(&mut self, x: usize) -> usize {
        self.each("relu", x)
    }

    /// The result has the shape of the first operand.
    pub(super) fn add(&mut self, first: usize, second: usize) -> usize {
        self.push(
            "add",
            self.0[first].shape.clone(),
            self.elements(first),
            &[first, second],
        )
    }

    pub(super) fn pool(&mut self, side: u64, stride: u64, x: usize) -> usize {
        let window = Window {
            side,
            stride,
            padding: 0,
        };
        let output = window.slide(self.0[x].shape[1]);
        let shape = vec![self.0[x].shape[0], output, output];
        let operations = 2 * side * side * shape.iter().product::<u64>();
        self.push("pool", shape, operations, &[x])
    }

    pub(super) fn flatten(&mut self, x: usize) -> usize {
        let elements = self.elements(x);
        self.push("flatten", vec![1, elements], elements, &[x])
    }

    /// Counts one row, however many there are.
    pub(super) fn linear(&mut self, features: u64, x: usize) -> usize {
        let (rows, inputs) = (self.0[x].shape[0], self.0[x].shape[1]);
        let parameters = (inputs + 1) * features;
        self.push("linear", vec![rows, features], 2 * parameters + features, &[x])
    }

    pub(super) fn loss(&mut self, classes: u64, x: usize) -> usize {
        self.push("loss", vec![classes], self.elements(x) * classes, &[x])
    }
}

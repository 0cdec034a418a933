//! What a process takes, by what it takes it for: six ledgers, and what follows from them.

use std::fmt;

use remat_onnx::LaidOut;
use remat_onnxruntime_run::ProcessMeasured;
use schemars::JsonSchema;
use serde::Serialize;

/// Pages of the runtime's library that loading and running a model reads, and its memory of its own: the most that was measured of 20 models
/// with ONNX Runtime 1.31.1 on x86-64.
const CODE_MAPPED: u64 = 21 << 20;
const CODE_PRIVATE: u64 = 7 << 20;
/// What a session takes for its graph: at least, for each node, and for each weight.
const GRAPH: u64 = 2 << 20;
const NODE: u64 = 4 << 10;
const WEIGHT: u64 = 2 << 10;
/// The most that packing weights of the heap leaves there, and that it takes beyond what stays.
const LEFTOVERS: u64 = 20 << 20;
const LOADING: u64 = 8 << 20;

/// What runs the session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// A program in C or C++ that is linked with the runtime.
    C,
    /// Python with NumPy, the package of the runtime and this one.
    Python,
}

impl Program {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::C, Self::Python];

    /// As manifests name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Python => "python",
        }
    }

    /// What it takes itself: private memory, and pages of files. Measured on Debian 12: a program that is linked with the C library, and Python
    /// 3.11 with NumPy 2 and both packages.
    fn bytes(self) -> (u64, u64) {
        match self {
            Self::C => (1 << 20, 3 << 20),
            Self::Python => (20 << 20, 19 << 20),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::C => "C",
            Self::Python => "Python",
        })
    }
}

/// What a process takes, in bytes. The program itself is no part of it ([`Program`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Ledgers {
    /// Code of the runtime and its libraries: pages of files.
    pub code_bytes: u64,
    /// What these libraries have in memory of their own.
    pub code_private_bytes: u64,
    /// The session: nodes, tables, and what optimizers leave behind.
    pub graph_bytes: u64,
    /// The most that loading takes beyond what stays.
    pub loading_bytes: u64,
    /// Weights in the heap, packed or not.
    pub heap_weights_bytes: u64,
    /// Packed weights in a file, which is mapped.
    pub packed_weights_bytes: u64,
    /// Plain weights in a file, which is mapped.
    pub mapped_weights_bytes: u64,
    /// What a run takes, outputs apart: its block, and what lies outside of it.
    pub run_bytes: u64,
    /// Runs at one time.
    pub runs: u64,
    /// Outputs that the caller holds, of a run each.
    pub outputs_bytes: u64,
}

/// What a process takes in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Promise {
    /// What runs the session.
    pub program: Program,
    /// Memory that must be there: no page of it can be dropped.
    pub must_be_there_bytes: u64,
    /// Pages of files, which the system may drop and read again.
    pub may_be_dropped_bytes: u64,
}

impl Promise {
    /// All of it.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.must_be_there_bytes + self.may_be_dropped_bytes
    }
}

impl Ledgers {
    /// Those of a process that was measured, whose weights are in the heap and in a file as is said.
    #[must_use]
    pub fn measured(process: &ProcessMeasured, weights: WeightBytes) -> Self {
        let heap = weights.heap.min(process.session);
        let packed = weights.packed.min(process.weights_mapped);
        Self {
            code_bytes: process.code_mapped,
            code_private_bytes: process.code_private,
            graph_bytes: process.session - heap,
            loading_bytes: process.loading,
            heap_weights_bytes: heap,
            packed_weights_bytes: packed,
            mapped_weights_bytes: process.weights_mapped - packed,
            run_bytes: process.run.saturating_sub(process.outputs),
            runs: 1,
            outputs_bytes: process.outputs,
        }
    }

    /// Those of a session of so many nodes, by its weights; `run`: what a run takes, outputs apart, and its outputs.
    #[must_use]
    pub fn predicted(nodes: u64, weights: WeightBytes, (run_bytes, outputs_bytes): (u64, u64)) -> Self {
        Self {
            code_bytes: CODE_MAPPED,
            code_private_bytes: CODE_PRIVATE,
            graph_bytes: GRAPH + NODE * nodes + WEIGHT * weights.count + weights.heap.min(LEFTOVERS),
            loading_bytes: weights.heap.min(LOADING) + weights.largest_to_pack,
            heap_weights_bytes: weights.heap,
            packed_weights_bytes: weights.packed,
            mapped_weights_bytes: weights.mapped,
            run_bytes,
            runs: 1,
            outputs_bytes,
        }
    }

    /// Memory that must be there, the program apart: the most of loading and running.
    #[must_use]
    pub fn must_be_there_bytes(&self) -> u64 {
        let stays = self.code_private_bytes + self.graph_bytes + self.heap_weights_bytes;
        stays
            + self
                .loading_bytes
                .max(self.runs * (self.run_bytes + self.outputs_bytes))
    }

    /// Pages of files, the program's apart.
    #[must_use]
    pub fn may_be_dropped_bytes(&self) -> u64 {
        self.code_bytes + self.packed_weights_bytes + self.mapped_weights_bytes
    }

    /// What a process of this program takes.
    #[must_use]
    pub fn promise(&self, program: Program) -> Promise {
        let (private, mapped) = program.bytes();
        Promise {
            program,
            must_be_there_bytes: private + self.must_be_there_bytes(),
            may_be_dropped_bytes: mapped + self.may_be_dropped_bytes(),
        }
    }

    /// What is promised of a process that was measured: all that it took, and what it did not happen to read or to need, which is predicted.
    #[must_use]
    pub fn promised(&self, predicted: &Self) -> Self {
        Self {
            packed_weights_bytes: self.packed_weights_bytes.max(predicted.packed_weights_bytes),
            mapped_weights_bytes: self.mapped_weights_bytes.max(predicted.mapped_weights_bytes),
            run_bytes: self.run_bytes.max(predicted.run_bytes),
            ..*self
        }
    }

    /// Each ledger by its name.
    #[must_use]
    pub fn each(&self) -> [(&'static str, u64); 6] {
        [
            ("code", self.code_bytes + self.code_private_bytes),
            ("graph", self.graph_bytes),
            ("loading", self.loading_bytes),
            (
                "weights",
                self.heap_weights_bytes + self.packed_weights_bytes + self.mapped_weights_bytes,
            ),
            ("runs", self.runs * self.run_bytes),
            ("outputs", self.runs * self.outputs_bytes),
        ]
    }
}

/// Where the weights of a model lie, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WeightBytes {
    /// In the heap.
    pub heap: u64,
    /// In a file, as kernels read them.
    pub packed: u64,
    /// In a file, as they are.
    pub mapped: u64,
    /// How many there are.
    pub count: u64,
    /// The largest one that is packed while a session loads, and mapped when it runs; 0 if none is.
    pub largest_to_pack: u64,
}

impl From<&LaidOut> for WeightBytes {
    fn from(laid_out: &LaidOut) -> Self {
        Self {
            heap: laid_out.inline_bytes,
            packed: laid_out.packed_bytes,
            mapped: laid_out.plain_bytes,
            count: laid_out.weights as u64,
            largest_to_pack: laid_out.largest_loading_bytes,
        }
    }
}

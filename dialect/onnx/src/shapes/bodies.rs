//! What inference finds in subgraphs, noted for the importer.

use onnx_protobuf::GraphProto;
use onnx_runtime_shape_inference::NodeIo;
use remat_ir::ValueType;
use rustc_hash::FxHashMap;

use super::free::free;
use super::symbols::Symbols;

/// A subgraph of the file, by where it lies in memory: the file is borrowed meanwhile.
type Place = *const GraphProto;

/// Types of the values of subgraphs that the main graph reaches other than by calls of functions.
#[derive(Default)]
pub(crate) struct BodyTypes {
    types: FxHashMap<Place, FxHashMap<String, ValueType>>,
    trips: FxHashMap<Place, u64>,
}

impl BodyTypes {
    /// The types of all values that a subgraph defines; `None` if it was not looked into.
    pub(crate) fn of(&self, graph: &GraphProto) -> Option<&FxHashMap<String, ValueType>> {
        self.types.get(&std::ptr::from_ref(graph))
    }

    /// Marks the dimensions that may have another size; see [`super::Inferred::free`].
    pub(super) fn free(&mut self, open: &Self) {
        // Each type by itself: the order does not matter.
        self.types.iter_mut().for_each(|(place, types)| {
            let open = open.types.get(place);
            types
                .iter_mut()
                .for_each(|(name, ty)| free(ty, open.and_then(|types| types.get(name))));
        });
    }

    /// How often one run of its node runs a subgraph, where that is known.
    pub(crate) fn trips(&self, graph: &GraphProto) -> Option<u64> {
        self.trips.get(&std::ptr::from_ref(graph)).copied()
    }
}

/// A value of a subgraph: its name, what was inferred, and what is declared.
pub(super) type Noted<'m> = (&'m str, NodeIo, Option<ValueType>);

/// The same while inference is on its way, and symbols may still be learned.
#[derive(Default)]
pub(super) struct Bodies<'m> {
    values: FxHashMap<Place, Vec<Noted<'m>>>,
    trips: FxHashMap<Place, u64>,
}

impl<'m> Bodies<'m> {
    /// What was noted, with what `symbols` know by now.
    pub(super) fn types(&mut self, symbols: &mut Symbols<'_>) -> BodyTypes {
        let mut types = FxHashMap::default();
        let mut noted: Vec<_> = std::mem::take(&mut self.values).into_iter().collect();
        noted.sort_unstable_by_key(|(place, _)| *place);
        for (place, values) in noted {
            let of_value = |(name, mut io, declared): Noted<'_>| {
                symbols.settle(&mut io, None);
                (name.to_owned(), symbols.value_type(&io, declared.as_ref()))
            };
            types.insert(place, values.into_iter().map(of_value).collect());
        }
        BodyTypes {
            types,
            trips: std::mem::take(&mut self.trips),
        }
    }

    /// Notes the values of a subgraph of which everything was inferred; the last look at it counts.
    pub(super) fn note(&mut self, graph: &GraphProto, values: Vec<Noted<'m>>) {
        self.values.insert(std::ptr::from_ref(graph), values);
    }

    /// Notes how often one run of its node runs a subgraph.
    pub(super) fn note_trips(&mut self, graph: &GraphProto, trips: u64) {
        self.trips.insert(std::ptr::from_ref(graph), trips);
    }
}

//! Functions that the model defines itself: a call is one op.

use onnx_protobuf::{FunctionProto, ModelProto, NodeProto};
use remat_ir::Effects;
use rustc_hash::FxHashMap;

use crate::OnnxError;
use crate::attributes::subgraphs;
use crate::effects::{self, Known};
use crate::opsets::{Opsets, domain, opsets};

/// Calls may nest this deep.
pub(crate) const MAX_CALL_DEPTH: usize = 64;

type Key<'m> = (&'m str, &'m str, &'m str);

/// A function, and what follows from its body.
pub(crate) struct Function<'m> {
    pub(crate) proto: &'m FunctionProto,
    pub(crate) opsets: Opsets,
    pub(crate) effects: Effects,
}

/// The functions of a model by domain, name and overload.
#[derive(Default)]
pub(crate) struct Functions<'m> {
    table: FxHashMap<Key<'m>, Function<'m>>,
}

impl<'m> Functions<'m> {
    /// Collects the functions; the effects of each are those of its body joined.
    ///
    /// # Errors
    /// [`OnnxError::DuplicateName`], [`OnnxError::Unsupported`] (a function that calls itself), [`OnnxError::TooDeep`].
    pub(crate) fn new(model: &'m ModelProto) -> Result<Self, OnnxError> {
        let mut protos: FxHashMap<Key<'m>, &'m FunctionProto> = FxHashMap::default();
        for function in &model.functions {
            let key = (
                domain(&function.domain),
                function.name.as_str(),
                function.overload.as_str(),
            );
            if protos.insert(key, function).is_some() {
                let place = || format!("a function of domain `{}`", function.domain);
                return Err(OnnxError::DuplicateName {
                    name: function.name.clone(),
                    first: place(),
                    second: place(),
                });
            }
        }
        let mut functions = Self::default();
        for function in &model.functions {
            functions.add(function, &protos, &mut Vec::new())?;
        }
        Ok(functions)
    }

    /// The function that a node calls, if it calls one. A function of the model hides an operator of the same name.
    pub(crate) fn called<'a>(&'a self, node: &'a NodeProto) -> Option<&'a Function<'m>> {
        let table: &'a FxHashMap<Key<'a>, Function<'m>> = &self.table;
        table.get(&(domain(&node.domain), node.op_type.as_str(), node.overload.as_str()))
    }

    fn add(
        &mut self,
        function: &'m FunctionProto,
        protos: &FxHashMap<Key<'m>, &'m FunctionProto>,
        open: &mut Vec<Key<'m>>,
    ) -> Result<Effects, OnnxError> {
        let key = (
            domain(&function.domain),
            function.name.as_str(),
            function.overload.as_str(),
        );
        if let Some(done) = self.table.get(&key) {
            return Ok(done.effects);
        }
        if open.contains(&key) {
            return Err(OnnxError::Unsupported {
                name: function.name.clone(),
                what: "the function calls itself".to_owned(),
            });
        }
        if open.len() >= MAX_CALL_DEPTH {
            let what = format!("calls of function `{}`", function.name);
            return Err(OnnxError::TooDeep {
                what,
                limit: MAX_CALL_DEPTH,
            });
        }
        open.push(key);
        let opsets = opsets(&function.opset_import);
        let effects = self.join(&function.node, &opsets, protos, open)?;
        open.pop();
        self.table.insert(
            key,
            Function {
                proto: function,
                opsets,
                effects,
            },
        );
        Ok(effects)
    }

    /// The strongest effect among `nodes` and their subgraphs.
    fn join(
        &mut self,
        nodes: &'m [NodeProto],
        opsets: &Opsets,
        protos: &FxHashMap<Key<'m>, &'m FunctionProto>,
        open: &mut Vec<Key<'m>>,
    ) -> Result<Effects, OnnxError> {
        let known = Known::of_nodes(nodes);
        let mut joined = Effects::Pure;
        for node in nodes {
            let key = (domain(&node.domain), node.op_type.as_str(), node.overload.as_str());
            joined = joined.max(match protos.get(&key) {
                Some(callee) => self.add(callee, protos, open)?,
                None => effects::of_operator(node, opsets, &known),
            });
            for graph in subgraphs(node) {
                joined = joined.max(self.join(&graph.node, opsets, protos, open)?);
            }
        }
        Ok(joined)
    }
}

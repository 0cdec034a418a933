//! Parses a graph: statement by statement into a [`GraphBuilder`], which numbers things in canonical order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;

use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

use crate::{
    Attribute, Block, Effects, Graph, GraphBuilder, GraphError, OpId, OpKind, OpSpec, Part, Placement, ResultSpec,
    SizeError, Spare, StorageId, TensorId, ValueType, Workspace,
};

use super::cursor::Cursor;
use super::error::{ErrorAt, ParseError, ParseErrorKind};
use super::lexer::Token;

impl Graph {
    /// Reads the textual form.
    ///
    /// The graph is valid, and its ids follow the order of the lines: printing it and parsing that gives an equal graph.
    ///
    /// # Errors
    /// Where the text breaks the grammar, uses a name that no line above defines, states a type without a size, or spells
    /// out a graph that breaks its invariants.
    ///
    /// # Examples
    /// ```
    /// let text = "\
    /// graph \"tiny\" {
    ///   input %x : f32[8]
    ///   %y : f32[8] = compute @relu Relu(%x)
    ///   output %y
    /// }
    /// ";
    /// let graph = remat_ir::Graph::parse(text)?;
    /// assert_eq!(graph.to_string(), text);
    /// # Ok::<(), remat_ir::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse_graph(text).map_err(|error| error.locate(text))
    }
}

impl FromStr for Graph {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

fn parse_graph(text: &str) -> Result<Graph, ErrorAt> {
    if u32::try_from(text.len()).is_err() {
        return Err(ErrorAt::new(0, ParseErrorKind::TooLong(text.len())));
    }
    let mut cursor = Cursor::new(text)?;
    cursor.word("graph")?;
    let Token::String(name) = cursor.token() else {
        return Err(cursor.unexpected("the name of the graph in quotes"));
    };
    let builder = GraphBuilder::new(name.as_ref());
    cursor.advance()?;
    cursor.mark("{")?;
    let mut parser = Parser {
        cursor,
        builder,
        tensors: FxHashMap::default(),
        ops: FxHashMap::default(),
        memory_names: Vec::new(),
        sizes: Vec::new(),
        values: Vec::new(),
        block: None,
        tensor_lines: TiVec::new(),
        op_lines: TiVec::new(),
    };
    while !parser.cursor.eat_mark("}")? {
        parser.statement()?;
    }
    if parser.cursor.token() != &Token::End {
        return Err(parser.cursor.unexpected("the end of the text"));
    }
    parser.finish()
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    builder: GraphBuilder,
    tensors: FxHashMap<Cow<'a, str>, TensorId>,
    /// Compute and recompute ops; the names of others need not be unique.
    ops: FxHashMap<Cow<'a, str>, OpId>,
    /// Names of ops that compute nothing and are not the builder's.
    memory_names: Vec<(OpId, String)>,
    /// Sizes of storages that are not their types'.
    sizes: Vec<(StorageId, Option<u64>)>,
    /// Elements of constants.
    values: Vec<(TensorId, Vec<i64>)>,
    /// The block, and the offsets so far.
    block: Option<Block>,
    /// Where each tensor is defined.
    tensor_lines: TiVec<TensorId, usize>,
    /// Where each op is named.
    op_lines: TiVec<OpId, usize>,
}

/// A result before its op is known.
struct ResultNode<'a> {
    offset: usize,
    name: Cow<'a, str>,
    ty: ValueType,
    placement: Placement,
    /// The size of its storage, if stated.
    bytes: Option<Option<u64>>,
    /// Its elements, if stated.
    values: Option<Vec<i64>>,
    /// Where it lies in the block, if stated.
    place: Option<u64>,
    /// The part of a tensor that it holds, if stated.
    part: Option<Part>,
}

impl<'a> Parser<'a> {
    fn statement(&mut self) -> Result<(), ErrorAt> {
        match *self.cursor.token() {
            Token::Word("block") => self.block(),
            Token::Word("input") => self.source(GraphBuilder::input),
            Token::Word("const") => self.source(GraphBuilder::constant),
            Token::Word("dealloc") => self.memory(OpKind::Dealloc, "the tensor whose storage is freed"),
            Token::Word("page_out") => self.memory(OpKind::PageOut, "the tensor whose storage moves out"),
            Token::Word("page_in") => self.memory(OpKind::PageIn, "the tensor whose storage comes back"),
            Token::Word("output") => {
                self.cursor.advance()?;
                let tensor = self.tensor("the tensor that is returned")?;
                self.builder.output(tensor);
                Ok(())
            }
            Token::Word("compute" | "recompute" | "_") | Token::Tensor(_) | Token::Mark("(") => self.op(),
            _ => Err(self.cursor.unexpected("a statement or `}`")),
        }
    }

    fn block(&mut self) -> Result<(), ErrorAt> {
        if self.block.is_some() {
            return Err(self.cursor.unexpected("one block only"));
        }
        self.cursor.advance()?;
        let bytes = self.cursor.number("a number of bytes")?;
        self.cursor.word("align")?;
        let alignment = self.cursor.number("a number of bytes")?;
        self.block = Some(Block {
            bytes,
            alignment,
            ..Block::default()
        });
        Ok(())
    }

    /// `at N`, if it stands here.
    fn offset(&mut self) -> Result<Option<u64>, ErrorAt> {
        let here = self.cursor.offset();
        if !self.cursor.eat_word("at")? {
            return Ok(None);
        }
        if self.block.is_none() {
            return Err(ErrorAt::new(here, ParseErrorKind::NoBlock));
        }
        self.cursor.number("an offset in the block").map(Some)
    }

    fn source(
        &mut self,
        add: impl FnOnce(&mut GraphBuilder, String, ValueType) -> Result<TensorId, SizeError>,
    ) -> Result<(), ErrorAt> {
        self.cursor.advance()?;
        let (offset, name) = self.new_tensor()?;
        let ty_offset = self.cursor.offset();
        let ty = self.cursor.value_type()?;
        let bytes = self.bytes()?;
        let values = self.values()?;
        let id = add(&mut self.builder, name.clone().into_owned(), ty).map_err(|e| ErrorAt::new(ty_offset, e))?;
        self.values.extend(values.map(|values| (id, values)));
        self.define_tensor(offset, name, id, bytes)
    }

    /// An op that computes nothing; `what` describes its operand.
    fn memory(&mut self, kind: OpKind, what: &'static str) -> Result<(), ErrorAt> {
        let mut offset = self.cursor.offset();
        self.cursor.advance()?;
        let mut name = None;
        if let Token::Op(op) = self.cursor.token() {
            offset = self.cursor.offset();
            name = Some(op.clone().into_owned());
            self.cursor.advance()?;
        }
        let tensor = self.tensor(what)?;
        let id = self.builder.memory_op(kind, tensor);
        if let Some((block, offset)) = self.offset()?.and_then(|offset| Some((self.block.as_mut()?, offset))) {
            block.returns.insert(id, offset);
        }
        self.memory_names.extend(name.map(|name| (id, name)));
        self.op_lines.push(offset);
        Ok(())
    }

    fn op(&mut self) -> Result<(), ErrorAt> {
        let results = self.results()?;
        let repeats = self.cursor.eat_word("recompute")?;
        if !repeats && !self.cursor.eat_word("compute")? {
            return Err(self.cursor.unexpected("`compute` or `recompute`"));
        }
        let op_offset = self.cursor.offset();
        let name = self.op_name()?;
        let mut spec = OpSpec::new(name.clone(), "");
        if repeats {
            self.cursor.word("of")?;
            let offset = self.cursor.offset();
            let original = self.op_name()?;
            let of = self.ops.get(&original).copied();
            let undefined = || ErrorAt::new(offset, ParseErrorKind::UndefinedOp(original.into_owned()));
            spec.kind = OpKind::Recompute {
                of: of.ok_or_else(undefined)?,
            };
        }
        self.call(&mut spec)?;
        let workspace = self.workspace()?;
        spec.results = results.iter().map(|node| node.as_ref().map(ResultNode::spec)).collect();
        let parts = results.iter().map(|node| node.as_ref()?.part.clone());
        spec.parts = if parts.clone().any(|part| part.is_some()) {
            parts.collect()
        } else {
            Vec::new()
        };
        // The types of roots were measured where they stand, and views are not measured.
        let (id, outputs) = self.builder.op(spec).map_err(|e| ErrorAt::new(op_offset, e))?;
        if self.ops.insert(name.clone(), id).is_some() {
            return Err(invalid(op_offset, GraphError::DuplicateOp(name.into_owned())));
        }
        self.op_lines.push(op_offset);
        if let Some((block, workspace)) = self.block.as_mut().zip(workspace) {
            block.workspaces.insert(id, workspace);
        }
        for (node, id) in results.into_iter().zip(outputs) {
            if let (Some(node), Some(id)) = (node, id) {
                if let Some((block, offset)) = self.block.as_mut().zip(node.place) {
                    let storage = self.builder.graph().tensors[id].storage;
                    block.results.insert(storage, offset);
                }
                self.values.extend(node.values.map(|values| (id, values)));
                self.define_tensor(node.offset, node.name, id, node.bytes)?;
            }
        }
        Ok(())
    }

    /// What stands before the keyword of an op.
    fn results(&mut self) -> Result<Vec<Option<ResultNode<'a>>>, ErrorAt> {
        if matches!(self.cursor.token(), Token::Word("compute" | "recompute")) {
            return Ok(Vec::new());
        }
        let mut results = Vec::new();
        if self.cursor.eat_mark("(")? {
            while !self.cursor.eat_mark(")")? {
                if !results.is_empty() && !self.cursor.eat_mark(",")? {
                    return Err(self.cursor.unexpected("`,` or `)`"));
                }
                results.push(self.result()?);
            }
        } else {
            results.push(self.result()?);
        }
        self.cursor.mark("=")?;
        Ok(results)
    }

    fn result(&mut self) -> Result<Option<ResultNode<'a>>, ErrorAt> {
        if self.cursor.eat_word("_")? {
            return Ok(None);
        }
        let (offset, name) = self.new_tensor()?;
        let ty_offset = self.cursor.offset();
        let ty = self.cursor.value_type()?;
        let mut node = ResultNode {
            offset,
            name,
            ty,
            placement: Placement::New,
            bytes: None,
            values: None,
            place: None,
            part: None,
        };
        if self.cursor.eat_word("view")? {
            self.cursor.word("of")?;
            node.placement = Placement::ViewOf(self.tensor("the tensor that is looked at")?);
        } else {
            if self.cursor.eat_word("const")? {
                node.placement = Placement::Constant;
            }
            node.ty.bytes().map_err(|e| ErrorAt::new(ty_offset, e))?;
            node.bytes = self.bytes()?;
            node.values = self.values()?;
            node.place = self.offset()?;
        }
        node.part = self.part()?;
        Ok(Some(node))
    }

    /// `part of NAME[RANGES]` or `part over NAME[RANGES]`, if it stands here.
    fn part(&mut self) -> Result<Option<Part>, ErrorAt> {
        const ROW: &str = "a number of rows";
        if !self.cursor.eat_word("part")? {
            return Ok(None);
        }
        let is_sum = self.cursor.eat_word("over")?;
        if !is_sum {
            self.cursor.word("of")?;
        }
        let of = self.cursor.name("the name of the whole tensor")?.into_owned();
        let ranges = self.cursor.list("[", "]", |cursor| {
            let start = cursor.number(ROW)?;
            cursor.mark(":")?;
            Ok(start..cursor.number(ROW)?)
        })?;
        let mut spare = None;
        if self.cursor.eat_word("spare")? {
            let axis = self.cursor.number("an axis")?;
            self.cursor.word("before")?;
            let before = self.cursor.number(ROW)?;
            self.cursor.word("after")?;
            let after = self.cursor.number(ROW)?;
            spare = Some(Spare { axis, before, after });
        }
        Ok(Some(Part {
            of,
            ranges,
            spare,
            is_sum,
        }))
    }

    /// `values [ELEMENTS]`, if it stands here.
    fn values(&mut self) -> Result<Option<Vec<i64>>, ErrorAt> {
        if !self.cursor.eat_word("values")? {
            return Ok(None);
        }
        let element = |cursor: &mut Cursor<'_>| cursor.number("an integer of 64 bits");
        self.cursor.list("[", "]", element).map(Some)
    }

    /// `workspace N at M`, if it stands here.
    fn workspace(&mut self) -> Result<Option<Workspace>, ErrorAt> {
        if !self.cursor.eat_word("workspace")? {
            return Ok(None);
        }
        let bytes = self.cursor.number("a number of bytes")?;
        let offset = self.offset()?.ok_or_else(|| self.cursor.unexpected("`at`"))?;
        Ok(Some(Workspace { bytes, offset }))
    }

    /// From the type of the op to its source.
    fn call(&mut self, spec: &mut OpSpec) -> Result<(), ErrorAt> {
        spec.op_type = self.cursor.name("the type of the op")?.into_owned();
        if self.cursor.eat_mark("::")? {
            let op_type = self.cursor.name("the type of the op")?.into_owned();
            spec.domain = std::mem::replace(&mut spec.op_type, op_type);
        }
        let tensors = &self.tensors;
        spec.inputs = self.cursor.list("(", ")", |cursor| {
            if cursor.eat_word("_")? {
                return Ok(None);
            }
            defined_tensor(cursor, tensors, "an operand or `_`").map(Some)
        })?;
        if self.cursor.at_mark("{") {
            spec.attributes = attributes(&mut self.cursor)?;
        }
        if self.cursor.eat_word("captures")? {
            let captured = |cursor: &mut _| defined_tensor(cursor, tensors, "a captured tensor");
            spec.captures = self.cursor.list("(", ")", captured)?;
        }
        spec.effects = match self.cursor.token() {
            Token::Word("random") => Effects::Random,
            Token::Word("stateful") => Effects::Stateful,
            Token::Word("control_flow") => Effects::ControlFlow,
            _ => Effects::Pure,
        };
        if spec.effects != Effects::Pure {
            self.cursor.advance()?;
        }
        if self.cursor.eat_word("source")? {
            spec.source = Some(self.cursor.number("a position of 32 bits")?);
        }
        Ok(())
    }

    /// `bytes N`, if it stands here.
    fn bytes(&mut self) -> Result<Option<Option<u64>>, ErrorAt> {
        if !self.cursor.eat_word("bytes")? {
            return Ok(None);
        }
        if self.cursor.eat_word("unknown")? {
            return Ok(Some(None));
        }
        let bytes = self.cursor.number("a number of bytes or `unknown`")?;
        Ok(Some(Some(bytes)))
    }

    fn op_name(&mut self) -> Result<Cow<'a, str>, ErrorAt> {
        let Token::Op(name) = self.cursor.token() else {
            return Err(self.cursor.unexpected("the name of an op, like `@conv`"));
        };
        let name = name.clone();
        self.cursor.advance()?;
        Ok(name)
    }

    /// The name of a tensor to be defined, and the colon after it.
    fn new_tensor(&mut self) -> Result<(usize, Cow<'a, str>), ErrorAt> {
        let offset = self.cursor.offset();
        let Token::Tensor(name) = self.cursor.token() else {
            return Err(self.cursor.unexpected("the name of a tensor, like `%x`"));
        };
        let name = name.clone();
        self.cursor.advance()?;
        self.cursor.mark(":")?;
        Ok((offset, name))
    }

    /// A tensor that is already defined.
    fn tensor(&mut self, expected: &'static str) -> Result<TensorId, ErrorAt> {
        defined_tensor(&mut self.cursor, &self.tensors, expected)
    }

    fn define_tensor(
        &mut self,
        offset: usize,
        name: Cow<'a, str>,
        id: TensorId,
        bytes: Option<Option<u64>>,
    ) -> Result<(), ErrorAt> {
        if let Some(bytes) = bytes {
            let storage = self.builder.graph().tensors[id].storage;
            self.sizes.push((storage, bytes));
        }
        self.tensor_lines.push(offset);
        if self.tensors.insert(name.clone(), id).is_some() {
            return Err(invalid(offset, GraphError::DuplicateTensor(name.into_owned())));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Graph, ErrorAt> {
        let mut graph = std::mem::take(&mut self.builder).finish();
        graph.block = self.block.take();
        for (storage, bytes) in std::mem::take(&mut self.sizes) {
            graph.storages[storage].bytes = bytes;
        }
        graph.values.extend(std::mem::take(&mut self.values));
        for (op, name) in std::mem::take(&mut self.memory_names) {
            graph.ops[op].name = name;
        }
        match graph.validate() {
            Ok(()) => Ok(graph),
            Err(errors) => {
                let offset = errors.first().and_then(|error| self.line_of(&graph, error));
                Err(ErrorAt::new(offset.unwrap_or(0), ParseErrorKind::Invalid(errors)))
            }
        }
    }

    /// Where the op or tensor of an error stands.
    fn line_of(&self, graph: &Graph, error: &GraphError) -> Option<usize> {
        match error {
            GraphError::DuplicateOp(op)
            | GraphError::WrongProducer { op, .. }
            | GraphError::UsedBeforeDefined { op, .. }
            | GraphError::ViewOfStranger { op, .. }
            | GraphError::BadRecompute { op }
            | GraphError::UsedAfterDealloc { op, .. }
            | GraphError::UsedWhilePagedOut { op, .. }
            | GraphError::BadPart { op, .. } => Some(self.op_lines[*self.ops.get(op.as_str())?]),
            GraphError::BadPlace { what, .. } => match self.tensors.get(what.as_str()) {
                Some(&tensor) => Some(self.tensor_lines[tensor]),
                None => Some(self.op_lines[*self.ops.get(what.as_str())?]),
            },
            GraphError::DuplicateTensor(tensor) | GraphError::BadValues { tensor, .. } => {
                Some(self.tensor_lines[*self.tensors.get(tensor.as_str())?])
            }
            GraphError::BadDealloc { tensor, .. }
            | GraphError::BadPage { tensor, .. }
            | GraphError::OutputPagedOut(tensor) => {
                let storage: StorageId = graph.tensors[*self.tensors.get(tensor.as_str())?].storage;
                let word = match error {
                    GraphError::BadDealloc { .. } => "dealloc",
                    GraphError::BadPage { word, .. } => *word,
                    _ => "page_out",
                };
                let does = |id: &OpId| {
                    let op = &graph.ops[*id];
                    op.kind.memory_word() == Some(word) && op.reads().any(|t| graph.tensors[t].storage == storage)
                };
                let last = graph.ops.keys().rev().find(does)?;
                Some(self.op_lines[last])
            }
        }
    }
}

impl ResultNode<'_> {
    fn spec(&self) -> ResultSpec {
        ResultSpec {
            name: self.name.clone().into_owned(),
            ty: self.ty.clone(),
            placement: self.placement,
        }
    }
}

/// `{name = value, …}`.
fn attributes(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, Attribute>, ErrorAt> {
    let mut attributes = BTreeMap::new();
    cursor.list("{", "}", |cursor| {
        let offset = cursor.offset();
        let name = cursor.name("the name of an attribute")?.into_owned();
        cursor.mark("=")?;
        let value = cursor.attribute()?;
        if attributes.insert(name.clone(), value).is_some() {
            return Err(ErrorAt::new(offset, ParseErrorKind::DuplicateAttribute(name)));
        }
        Ok(())
    })?;
    Ok(attributes)
}

/// The tensor that is named here, which must be defined already.
fn defined_tensor<'a>(
    cursor: &mut Cursor<'a>,
    tensors: &FxHashMap<Cow<'a, str>, TensorId>,
    expected: &'static str,
) -> Result<TensorId, ErrorAt> {
    let Token::Tensor(name) = cursor.token() else {
        return Err(cursor.unexpected(expected));
    };
    let Some(&id) = tensors.get(name) else {
        let kind = ParseErrorKind::UndefinedTensor(name.clone().into_owned());
        return Err(ErrorAt::new(cursor.offset(), kind));
    };
    cursor.advance()?;
    Ok(id)
}

fn invalid(offset: usize, error: GraphError) -> ErrorAt {
    ErrorAt::new(offset, ParseErrorKind::Invalid(vec![error]))
}

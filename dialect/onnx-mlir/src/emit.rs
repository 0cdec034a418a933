//! The writer: values, single ops, and what all of them share.

use std::fmt::Write as _;
use std::io::Write;
use std::rc::Rc;

use remat_ir::ValueType;

use crate::names::Names;
use crate::resource::Resources;
use crate::{ExportError, Form, Options, text, types};

/// An SSA value that stands in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    /// Its name with `%`, and `#N` where it is one of several results.
    pub(crate) name: Rc<str>,
    /// Its type.
    pub(crate) ty: Rc<str>,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Ops of the graph, recomputes among them, those inside regions and inlined functions too.
    pub ops: u64,
    /// Recomputes.
    pub recomputes: u64,
    /// Optimization barriers before recomputes: fewer than recomputes if an op reads constants only, or if the form has none.
    pub barriers: u64,
    /// Places where memory is freed.
    pub deallocs: u64,
    /// Bytes of the weights after the module or in a file beside it.
    pub weights: u64,
}

/// What is written, and what is known of the text so far.
pub(crate) struct Emitter<'w> {
    pub(crate) out: &'w mut dyn Write,
    pub(crate) options: Options,
    pub(crate) names: Names,
    pub(crate) resources: Resources,
    pub(crate) report: Report,
    pub(crate) indent: usize,
    /// How many bodies what is written stands in.
    pub(crate) depth: usize,
}

/// An op without attributes and regions, which are written in their place by others.
pub(crate) struct Head<'a> {
    /// Its name, `onnx.Conv` say.
    pub(crate) name: &'a str,
    pub(crate) operands: &'a [Value],
    /// Types of the results.
    pub(crate) results: &'a [Rc<str>],
    /// Name after which the results are called.
    pub(crate) called: &'a str,
    /// Where it comes from.
    pub(crate) location: &'a str,
}

/// Something that writes its part of the text.
pub(crate) type Part<'a, 'w> = &'a mut dyn FnMut(&mut Emitter<'w>) -> Result<(), ExportError>;

impl<'w> Emitter<'w> {
    pub(crate) fn new(out: &'w mut dyn Write, options: Options) -> Self {
        Self {
            out,
            options,
            names: Names::default(),
            resources: Resources::default(),
            report: Report::default(),
            indent: 0,
            depth: 0,
        }
    }

    /// The error for what the form cannot say.
    pub(crate) fn unsupported(&self, place: &str, why: impl Into<String>) -> ExportError {
        ExportError::Unsupported {
            place: place.to_owned(),
            form: self.options.form,
            why: why.into(),
        }
    }

    /// The type of a tensor as text.
    pub(crate) fn type_of(&self, name: &str, ty: &ValueType) -> Result<Rc<str>, ExportError> {
        let text = types::value_type(ty, self.options.form);
        let text = text.map_err(|why| self.unsupported(&format!("tensor `{name}`"), why))?;
        Ok(text.into())
    }

    /// Begins a line.
    pub(crate) fn begin(&mut self) -> Result<(), ExportError> {
        write!(self.out, "{:1$}", "", 2 * self.indent)?;
        Ok(())
    }

    /// Ends a line with the name of what it stems from.
    pub(crate) fn end(&mut self, location: &str) -> Result<(), ExportError> {
        writeln!(self.out, " loc({})", text::string(location.as_bytes()))?;
        Ok(())
    }

    /// A line with its location.
    pub(crate) fn line(&mut self, text: &str, location: &str) -> Result<(), ExportError> {
        self.begin()?;
        write!(self.out, "{text}")?;
        self.end(location)
    }

    /// A value with a name of its own.
    pub(crate) fn value(&mut self, called: &str, ty: &str) -> Value {
        Value {
            name: format!("%{}", self.names.fresh(called)).into(),
            ty: ty.into(),
        }
    }

    /// Writes one op. `attributes` writes what stands between the braces and is left out if it is `None`; each of `regions` writes a
    /// region without its braces.
    ///
    /// # Errors
    /// Those of the parts, and of writing.
    pub(crate) fn op(
        &mut self,
        head: &Head<'_>,
        attributes: Option<Part<'_, 'w>>,
        regions: &mut [Part<'_, 'w>],
    ) -> Result<Vec<Value>, ExportError> {
        let results = self.results(head);
        self.begin()?;
        if let [first, ..] = &results[..] {
            let base = first.name.split('#').next().unwrap_or_default();
            match results.len() {
                1 => write!(self.out, "{base} = ")?,
                count => write!(self.out, "{base}:{count} = ")?,
            }
        }
        let operands: Vec<&str> = head.operands.iter().map(|value| &*value.name).collect();
        let is_torch = self.options.form == Form::Torch;
        if is_torch {
            write!(self.out, "torch.operator ")?;
        }
        write!(self.out, "\"{}\"({})", head.name, operands.join(", "))?;
        if !is_torch {
            self.regions(regions, ("(", ")"))?;
        }
        if let Some(attributes) = attributes {
            write!(self.out, " {{")?;
            attributes(self)?;
            write!(self.out, "}}")?;
        }
        write!(self.out, " : {}", signature(head.operands, head.results))?;
        if is_torch {
            self.regions(regions, ("", ""))?;
        }
        self.end(head.location)?;
        Ok(results)
    }

    fn results(&mut self, head: &Head<'_>) -> Vec<Value> {
        match head.results {
            [] => Vec::new(),
            [ty] => vec![self.value(head.called, ty)],
            several => {
                let base = self.names.fresh(head.called);
                let values = several.iter().enumerate();
                values
                    .map(|(index, ty)| Value {
                        name: format!("%{base}#{index}").into(),
                        ty: Rc::clone(ty),
                    })
                    .collect()
            }
        }
    }

    fn regions(&mut self, regions: &mut [Part<'_, 'w>], (open, close): (&str, &str)) -> Result<(), ExportError> {
        for (index, region) in regions.iter_mut().enumerate() {
            let before = if index == 0 {
                format!(" {open}")
            } else {
                ", ".to_owned()
            };
            writeln!(self.out, "{before}{{")?;
            self.indent += 1;
            region(self)?;
            self.indent -= 1;
            self.begin()?;
            write!(self.out, "}}")?;
        }
        if !regions.is_empty() {
            write!(self.out, "{close}")?;
        }
        Ok(())
    }

    /// Ends a block: `return %a, %b : T, U`, or the same with another name.
    pub(crate) fn terminator(&mut self, name: &str, values: &[Value]) -> Result<(), ExportError> {
        self.begin()?;
        write!(self.out, "{name}")?;
        if !values.is_empty() {
            let names: Vec<&str> = values.iter().map(|value| &*value.name).collect();
            let types: Vec<&str> = values.iter().map(|value| &*value.ty).collect();
            write!(self.out, " {} : {}", names.join(", "), types.join(", "))?;
        }
        writeln!(self.out)?;
        Ok(())
    }

    /// Ends a block with an op in generic form.
    pub(crate) fn generic_terminator(&mut self, name: &str, values: &[Value]) -> Result<(), ExportError> {
        let names: Vec<&str> = values.iter().map(|value| &*value.name).collect();
        let types: Vec<&str> = values.iter().map(|value| &*value.ty).collect();
        self.begin()?;
        writeln!(
            self.out,
            "\"{name}\"({}) : ({}) -> ()",
            names.join(", "),
            types.join(", ")
        )?;
        Ok(())
    }
}

/// `(T, U) -> V`, or `(T, U) -> (V, W)`.
fn signature(operands: &[Value], results: &[Rc<str>]) -> String {
    let operands: Vec<&str> = operands.iter().map(|value| &*value.ty).collect();
    let mut text = format!("({}) -> ", operands.join(", "));
    match results {
        [one] => text.push_str(one),
        several => _ = write!(text, "({})", several.join(", ")),
    }
    text
}

//! [`Network`] for JavaScript. What comes back as text is JSON, a page, or a plan file; failures are thrown.

use js_sys::{Array, Error, Function, Reflect, Uint8Array};
use remat::onnx::Piece;
use serde::Serialize;
use wasm_bindgen::prelude::*;

use crate::file::JsFile;
use crate::{Failure, Network, Question};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn log(text: &str);
}

/// A model that was opened.
#[wasm_bindgen(js_name = Network)]
pub struct JsNetwork(Network);

#[wasm_bindgen(js_class = Network)]
impl JsNetwork {
    /// Reads the graph of a file: `read(offset, length)` gives a part of it, `question` is a [`Question`] as JSON.
    #[wasm_bindgen(constructor)]
    pub fn new(read: Function, length: f64, question: &str) -> Result<Self, JsValue> {
        // A panic is a bug of ours; the worker ends with it, and its words are in the console.
        std::panic::set_hook(Box::new(|panic| log(&panic.to_string())));
        let file = JsFile {
            read,
            length: length as u64,
            at: 0,
        };
        let question: Question = serde_json::from_str(question).map_err(thrown)?;
        Ok(Self(Network::open(file, question).map_err(thrown)?))
    }

    pub fn summary(&self) -> Result<String, JsValue> {
        json(&self.0.summary())
    }

    pub fn price(&mut self, percent: Option<u32>, seconds: f64) -> Result<String, JsValue> {
        json(&self.0.price(percent, seconds).map_err(thrown)?)
    }

    pub fn plan(&mut self, percent: Option<u32>, seconds: f64, tiles: bool) -> Result<String, JsValue> {
        json(&self.0.plan(percent, seconds, tiles).map_err(thrown)?)
    }

    pub fn page(&self) -> Result<String, JsValue> {
        self.0.page().map_err(thrown)
    }

    #[wasm_bindgen(js_name = planFile)]
    pub fn plan_file(&self) -> Result<String, JsValue> {
        self.0.plan_file().map_err(thrown)
    }

    /// Pieces of the rewritten file: bytes, or `[offset, length]` of the file that was read.
    pub fn rewritten(&self) -> Result<Array, JsValue> {
        let piece = |piece: Piece| match piece {
            Piece::Bytes(bytes) => JsValue::from(Uint8Array::from(&bytes[..])),
            Piece::Range { offset, length } => {
                JsValue::from(Array::of2(&(offset as f64).into(), &(length as f64).into()))
            }
        };
        Ok(self.0.rewritten().map_err(thrown)?.into_iter().map(piece).collect())
    }
}

fn json(value: &impl Serialize) -> Result<String, JsValue> {
    serde_json::to_string(value).map_err(thrown)
}

/// An `Error` of JavaScript. Where sizes have to be given, its `dims` are their names.
fn thrown(failure: impl Into<Failure>) -> JsValue {
    let failure = failure.into();
    let error = Error::new(&failure.to_string());
    let dims: Array = failure
        .open_dims()
        .iter()
        .map(|name| JsValue::from(name.as_str()))
        .collect();
    // An object that was just made takes any property.
    let _ = Reflect::set(&error, &"dims".into(), &dims);
    error.into()
}

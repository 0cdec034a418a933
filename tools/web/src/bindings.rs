//! [`Network`] for JavaScript. What comes back as text is JSON, a page, or a plan file; errors are their messages.

use js_sys::{Array, Function, Uint8Array};
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
    pub fn new(read: Function, length: f64, question: &str) -> Result<Self, JsError> {
        // A panic is a bug of ours; the worker ends with it, and its words are in the console.
        std::panic::set_hook(Box::new(|panic| log(&panic.to_string())));
        let file = JsFile {
            read,
            length: length as u64,
            at: 0,
        };
        let question: Question = serde_json::from_str(question)?;
        Ok(Self(Network::open(file, question)?))
    }

    pub fn summary(&self) -> Result<String, JsError> {
        json(&self.0.summary())
    }

    pub fn price(&mut self, percent: Option<u32>, seconds: f64) -> Result<String, JsError> {
        json(&self.0.price(percent, seconds)?)
    }

    pub fn plan(&mut self, percent: Option<u32>, seconds: f64, tiles: bool) -> Result<String, JsError> {
        json(&self.0.plan(percent, seconds, tiles)?)
    }

    pub fn page(&self) -> Result<String, JsError> {
        Ok(self.0.page()?)
    }

    #[wasm_bindgen(js_name = planFile)]
    pub fn plan_file(&self) -> Result<String, JsError> {
        Ok(self.0.plan_file()?)
    }

    /// Pieces of the rewritten file: bytes, or `[offset, length]` of the file that was read.
    pub fn rewritten(&self) -> Result<Array, JsError> {
        let piece = |piece: Piece| match piece {
            Piece::Bytes(bytes) => JsValue::from(Uint8Array::from(&bytes[..])),
            Piece::Range { offset, length } => JsValue::from(Array::of2(&(offset as f64).into(), &(length as f64).into())),
        };
        Ok(self.0.rewritten()?.into_iter().map(piece).collect())
    }
}

fn json(value: &impl Serialize) -> Result<String, JsError> {
    Ok(serde_json::to_string(value).map_err(Failure::from)?)
}

//! A file of the browser as one to read from.

use std::io::{self, Read, Seek, SeekFrom};

use js_sys::{Function, Uint8Array};
use wasm_bindgen::JsValue;

/// A file of which a function of JavaScript gives ranges: `read(offset, length)` is a `Uint8Array`.
pub(crate) struct JsFile {
    pub(crate) read: Function,
    pub(crate) length: u64,
    pub(crate) at: u64,
}

impl Read for JsFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.at);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if length == 0 {
            return Ok(0);
        }
        let (offset, wanted) = (JsValue::from_f64(self.at as f64), JsValue::from_f64(length as f64));
        let failed = |_| io::Error::other("the browser does not give its bytes");
        let bytes = Uint8Array::new(&self.read.call2(&JsValue::NULL, &offset, &wanted).map_err(failed)?);
        let length = bytes.length() as usize;
        if length == 0 || length > buffer.len() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        bytes.copy_to(&mut buffer[..length]);
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for JsFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

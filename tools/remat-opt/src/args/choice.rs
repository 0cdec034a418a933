//! Options whose value is one of a few names.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

/// The names, each with what it stands for and its line in the help.
#[derive(Clone, Copy)]
pub(crate) struct Choice<T: 'static>(pub(crate) &'static [(&'static str, T, &'static str)]);

/// Something that is either on or off.
pub(crate) const SWITCH: Choice<bool> = Choice(&[("on", true, "It is there"), ("off", false, "It is not")]);

impl<T: Copy + Send + Sync> Choice<T> {
    fn names(&self) -> impl Iterator<Item = PossibleValue> + use<T> {
        self.0
            .iter()
            .map(|(name, _, help)| PossibleValue::new(*name).help(*help))
    }
}

impl<T: Copy + PartialEq> Choice<T> {
    /// The name of a value, as the command line takes it.
    pub(crate) fn name_of(&self, value: T) -> Option<&'static str> {
        let found = self.0.iter().find(|(_, meaning, _)| *meaning == value);
        found.map(|&(name, ..)| name)
    }
}

impl<T: Copy + Send + Sync> TypedValueParser for Choice<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let known = PossibleValuesParser::new(self.names());
        let name = known.parse_ref(command, arg, value)?;
        let found = self.0.iter().find(|(known, ..)| *known == name);
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidValue).with_cmd(command);
        found.map(|&(_, meaning, _)| meaning).ok_or_else(unknown)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names()))
    }
}

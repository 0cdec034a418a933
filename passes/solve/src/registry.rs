//! Solvers under their names.

use crate::{Search, Small, Solver};

/// The solvers that a program knows. Each crate with solvers has a function `register`, which adds its own; the program calls those that it
/// is built with. So no solver is known by name below the program.
#[derive(Clone, Default)]
pub struct Registry(Vec<&'static dyn Solver>);

impl Registry {
    /// What these functions register, in their order.
    #[must_use]
    pub fn of(crates: &[fn(&mut Self)]) -> Self {
        let mut registry = Self::default();
        crates.iter().for_each(|register| register(&mut registry));
        registry
    }

    /// Adds solvers behind those that are there.
    pub fn add(&mut self, solvers: impl IntoIterator<Item = &'static dyn Solver>) {
        self.0.extend(solvers);
    }

    /// All of them, in the order in which they were added.
    pub fn solvers(&self) -> impl Iterator<Item = &'static dyn Solver> + use<> {
        self.0.clone().into_iter()
    }
}

/// Adds the solvers of this crate.
pub fn register(registry: &mut Registry) {
    registry.add([&Search as &dyn Solver, &Small]);
}

//! Mutations: inputs that are nearly right get further than random bytes.

mod bytes;
mod json;
mod onnx;
mod text;

use crate::{Form, Rng, Seed, Target};

/// A changed copy of `data`, with parts of `other` in it at times. The same arguments and the same state of `rng` give the same bytes.
#[must_use]
pub fn mutate(form: Form, data: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut data = once(form, data, other, rng);
    while rng.below(2) == 0 {
        data = once(form, &data, other, rng);
    }
    data
}

/// Mutants of the seeds of a target, by number.
#[derive(Clone, Debug)]
pub struct Mutants {
    form: Form,
    accepted: Vec<Seed>,
    refused: Vec<Seed>,
}

impl Mutants {
    /// Runs the target on all seeds: mutants of what it refuses are refused, too, so there will be fewer of them.
    #[must_use]
    pub fn new(target: &Target, seeds: Vec<Seed>) -> Self {
        let (accepted, refused) = seeds.into_iter().partition(|seed| (target.body)(&seed.data));
        let form = target.form;
        Self {
            form,
            accepted,
            refused,
        }
    }

    /// The mutant of this number, and the seed that it is made from.
    #[must_use]
    pub fn get(&self, number: u64) -> (&Seed, Vec<u8>) {
        let is_refused = self.accepted.is_empty() || (number % 8 == 7 && !self.refused.is_empty());
        let seeds = if is_refused { &self.refused } else { &self.accepted };
        let mut rng = Rng::new(number);
        let seed = &seeds[rng.below(seeds.len())];
        let other = &seeds[rng.below(seeds.len())];
        let mutant = mutate(self.form, &seed.data, &other.data, &mut rng);
        (seed, mutant)
    }
}

fn once(form: Form, data: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    // Now and then the form is forgotten: that is what broken files are like.
    let structured = match form {
        _ if rng.below(8) == 0 => None,
        Form::Bytes => None,
        Form::Text => text::mutate(data, other, rng),
        Form::Json => json::mutate(data, rng),
        Form::Onnx => onnx::mutate(data, rng),
    };
    structured.unwrap_or_else(|| bytes::mutate(data, other, rng))
}

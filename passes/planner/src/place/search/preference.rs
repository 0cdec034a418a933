//! Which of two buffers at one offset is tried first.

use alloc::vec;
use alloc::vec::Vec;

use crate::dense::Table;
use crate::place::instance::{Instance, Item, Span};
use crate::rng::Rng;

/// What is compared first; what is equal there is told apart by further properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The load of the fullest section that it lives in.
    FullestSection,
    /// How long it lives.
    Life,
    /// In how many sections it lives.
    Sections,
    /// Size times life.
    Area,
    /// The sum of the weights of its sections.
    Weight,
    /// The mean of the weights of its sections.
    MeanWeight,
    /// The sum of the weights of its sections, times its size.
    WeightAndSize,
    /// The largest weight of its sections, times its size.
    LargestWeightAndSize,
}

/// In the order in which restarts take them.
pub(super) const PREFERENCES: [Kind; 10] = [
    Kind::FullestSection,
    Kind::Weight,
    Kind::Sections,
    Kind::LargestWeightAndSize,
    Kind::Life,
    Kind::Weight,
    Kind::MeanWeight,
    Kind::WeightAndSize,
    Kind::Area,
    Kind::LargestWeightAndSize,
];

/// How often sections were too full. Later restarts weigh more.
pub(super) struct Weights {
    of: Vec<f64>,
    step: f64,
}

impl Weights {
    const GROWTH: f64 = 1.05;
    const LARGEST: f64 = 1e9;

    pub(super) fn new(sections: usize) -> Self {
        Self {
            of: vec![1.0; sections],
            step: 1.0,
        }
    }

    /// A section was too full.
    pub(super) fn add(&mut self, section: usize) {
        self.of[section] += self.step;
    }

    /// From now on, failures weigh more than all before.
    pub(super) fn decay(&mut self) {
        self.step *= Self::GROWTH;
        if self.step > Self::LARGEST {
            let step = self.step;
            self.of.iter_mut().for_each(|weight| *weight /= step);
            self.step = 1.0;
        }
    }
}

/// The preference of a restart.
pub(super) struct Preference {
    kind: Kind,
    /// What the first property is multiplied with.
    noise: Option<Table<Item, f64>>,
    life: Table<Item, f64>,
    sections: Table<Item, f64>,
    size: Table<Item, f64>,
    keyed: Vec<([f64; 3], Item)>,
}

impl Preference {
    pub(super) fn new(instance: &Instance) -> Self {
        let sections = instance
            .spans
            .iter()
            .map(|spans| spans.iter().map(Span::len).sum::<usize>() as f64);
        Self {
            kind: PREFERENCES[0],
            noise: None,
            life: instance.life.iter().map(|&life| life as f64).collect(),
            sections: sections.collect(),
            size: instance.size.iter().map(|&size| size as f64).collect(),
            keyed: Vec::new(),
        }
    }

    /// Takes another preference; `noise` is how much it may be off, in 64ths.
    pub(super) fn choose(&mut self, kind: Kind, noise: Option<usize>, rng: &mut Rng) {
        self.kind = kind;
        self.noise = noise.map(|most| {
            let mut noise = Table::filled(0.0, self.life.len());
            noise
                .iter_mut()
                .for_each(|noise| *noise = 64.0 + ((rng.unit() * most as f64) as u32) as f64);
            noise
        });
    }

    /// Sorts the buffers of a part, the preferred ones first.
    pub(super) fn sort(&mut self, part: &mut [Item], instance: &Instance, load: &[i64], weights: &Weights) {
        let mut keyed = core::mem::take(&mut self.keyed);
        keyed.clear();
        keyed.extend(part.iter().map(|&item| (self.key(item, instance, load, weights), item)));
        keyed.sort_unstable_by(|(a, first), (b, second)| {
            let pairs = b.iter().zip(a);
            let larger = pairs.map(|(b, a)| b.total_cmp(a)).find(|order| order.is_ne());
            larger.unwrap_or_else(|| first.cmp(second))
        });
        for (place, (_, item)) in part.iter_mut().zip(&keyed) {
            *place = *item;
        }
        self.keyed = keyed;
    }

    fn key(&self, item: Item, instance: &Instance, load: &[i64], weights: &Weights) -> [f64; 3] {
        let (life, sections, size) = (self.life[item], self.sections[item], self.size[item]);
        let area = life * size;
        let spans = || instance.spans[item].iter().cloned();
        let fullest = spans().flat_map(|span| &load[span]).max().copied().unwrap_or(0) as f64;
        let weights = || spans().flat_map(|span| &weights.of[span]).copied();
        let mut key = match self.kind {
            Kind::FullestSection => [fullest, life, area],
            Kind::Life => [life, area, fullest],
            Kind::Sections => [sections, fullest, area],
            Kind::Area => [area, fullest, life],
            Kind::Weight => [weights().sum(), area, fullest],
            Kind::MeanWeight => [weights().sum::<f64>() / sections, fullest, life],
            Kind::WeightAndSize => [weights().sum::<f64>() * size, area, fullest],
            Kind::LargestWeightAndSize => [weights().fold(0.0, f64::max) * size, life, area],
        };
        if let Some(noise) = &self.noise {
            key[0] *= noise[item];
        }
        key
    }
}

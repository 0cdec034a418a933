//! The pass `remat-place`.

use remat::place::BufferFile;
use remat::plan::{Blocks, Buffer, Status};
use remat::solver::SolveControl;
use remat_mlir::{Function, Severity};

use crate::{PassError, PlaceOptions};

/// Attribute of a function: the bytes of the block that its buffers lie in.
const BLOCK: &str = "remat.block";

/// What became of the buffers of a function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlaceReport {
    /// Bytes of the block; 0 where nothing was placed.
    pub block: u64,
    /// The most bytes that the placed buffers need at one time.
    pub load: u64,
    /// No block is smaller.
    pub bound: u64,
    /// Whether that is proved of this block.
    pub optimal: bool,
    /// How many buffers became views.
    pub placed: usize,
    /// How many stay allocated.
    pub others: usize,
}

impl PlaceReport {
    /// The remark.
    #[must_use]
    pub fn text(&self) -> String {
        let quality = if self.optimal {
            "no block is smaller".to_owned()
        } else {
            format!("any block has at least {}", self.bound)
        };
        let others = match self.others {
            0 => String::new(),
            1 => ", 1 stays allocated".to_owned(),
            count => format!(", {count} stay allocated"),
        };
        format!(
            "remat-place: {} buffer{} in a block of {} bytes, load {} bytes{others}; {quality}",
            self.placed,
            if self.placed == 1 { "" } else { "s" },
            self.block,
            self.load,
        )
    }
}

/// Puts the buffers that a bufferized function allocates and frees into one block: each becomes a view at a constant offset. The checker has
/// accepted the offsets. The bytes of the block are noted at the function. A function without such buffers stays as it is.
///
/// # Errors
/// [`PassError`]; the function is unchanged then.
pub fn place<'c>(function: Function<'c>, options: &PlaceOptions) -> Result<PlaceReport, PassError<'c>> {
    let buffers = function.buffers();
    let mut report = PlaceReport {
        placed: buffers.fixed.len(),
        others: buffers.others.len(),
        ..PlaceReport::default()
    };
    if options.remarks {
        for other in &buffers.others {
            other.emit(
                Severity::Remark,
                &format!("remat-place: the buffer stays allocated: {}", other.obstacle),
            );
        }
    }
    if buffers.fixed.is_empty() {
        return Ok(report);
    }
    let places = buffers.fixed.iter().enumerate().map(|(index, fixed)| Buffer {
        alignment: fixed.alignment,
        ..Buffer::new(index.to_string(), fixed.bytes, fixed.lifetime.clone())
    });
    let file = BufferFile {
        buffers: places.collect(),
        hints: None,
    };
    let mut control = SolveControl::new().time_limit(options.time_limit).seed(options.seed);
    control.step_limit = options.step_limit;
    let placed = remat::place_buffers(&file, &Blocks::Lowest, &control)?;
    let certificate = &placed.outcome.certificate;
    let places = placed.outcome.placement.map(|placement| placement.places);
    let offsets = places
        .into_iter()
        .flatten()
        .map(|place| place.map_or(0, |place| place.offset));
    report.block = certificate.height.unwrap_or_default();
    report.load = remat::place::load(&file.buffers);
    report.bound = certificate.bound;
    report.optimal = certificate.status == Status::Optimal;
    if !buffers.place(options.source, report.block, &offsets.collect::<Vec<_>>()) {
        return Err(PassError::NoArgument);
    }
    function.set_integer(BLOCK, i64::try_from(report.block).unwrap_or(i64::MAX));
    if options.remarks {
        function.emit(Severity::Remark, &report.text());
    }
    Ok(report)
}

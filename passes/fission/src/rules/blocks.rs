//! Blocks of pixels that become channels, and channels that become blocks of pixels.

use super::site::whole_multiples;
use super::{Cut, Reason, Site};

/// Sides of the blocks.
fn side(site: &Site<'_>) -> Result<u64, Reason> {
    let side = u64::try_from(site.int("blocksize", 0)).ok();
    let side = side.filter(|&side| side > 0 && site.out.len() == 4);
    side.ok_or(Reason::Attribute("blocksize"))
}

/// The operand is `N x C b b x H x W`, the result `N x C x H b x W b`. In mode `CRD` each channel of the result is `b b` channels of the operand
/// one after the other, else they lie apart.
pub(super) fn depth_to_space(site: &Site<'_>) -> Result<Cut, Reason> {
    let side = side(site)?;
    let rows = match site.axis {
        0 => site.rows.clone(),
        1 if site.text("mode", "DCR") == "CRD" => {
            let each = side.checked_mul(side).ok_or(Reason::Shapes)?;
            site.rows.start * each..site.rows.end * each
        }
        1 => return Err(Reason::Dependent),
        _ => whole_multiples(&site.rows, side)?,
    };
    Ok(site.whole().with(0, site.axis, rows))
}

/// The operand is `N x C x H b x W b`, the result `N x b b C x H x W`.
pub(super) fn space_to_depth(site: &Site<'_>) -> Result<Cut, Reason> {
    let side = side(site)?;
    let rows = match site.axis {
        0 => site.rows.clone(),
        1 => return Err(Reason::Dependent),
        _ => site.rows.start * side..site.rows.end * side,
    };
    Ok(site.whole().with(0, site.axis, rows))
}

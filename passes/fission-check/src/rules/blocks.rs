//! Pixels that become channels, and channels that become pixels.
//!
//! With blocks of `b` by `b`, pixel `(y, x)` of the larger image is pixel `(y / b, x / b)` of the smaller one, in a channel that depends on
//! `(y % b, x % b)`.

use super::super::site::{NoWay, Site, Way, rows, signed};
use super::super::values::Rows;

fn block(site: &Site<'_>) -> Result<i64, NoWay> {
    let block = site.int("blocksize", 0);
    match site.rank() == 4 && site.dims(0)?.len() == 4 && (1..=1 << 15).contains(&block) {
        true => Ok(block),
        false => Err("its blocks are not understood".to_owned()),
    }
}

/// Rows of the smaller image for whole blocks of rows of the larger one.
fn smaller(part: &Rows, block: i64) -> Result<Rows, NoWay> {
    let (start, end) = (signed(part.start), signed(part.end));
    match start % block == 0 && end % block == 0 {
        true => rows(start / block, end / block),
        false => Err("it cuts a block".to_owned()),
    }
}

/// `N x C b b x H x W` to `N x C x H b x W b`.
pub(super) fn depth_to_space<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let block = block(site)?;
    let mut way = site.way()?.with_axis(0, 0, &site.part[0]);
    if !site.is_whole(1) {
        if site.text("mode") != Some("CRD") {
            return Err("its channels lie apart".to_owned());
        }
        let each = block * block;
        let channels = rows(signed(site.part[1].start) * each, signed(site.part[1].end) * each)?;
        way = way.with_axis(0, 1, &channels);
    }
    for axis in 2..4 {
        way = way.with_axis(0, axis, &smaller(&site.part[axis], block)?);
    }
    Ok(way)
}

/// `N x C x H b x W b` to `N x b b C x H x W`.
pub(super) fn space_to_depth<'a>(site: &Site<'a>) -> Result<Way<'a>, NoWay> {
    let block = block(site)?;
    if !site.is_whole(1) {
        return Err("its channels lie apart".to_owned());
    }
    let mut way = site.way()?.with_axis(0, 0, &site.part[0]);
    for axis in 2..4 {
        let part = &site.part[axis];
        let larger = rows(signed(part.start) * block, signed(part.end) * block)?;
        way = way.with_axis(0, axis, &larger);
    }
    Ok(way)
}

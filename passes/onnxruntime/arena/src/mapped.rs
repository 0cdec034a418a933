//! Where a file is mapped in this process, and whether pages of that are there.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::uses::WeightUse;

/// Of each page of the process, 8 bytes, the highest bit of which says that it is there.
const PAGEMAP: &str = "/proc/self/pagemap";
const MAPS: &str = "/proc/self/maps";
/// Pages that are looked at of one weight, from its beginning.
const MOST_PAGES: usize = 4096;
/// And so many of them at once.
const PAGES: usize = 512;

/// A part of a file that is mapped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mapping {
    pub(crate) addresses: Range<usize>,
    /// Where it begins in the file.
    pub(crate) offset: u64,
    /// What may be done there: `PROT_READ` and others.
    pub(crate) protection: i32,
}

impl Mapping {
    /// The addresses at which a part of the file lies; `None` where it does not.
    pub(crate) fn of(&self, part: &WeightUse) -> Option<Range<usize>> {
        let end = self.offset.saturating_add(self.addresses.len() as u64);
        let (from, to) = (part.offset.max(self.offset), part.end().min(end));
        let at = |offset: u64| Some(self.addresses.start + usize::try_from(offset - self.offset).ok()?);
        (from < to).then(|| Some(at(from)?..at(to)?))?
    }
}

/// All mappings of the file in this process, by their address.
pub(crate) fn mappings(file: &Path) -> Vec<Mapping> {
    let text = std::fs::read(MAPS).unwrap_or_default();
    of_file(&String::from_utf8_lossy(&text), &file.to_string_lossy())
}

fn of_file(text: &str, file: &str) -> Vec<Mapping> {
    text.lines().filter_map(|line| mapping(line, file)).collect()
}

fn mapping(line: &str, file: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (may, offset) = (fields.next()?, fields.next()?);
    // The device and the inode; there is room before the name.
    let name = fields.nth(2)?.trim_start();
    if name != file {
        return None;
    }
    let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).ok());
    let bit = |letter: char, bit: i32| if may.contains(letter) { bit } else { 0 };
    Some(Mapping {
        addresses: start?..end?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        protection: bit('r', 1) | bit('w', 2) | bit('x', 4),
    })
}

/// Says which pages are there.
#[derive(Debug)]
pub(crate) struct Presence {
    pages: File,
    page_bytes: usize,
}

impl Presence {
    /// `None` where the system does not say it.
    pub(crate) fn open(page_bytes: usize) -> Option<Self> {
        let pages = File::open(PAGEMAP).ok()?;
        Some(Self { pages, page_bytes })
    }

    /// Whether a page at these addresses is there, of the first ones.
    pub(crate) fn any(&self, addresses: &Range<usize>) -> bool {
        let first = addresses.start / self.page_bytes;
        let count = addresses
            .end
            .div_ceil(self.page_bytes)
            .saturating_sub(first)
            .min(MOST_PAGES);
        let mut bytes = [0u8; PAGES * 8];
        (0..count).step_by(PAGES).any(|from| {
            let part = &mut bytes[..PAGES.min(count - from) * 8];
            let read = self.pages.read_at(part, (first + from) as u64 * 8).unwrap_or(0);
            part[..read].chunks_exact(8).any(|page| page[7] & 0x80 != 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
7ff2a1000000-7ff2a2000000 rw-p 13000000 fe:00 10084366                   /x/weights.data
7ff2a3000000-7ff2a3002000 r--p 00001000 fe:00 10084366                   /x/weights.data
7ff2a4000000-7ff2a4002000 r-xp 00001000 fe:00 10084366                   /x/weights.data (deleted)
7ff2a5000000-7ff2a5002000 rw-p 00000000 00:00 0 
";

    #[test]
    fn parts_of_the_file_are_found_where_they_are_mapped() {
        let found = of_file(TEXT, "/x/weights.data");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].offset, found[0].protection), (0x1300_0000, 3));
        assert_eq!((found[1].offset, found[1].protection), (0x1000, 1));
        let part = |offset, bytes| found[1].of(&WeightUse { offset, bytes });
        assert_eq!(part(0x1800, 0x10), Some(0x7ff2_a300_0800..0x7ff2_a300_0810));
        assert_eq!(part(0, 0x9000), Some(found[1].addresses.clone()));
        assert_eq!(part(0, 0x1000), None);
        assert_eq!(part(0x3000, 0x1000), None);
    }

    #[test]
    fn pages_of_this_process_are_there() {
        let page = 1 << 12;
        let Some(presence) = Presence::open(page) else { return };
        let here = std::ptr::from_ref(&presence) as usize;
        assert!(presence.any(&(here..here + 1)));
        assert!(!presence.any(&(page..2 * page)));
    }
}

//! The solvers of this crate.

use crate::classic::Classic;
use crate::list::ListScheduler;
use crate::paging::PagingSearch;
use crate::{Search, Small, Solver};

/// All solvers of this crate.
pub fn solvers() -> impl Iterator<Item = &'static dyn Solver> {
    let search: &'static dyn Solver = &Search;
    let small: &'static dyn Solver = &Small;
    let classic = Classic::ALL.iter().map(|solver| solver as &dyn Solver);
    let paging = PagingSearch::ALL.iter().map(|solver| solver as &dyn Solver);
    let list: &'static dyn Solver = &ListScheduler;
    [search, small].into_iter().chain(classic).chain([list]).chain(paging)
}

//! Tests of the search and of what else solves without a library.
#![cfg(test)]

mod brute_force;
mod least_peak;
mod properties;
mod repeats;
mod series_parallel;
mod small;
mod updates;

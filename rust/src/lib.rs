//! Interpretable clustering by decision trees: the core of the Python package `treeclust_rs`.
//!
//! Every fit takes the same way through the crate:
//!
//! 1. [`table`] views the caller's columns without copying them; [`index`] turns each into at most 256 bins.
//! 2. A [`criterion`] says what a row adds up to and what a cut is worth; [`histogram`] adds rows up per bin, and
//!    [`search`] finds the exact best cut of a node from these sums.
//! 3. [`grow`] splits nodes, best first or until all are done, over one [`partition`] of the rows; [`placement`]
//!    chooses the printed threshold within the gap that a cut names.
//! 4. [`fit`] puts these together: a threshold tree from any base ([`imm`], [`center_cuts`], Kernel IMM, none) and any criterion.
//!    [`kauri`], [`kernel`] and [`oblique`] hold the methods with their own objectives, [`cltree`] and
//!    [`regression`] those that look at the columns alone, [`local_search`] the search for the best tree of a budget
//!    of leaves. [`sparse`] searches and splits the nodes of sparse rows, for the bases and criteria that take them.
//!    [`parts`] grows the tree of rows that are never in one place.
//! 5. [`tree`] is the fitted tree and the one routing function.
//!
//! The crate does not depend on Python: the bindings are behind the feature `python`. Results are the same bits for
//! every number of threads ([`parallel`]), and memory that is not there is an error
//! ([`memory`]).

mod beside_cuts;
mod binner;
pub mod center_cuts;
pub mod cltree;
pub mod costs;
pub mod criterion;
pub mod error;
pub mod exact;
pub mod fit;
mod grouping;
pub mod grow;
pub mod histogram;
pub mod imm;
pub mod index;
pub mod kauri;
pub mod kernel;
pub mod local_search;
pub mod memory;
mod node_sums;
pub mod oblique;
mod orders;
pub mod parallel;
pub mod partition;
pub mod parts;
pub mod placement;
pub mod places;
pub mod regression;
pub mod rows;
pub mod search;
pub mod shallow;
pub mod sparse;
pub mod table;
pub mod tree;

#[cfg(feature = "python")]
#[allow(unsafe_code, reason = "PyO3's macros expand to it")]
mod python;

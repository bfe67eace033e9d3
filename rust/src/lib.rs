//! Interpretable clustering by decision trees: the core of the Python package `treeclust_rs`.

pub mod costs;
pub mod criterion;
pub mod error;
pub mod grow;
pub mod imm;
pub mod index;
pub mod kauri;
pub mod kernel;
pub mod oblique;
pub mod parallel;
pub mod partition;
pub mod rows;
pub mod search;
pub mod table;
pub mod threshold;
pub mod tree;

#[cfg(feature = "python")]
#[allow(unsafe_code, reason = "PyO3's macros expand to it")]
mod python;

//! Threshold trees on sparse rows: the cuts that the same rows as a table would have, in time and memory that go by the
//! stored cells.
//!
//! [`columns`] holds the stored cells of a node column by column, ascending; `search` finds and makes the cuts of
//! nodes, `centers` says where the centers of IMM lie. Cells that are not stored are 0: they are one group of a
//! column, between its negative and its positive values.

pub(crate) mod centers;
pub mod columns;
pub(crate) mod search;

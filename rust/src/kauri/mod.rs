//! Kauri: binary trees grown by the gain of a kernel k-means objective, with no reference clustering.
//!
//! - [`fit`]: the problem, the fitted tree, the loop;
//! - `growth`: open leaves, the choice of a split, the split;
//! - `leaf_search`: gains and bounds of the open leaves;
//! - `clusters`: the rows of the clusters and their stocks;
//! - [`cuts`]: the cuts of a leaf, with what does not depend on the clusters; `level_stocks`, `level_pairs`: those of levels;
//!   `sparse_cuts`: those of sparse rows;
//! - [`features`]: the rows' features, those of levels by code;
//! - [`gains`], [`moves`]: the gains of a cut, and the moves in their order;
//! - [`kernel`]: kernel values and sums of them.

mod clusters;
pub mod cuts;
pub mod features;
pub mod fit;
pub mod gains;
mod growth;
pub mod kernel;
mod leaf_search;
mod level_pairs;
mod level_stocks;
pub mod moves;
mod sparse_cuts;

//! BestTree: the best threshold tree of at most L leaves, by local search.
//!
//! Greedy trees are a start, not an answer. From given trees the search goes down to a tree that no change it knows
//! makes better: thresholds are refined node by node, and subtrees are taken out and grown anew (*ruin and recreate*:
//! Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, J. Comput. Phys. 2000). A round costs what the subtree weighs that it
//! changes, not the table.
//!
//! | file | idea |
//! |---|---|
//! | `ranks.rs` | columns as ranks of two bytes |
//! | `segments.rs` | a subtree is one range of nodes and one of rows |
//! | `objective.rs`, `kmeans.rs`, `kmedians.rs`, `labels.rs` | what is minimised, from sums of leaves |
//! | `observed.rs` | k-means of rows with missing coordinates |
//! | `sparse_kmeans.rs`, `sparse_kmedians.rs` | the same of sparse rows, by their stored cells |
//! | `points.rs` | rows as points, and what they cost about centers |
//! | `sweep.rs` | the best cut of a node |
//! | `regrow.rs`, `refine.rs` | a subtree grown by label cost; thresholds moved (TAO) |
//! | `moves.rs` | the random changes |
//! | `state.rs`, `start.rs` | the tree as it stands; given trees within the limits |
//! | `search.rs` | batches of changes, the best of which is taken |
//!
//! Memory: 2 n d bytes for the ranks, of sparse rows 6 a stored cell; 8 n k for the costs of rows of the tree that is searched, and of as many starts
//! as there are threads; 4 n for the rows of a tree; for k-medians up to 24 n d for each of the first.

mod kmeans;
mod kmedians;
mod labels;
mod moves;
mod objective;
mod observed;
mod points;
mod ranks;
mod refine;
mod regrow;
mod search;
mod segments;
mod sparse_kmeans;
mod sparse_kmedians;
mod sparse_points;
mod start;
mod state;
mod sweep;

pub use kmeans::KMeans;
pub use kmedians::KMedians;
pub use labels::Labels;
pub use moves::Move;
pub use objective::{Objective, RowCosts};
pub use observed::ObservedKMeans;
pub use points::{LevelPoints, Points};
pub use search::{FoundTree, SearchSettings, Step, search};
pub use sparse_kmeans::SparseKMeans;
pub use sparse_kmedians::SparseKMedians;

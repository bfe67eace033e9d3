//! Oblique trees: a clustering and a tree of sparse weighted sums optimised together.
//!
//! Gabidolla, Carreira-Perpiñán: Optimal Interpretable Clustering Using Oblique Decision Trees, KDD 2022.
//!
//! | file | idea |
//! |---|---|
//! | `plan.rs` | a fit from documented options |
//! | `fit.rs`, `path.rs` | tree and centers in turns (eq. 4); auxiliary labels and a growing mu (section 7) |
//! | `tao.rs`, `reduced.rs` | tree alternating optimisation; the two-class problem of a test (eq. 9) |
//! | `splits.rs`, `leaf_loss.rs` | the kinds of tests; what rows cost in leaves (eq. 10) |
//! | `draft.rs`, `initial.rs` | the tree while it changes; trees to start from (appendix A.2) |
//! | `geometry.rs`, `spherical.rs` | distances and centers; spherical k-means |
//! | `memory.rs` | caches of results of earlier passes |
//! | `logistic/` | the node solver: l1 logistic regression with a free bias |

pub mod draft;
pub mod fit;
pub mod geometry;
pub mod initial;
pub mod leaf_loss;
pub mod logistic;
pub mod memory;
pub mod path;
pub mod plan;
mod reduced;
pub mod spherical;
pub mod splits;
pub mod tao;

//! Oblique trees: a clustering and a tree of sparse weighted sums optimised together.
//!
//! Gabidolla, Carreira-Perpiñán: Optimal Interpretable Clustering Using Oblique Decision Trees, KDD 2022.

pub(crate) mod cells;
pub mod design;
pub mod fit;
pub mod geometry;
pub mod initial;
pub mod logistic;
mod loss;
pub mod memory;
mod quadratic;
mod reduced;
pub mod rows;
pub mod spherical;
pub mod tao;

//! Oblique trees: inner nodes that weigh several columns.
//!
//! Gabidolla, Carreira-Perpiñán: Optimal Interpretable Clustering Using Oblique Decision Trees, KDD 2022.

mod cells;
pub mod design;
pub mod logistic;
mod loss;
mod quadratic;

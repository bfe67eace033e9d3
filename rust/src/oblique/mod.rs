//! Oblique trees: a clustering and a sparse tree optimised together (Gabidolla and Carreira-Perpiñán: Optimal
//! Interpretable Clustering Using Oblique Decision Trees, KDD 2022).

pub mod design;
pub mod fit;
pub mod geometry;
pub mod initial;
pub mod logistic;
mod reduced;
pub mod rows;
pub mod spherical;
pub mod tao;

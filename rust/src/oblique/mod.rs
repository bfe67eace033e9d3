//! Oblique trees: a clustering and a sparse oblique tree optimised together (Gabidolla and Carreira-Perpinan 2022).

pub mod fit;
pub mod geometry;
pub mod initial;
pub mod logistic;
pub mod tao;

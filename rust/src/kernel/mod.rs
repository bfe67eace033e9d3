//! Trees for kernel clusterings (Fleissner, Vankadara and Ghoshdastidar 2024).
//!
//! | paper | here |
//! |---|---|
//! | surrogate features phi_{i,j} | [`features::Surrogate`] |
//! | centers in feature space | [`centers::FeatureCenters`] |
//! | Kernel IMM (Algorithm 1) | [`imm::KernelImm`] |
//! | Kernel ExKMC, Kernel Expand (Algorithms 2 and 3) | [`crate::fit::fit`] on the kernel's or the labels' costs |

pub mod centers;
pub mod features;
pub mod imm;
mod node_columns;
mod translate;

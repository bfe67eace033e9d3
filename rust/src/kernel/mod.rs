//! Trees for kernel clusterings (Fleissner, Vankadara and Ghoshdastidar 2024).
//!
//! | paper | here |
//! |---|---|
//! | surrogate features phi_{i,j} | [`features::Surrogate`] |
//! | Kernel IMM (Algorithm 1) | [`imm::Base`] |
//! | Kernel ExKMC, Kernel Expand (Algorithms 2 and 3) | [`crate::fit::fit`] on the kernel's or the labels' costs |

pub mod features;
pub mod imm;

//! Kauri: binary trees grown by the gain of a kernel k-means objective, with no reference clustering.
//!
//! The objective is the sum over the clusters of S(C, C) / |C|, where the *kernel stock* S(A, B) adds up the kernel
//! values between two sets of rows. Every split sends the two children of a leaf to clusters, new or old, and moves the
//! state of all clusters, so that all open leaves are judged anew each round: there is no queue. What a cut's gain
//! needs of the leaf alone ([`stocks`]) is made once, with the leaf; what it needs of the clusters is bounded first
//! and computed only where it may decide ([`gains`]).

pub mod fit;
pub mod gains;
pub mod stocks;

//! The one error type of the crate. The bindings turn each variant into one Python exception.

use thiserror::Error;

/// What can go wrong in the core. Every message is a whole sentence a user can act on.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum Error {
    /// A value the caller chose is out of range.
    #[error("{0}")]
    Value(String),
    /// Two arrays that must agree in size do not.
    #[error("{what} has {got} {unit}, but {expected} are expected.")]
    Shape {
        /// The array's name.
        what: &'static str,
        /// Its size.
        got: usize,
        /// The size it should have.
        expected: usize,
        /// What is counted: "rows", "columns", "entries".
        unit: &'static str,
    },
    /// A tree's arrays do not describe a binary tree.
    #[error("The tree is not valid: {0}")]
    Tree(String),
    /// Memory that cannot be allocated.
    #[error("Not enough memory: {} for {what} cannot be allocated with {} to spare.", readable(*.bytes), readable(crate::memory::SPARE))]
    Memory {
        /// The size of the allocation.
        bytes: usize,
        /// What it is for: "the regrets".
        what: &'static str,
    },
    /// The caller asked to stop (Ctrl-C).
    #[error("The fit was interrupted.")]
    Interrupted,
    /// A broken invariant: our own bug.
    #[error("Internal error of treeclust_rs, please report it: {0}")]
    Internal(String),
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `Ok` if `got == expected`, else a [`Error::Shape`].
    pub fn check_len(
        what: &'static str,
        got: usize,
        expected: usize,
        unit: &'static str,
    ) -> Result<()> {
        if got == expected { Ok(()) } else { Err(Error::Shape { what, got, expected, unit }) }
    }

    /// `Ok` if there is one label per row, `n_samples` in all, and each is in `[0, k)`; else a [`Error::Shape`] or a
    /// [`Error::Value`] with the first label that is not.
    pub fn check_labels(labels: &[u32], n_samples: usize, k: usize) -> Result<()> {
        Error::check_len("labels", labels.len(), n_samples, "rows")?;
        match labels.iter().find(|&&label| label as usize >= k) {
            Some(label) => {
                Err(Error::Value(format!("Label {label} is not in the range [0, {k}).")))
            }
            None => Ok(()),
        }
    }
}

/// A number of bytes in words: "1.2 GiB".
fn readable(bytes: usize) -> String {
    const MIB: f64 = (1 << 20) as f64;
    match bytes as f64 / MIB {
        mib if mib < 1024.0 => format!("{mib:.1} MiB"),
        mib => format!("{:.1} GiB", mib / 1024.0),
    }
}

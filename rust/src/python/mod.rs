//! The bindings: the only place that names PyO3. They convert arguments, release the GIL, call the core and wrap what it
//! returns; they decide nothing.

mod convert;
mod data;
mod errors;
mod fit;
mod kauri;
mod kernel;
mod oblique;
mod run;
mod tao;
mod tree;

use pyo3::prelude::*;

/// The compiled core of treeclust_rs. Private: use the estimators of the package.
#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::data::{column_units, find_non_finite, group_sums, label_costs};
    #[pymodule_export]
    use super::fit::{FittedTree, fit_tree};
    #[pymodule_export]
    use super::kauri::fit_kauri;
    #[pymodule_export]
    use super::kernel::surrogate_features;
    #[pymodule_export]
    use super::oblique::{PyDesign, PyKept, l1_logistic};
    #[pymodule_export]
    use super::run::PyThreads;
    #[pymodule_export]
    use super::tao::{assign_rows, fit_oblique, mean_centers, spherical_kmeans};
    #[pymodule_export]
    use super::tree::{apply, apply_sparse};
}

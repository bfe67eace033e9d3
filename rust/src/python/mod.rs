//! The bindings: the only place that names PyO3. They convert arguments, release the GIL, call the core and wrap what it
//! returns; they decide nothing.

mod convert;
mod data;
mod errors;
mod fit;
mod kauri;
mod kernel;
mod oblique_tree;
mod router;
mod run;
mod tree;

use pyo3::prelude::*;

/// The compiled core of treeclust_rs. Private: use the estimators of the package.
#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::data::{column_units, find_non_finite, group_means, group_sums, label_costs};
    #[pymodule_export]
    use super::fit::{FittedTree, fit_tree};
    #[pymodule_export]
    use super::kauri::{PyFittedKauri, fit_kauri};
    #[pymodule_export]
    use super::oblique_tree::{
        FittedOblique, assign_rows, fit_oblique, mean_centers, spherical_kmeans,
    };
    #[pymodule_export]
    use super::router::PyRouter;
    #[pymodule_export]
    use super::run::PyThreads;
}

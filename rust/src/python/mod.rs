//! The bindings: the only place that names PyO3. They convert arguments, release the GIL, call the core and wrap what
//! it returns; they decide nothing. Only `treeclust_rs/_engine.py` imports the compiled module.
//!
//! | file | what crosses |
//! |---|---|
//! | `convert.rs` | arrays as tables, slices and matrices; units |
//! | `data.rs` | checks, units, label costs and sums of groups, before a fit |
//! | `fit.rs`, `kernel.rs` | threshold trees, and the surrogate features of Kernel IMM |
//! | `kauri.rs`, `regression.rs`, `oblique_tree.rs`, `local_search.rs` | the methods with engines of their own |
//! | `cltree.rs` | the tree of CLTree |
//! | `parts.rs` | fits without rows: questions and answers |
//! | `rows.rs` | rows as a table or a sparse matrix |
//! | `tree.rs`, `router.rs` | tests as arrays; a tree that routes rows |
//! | `run.rs`, `errors.rs` | threads, Ctrl-C and progress; exceptions |

mod cltree;
mod convert;
mod data;
mod errors;
mod fit;
mod kauri;
mod kernel;
mod local_search;
mod oblique_tree;
mod parts;
mod regression;
mod router;
mod rows;
mod run;
mod tree;

use pyo3::prelude::*;

/// The compiled core of treeclust_rs. Private: use the estimators of the package.
#[pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use super::cltree::{DensityTests, density_tree};
    #[pymodule_export]
    use super::data::{
        column_units, find_non_finite, first_rows, group_means, group_sums, label_costs,
        level_counts, place_codes,
    };
    #[pymodule_export]
    use super::fit::{FittedTree, fit_tree};
    #[pymodule_export]
    use super::kauri::{PyFittedKauri, fit_kauri};
    #[pymodule_export]
    use super::local_search::{PySearchedTree, search_tree};
    #[pymodule_export]
    use super::oblique_tree::{
        FittedOblique, assign_rows, fit_oblique, mean_centers, spherical_kmeans,
    };
    #[pymodule_export]
    use super::parts::{PartsTree, PyAnswer, PyGathering, PyPartsFit, PyQuestion};
    #[pymodule_export]
    use super::regression::fit_regression;
    #[pymodule_export]
    use super::router::PyRouter;
    #[pymodule_export]
    use super::run::PyThreads;
    #[pymodule_export]
    use super::tree::thresholds;
}

//! A tree as arrays, one entry per node: checks of those that come from outside, and the arrays of tests.
//!
//! | array | entry of a node |
//! |---|---|
//! | `kind` | 0 leaf, 1 threshold, 2 interval, 3 oblique, 4 levels, 5 missing |
//! | `feature` | the one column it reads; -2 where there is none |
//! | `threshold` | of threshold tests; -2 at leaves, NaN elsewhere |
//! | `lower`, `upper` | the ends of interval tests; NaN elsewhere |
//! | `children_left`, `children_right` | node ids above its own; -1 at leaves |
//! | `indptr`, `indices`, `weights`, `bias` | the terms of oblique tests, one run per node as in sparse rows |
//! | `levels_indptr`, `levels_codes` | the codes that go left at level tests, one run per node as in sparse rows |
//! | `missing_go_to_left` | whether a missing cell goes left; false at leaves, true where the test is missing |

use super::test::{LevelSet, Plane, Test};
use crate::error::{Error, Result};
use crate::table::MAX_LEVELS;

/// The weights of a tree's oblique tests as they come from outside; only oblique nodes have any.
#[derive(Debug, Clone, Copy)]
pub struct ObliqueArrays<'a> {
    /// Where the terms of each node start, and the number of all terms at the end.
    pub indptr: &'a [i64],
    /// The column of each term, ascending within a node.
    pub indices: &'a [i64],
    /// The weight of each term, not 0.
    pub weights: &'a [f64],
    /// Bias of oblique nodes.
    pub bias: &'a [f64],
}

/// The sets of a tree's tests on levels as they come from outside.
#[derive(Debug, Clone, Copy)]
pub struct LevelArrays<'a> {
    /// Where the codes of each node start, and the number of all codes at the end.
    pub indptr: &'a [i64],
    /// The codes that go left, ascending within a node.
    pub codes: &'a [i64],
}

/// A tree's arrays as they come from outside, one entry per node.
#[derive(Debug, Clone, Copy)]
pub struct TreeArrays<'a> {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique, 4 levels, 5 missing.
    pub kind: &'a [i8],
    /// Column of the test; not read where it is oblique.
    pub feature: &'a [i64],
    /// Threshold of threshold tests.
    pub threshold: &'a [f64],
    /// Lower end of interval tests.
    pub lower: &'a [f64],
    /// Upper end of interval tests.
    pub upper: &'a [f64],
    /// Left child, -1 at leaves.
    pub children_left: &'a [i64],
    /// Right child, -1 at leaves.
    pub children_right: &'a [i64],
    /// The sets; needed only if there are tests on levels.
    pub levels: Option<LevelArrays<'a>>,
    /// Whether a missing cell goes left; none: the tree refuses missing cells.
    pub missing_go_to_left: Option<&'a [bool]>,
    /// The weights; needed only if there are oblique nodes.
    pub oblique: Option<ObliqueArrays<'a>>,
}

impl TreeArrays<'_> {
    /// Checks the arrays; returns each node's test and its children, a leaf's being the leaf itself.
    pub(super) fn check(&self, n_features: usize) -> Result<(Vec<Test>, Vec<[u32; 2]>)> {
        let n = self.kind.len();
        for (what, got) in [
            ("feature", self.feature.len()),
            ("threshold", self.threshold.len()),
            ("lower", self.lower.len()),
            ("upper", self.upper.len()),
            ("children_left", self.children_left.len()),
            ("children_right", self.children_right.len()),
        ] {
            Error::check_len(what, got, n, "entries")?;
        }
        if n == 0 || n >= u32::MAX as usize {
            return Err(Error::Tree(format!("it has {n} nodes.")));
        }
        if let Some(oblique) = &self.oblique {
            oblique.check_runs(n)?;
        }
        if let Some(levels) = &self.levels {
            check_runs("levels_indptr", levels.indptr, n, levels.codes.len())?;
        }
        if let Some(sides) = self.missing_go_to_left {
            Error::check_len("missing_go_to_left", sides.len(), n, "entries")?;
        }
        let tests = (0..n).map(|i| self.test(i, n_features)).collect::<Result<Vec<_>>>()?;
        let children = self.check_children(&tests)?;
        Ok((tests, children))
    }

    /// One binary tree whose children come after their parents.
    fn check_children(&self, tests: &[Test]) -> Result<Vec<[u32; 2]>> {
        let n = tests.len();
        let mut has_parent = vec![false; n];
        has_parent[0] = true;
        let mut all = Vec::with_capacity(n);
        for (i, test) in tests.iter().enumerate() {
            let children = [self.children_left[i], self.children_right[i]];
            if *test == Test::Leaf {
                if children != [-1, -1] {
                    return Err(Error::Tree(format!("node {i} is a leaf but has children.")));
                }
                all.push([i as u32; 2]);
                continue;
            }
            for child in children {
                let inside = usize::try_from(child).ok().filter(|&c| i < c && c < n);
                match inside {
                    Some(c) if !has_parent[c] => has_parent[c] = true,
                    Some(c) => return Err(Error::Tree(format!("node {c} has two parents."))),
                    None => {
                        return Err(Error::Tree(format!(
                            "child {child} of node {i} is not in the range [{}, {n}).",
                            i + 1
                        )));
                    }
                }
            }
            all.push(children.map(|child| child as u32));
        }
        match has_parent.iter().position(|&has| !has) {
            Some(orphan) => Err(Error::Tree(format!("node {orphan} has no parent."))),
            None => Ok(all),
        }
    }

    /// The test of node `i`, checked: finite numbers, a column below `n_features`.
    fn test(&self, i: usize, n_features: usize) -> Result<Test> {
        match (self.kind[i], &self.oblique) {
            (3, Some(_)) if self.missing_go_to_left.is_some() => {
                return Err(Error::Tree(format!(
                    "node {i} is oblique, which takes no missing cells: missing_go_to_left must be none."
                )));
            }
            (3, Some(oblique)) => return oblique.test(i, n_features),
            (3, None) => {
                return Err(Error::Tree(format!(
                    "node {i} is oblique, but the tree has no weights."
                )));
            }
            (_, Some(oblique)) if oblique.indptr[i] != oblique.indptr[i + 1] => {
                return Err(Error::Tree(format!("node {i} has weights but is not oblique.")));
            }
            (kind, _) if kind != 4 && !self.codes(i).is_empty() => {
                return Err(Error::Tree(format!("node {i} has levels but does not test them.")));
            }
            (0, _) => return Ok(Test::Leaf),
            _ => {}
        }
        let feature = usize::try_from(self.feature[i]).ok().filter(|&f| f < n_features);
        let Some(feature) = feature else {
            return Err(Error::Tree(format!(
                "node {i} tests column {}, which is not in the range [0, {n_features}).",
                self.feature[i]
            )));
        };
        match self.kind[i] {
            1 if self.threshold[i].is_finite() => {
                Ok(Test::Threshold { feature, threshold: self.threshold[i] })
            }
            1 => Err(Error::Tree(format!("the threshold of node {i} is {}.", self.threshold[i]))),
            2 => {
                let (lower, upper) = (self.lower[i], self.upper[i]);
                if lower.is_finite() && upper.is_finite() && lower <= upper {
                    Ok(Test::Interval { feature, lower, upper })
                } else {
                    Err(Error::Tree(format!("the interval of node {i} is [{lower}, {upper}].")))
                }
            }
            4 | 5 if self.missing_go_to_left.is_none() => Err(Error::Tree(format!(
                "node {i} tests levels or missing cells, but the tree has no missing_go_to_left."
            ))),
            4 => Ok(Test::Levels { feature, left: self.set(i)? }),
            5 if self.missing_go_to_left.is_some_and(|goes_left| goes_left[i]) => {
                Ok(Test::Missing { feature })
            }
            5 => Err(Error::Tree(format!("node {i} sends its missing cells right."))),
            kind => Err(Error::Tree(format!("node {i} is of unknown kind {kind}."))),
        }
    }

    /// The codes of node `i`; none where it has no run.
    fn codes(&self, i: usize) -> &[i64] {
        match &self.levels {
            Some(levels) => &levels.codes[levels.indptr[i] as usize..levels.indptr[i + 1] as usize],
            None => &[],
        }
    }

    /// The set of node `i`, checked: at least one code, ascending codes below [`MAX_LEVELS`].
    fn set(&self, i: usize) -> Result<LevelSet> {
        let codes = self.codes(i);
        let complaint = if codes.is_empty() {
            format!("node {i} tests levels but has none.")
        } else if !codes.is_sorted_by(|a, b| a < b) {
            format!("the levels of node {i} are not in ascending order.")
        } else if let Some(code) = codes.iter().find(|&code| !(0..MAX_LEVELS as i64).contains(code))
        {
            format!("node {i} has the level {code}, which is not in the range [0, {MAX_LEVELS}).")
        } else {
            return Ok(codes.iter().map(|&code| code as u8).collect());
        };
        Err(Error::Tree(complaint))
    }
}

/// Whether the runs of entries of `n` nodes follow each other from the first entry to the last.
fn check_runs(what: &'static str, indptr: &[i64], n: usize, n_entries: usize) -> Result<()> {
    Error::check_len(what, indptr.len(), n + 1, "entries")?;
    if (indptr[0], indptr[n]) != (0, n_entries as i64) || !indptr.is_sorted() {
        return Err(Error::Tree(format!("its {what} does not rise from 0 to {n_entries}.")));
    }
    Ok(())
}

impl ObliqueArrays<'_> {
    /// Whether the arrays of `n` nodes fit together.
    fn check_runs(&self, n: usize) -> Result<()> {
        let n_terms = self.indices.len();
        check_runs("oblique_indptr", self.indptr, n, n_terms)?;
        Error::check_len("oblique_bias", self.bias.len(), n, "entries")?;
        Error::check_len("oblique_weights", self.weights.len(), n_terms, "entries")
    }

    /// The oblique test of node `i`, checked: at least one term, ascending columns below `n_features`, finite weights
    /// that are not 0, and a finite bias.
    fn test(&self, i: usize, n_features: usize) -> Result<Test> {
        let (start, end) = (self.indptr[i] as usize, self.indptr[i + 1] as usize);
        let (indices, weights) = (&self.indices[start..end], &self.weights[start..end]);
        let bias = self.bias[i];
        let n = n_features.min(u32::MAX as usize) as i64;
        let complaint = if indices.is_empty() {
            format!("node {i} is oblique but has no weights.")
        } else if !indices.is_sorted_by(|a, b| a < b) {
            format!("the columns of the oblique node {i} are not in ascending order.")
        } else if let Some(index) = indices.iter().find(|&index| !(0..n).contains(index)) {
            format!("node {i} tests column {index}, which is not in the range [0, {n_features}).")
        } else if let Some(weight) = weights.iter().find(|&w| !w.is_finite() || *w == 0.0) {
            format!("a weight of node {i} is {weight}.")
        } else if !bias.is_finite() {
            format!("the bias of node {i} is {bias}.")
        } else {
            let columns = indices.iter().map(|&index| index as u32);
            let weights = columns.zip(weights.iter().copied()).collect();
            return Ok(Test::Oblique(Plane { weights, bias }));
        };
        Err(Error::Tree(complaint))
    }
}

/// The arrays of a fitted tree, by the names of the Python side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestArrays {
    /// 0 leaf, 1 threshold, 2 interval, 3 oblique, 4 levels, 5 missing.
    pub kind: Vec<i8>,
    /// The one column of a test; -2 at leaves and oblique tests.
    pub feature: Vec<i64>,
    /// Of threshold tests; -2 at leaves, else NaN.
    pub threshold: Vec<f64>,
    /// Lower end of intervals, else NaN.
    pub lower: Vec<f64>,
    /// Upper end of intervals, else NaN.
    pub upper: Vec<f64>,
    /// Left child; -1 at leaves.
    pub children_left: Vec<i64>,
    /// Right child; -1 at leaves.
    pub children_right: Vec<i64>,
    /// Where the codes of each node start, and their number at the end: n_nodes + 1 entries.
    pub levels_indptr: Vec<i64>,
    /// The codes that go left at level tests, ascending within a node.
    pub levels_codes: Vec<i64>,
    /// Whether a missing cell goes left; false at leaves. None: the fit had no missing cells, and Python decides.
    pub missing_go_to_left: Option<Vec<bool>>,
    /// The terms of oblique tests.
    pub oblique: ObliqueTerms,
}

/// The weights of a fitted tree's oblique tests, by node as in a sparse matrix by rows: [`ObliqueArrays`], owned.
#[derive(Debug, Clone, PartialEq)]
pub struct ObliqueTerms {
    /// Where the terms of each node start, and their number at the end: n_nodes + 1 entries.
    pub indptr: Vec<i64>,
    /// The column of each term.
    pub indices: Vec<i64>,
    /// The weight of each term.
    pub weights: Vec<f64>,
    /// Bias of oblique nodes, else NaN: n_nodes entries.
    pub bias: Vec<f64>,
}

impl Default for ObliqueTerms {
    /// The terms of no nodes.
    fn default() -> Self {
        ObliqueTerms { indptr: vec![0], indices: vec![], weights: vec![], bias: vec![] }
    }
}

impl TestArrays {
    /// The arrays of nodes given by test and children; those of a leaf are not read.
    pub fn of<'a>(nodes: impl IntoIterator<Item = (&'a Test, [usize; 2])>) -> Self {
        let mut arrays = TestArrays { levels_indptr: vec![0], ..TestArrays::default() };
        for (test, children) in nodes {
            arrays.push(test, children);
        }
        arrays
    }

    /// The arrays as those of a tree from outside.
    pub fn view(&self) -> TreeArrays<'_> {
        let ObliqueTerms { indptr, indices, weights, bias } = &self.oblique;
        TreeArrays {
            kind: &self.kind,
            feature: &self.feature,
            threshold: &self.threshold,
            lower: &self.lower,
            upper: &self.upper,
            children_left: &self.children_left,
            children_right: &self.children_right,
            levels: Some(LevelArrays { indptr: &self.levels_indptr, codes: &self.levels_codes }),
            missing_go_to_left: self.missing_go_to_left.as_deref(),
            oblique: (!indices.is_empty()).then_some(ObliqueArrays {
                indptr,
                indices,
                weights,
                bias,
            }),
        }
    }

    /// Appends a node to every array.
    fn push(&mut self, test: &Test, children: [usize; 2]) {
        let nan = f64::NAN;
        let (kind, threshold, [lower, upper]) = match *test {
            Test::Leaf => (0, -2.0, [nan; 2]),
            Test::Threshold { threshold, .. } => (1, threshold, [nan; 2]),
            Test::Interval { lower, upper, .. } => (2, nan, [lower, upper]),
            Test::Oblique(_) => (3, nan, [nan; 2]),
            Test::Levels { .. } => (4, nan, [nan; 2]),
            Test::Missing { .. } => (5, nan, [nan; 2]),
        };
        self.kind.push(kind);
        self.feature.push(test.feature().map_or(-2, |feature| feature as i64));
        self.threshold.push(threshold);
        self.lower.push(lower);
        self.upper.push(upper);
        let [left, right] = match test {
            Test::Leaf => [-1; 2],
            _ => children.map(|child| child as i64),
        };
        self.children_left.push(left);
        self.children_right.push(right);
        for &(column, weight) in test.plane().iter().flat_map(|plane| &plane.weights) {
            self.oblique.indices.push(i64::from(column));
            self.oblique.weights.push(weight);
        }
        self.oblique.bias.push(test.plane().map_or(nan, |plane| plane.bias));
        self.oblique.indptr.push(self.oblique.indices.len() as i64);
        if let Test::Levels { left, .. } = test {
            self.levels_codes.extend(left.codes().map(i64::from));
        }
        self.levels_indptr.push(self.levels_codes.len() as i64);
    }
}

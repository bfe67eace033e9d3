//! Surrogate features of kernels against their definitions, computed without logarithms.
//!
//! Fleissner, Vankadara, Ghoshdastidar (2024): definition 3 with g(u) = e^{2 gamma u}, equation (4), equation (13),
//! appendix H. Every feature is then made unimodal: a value lower than one further from the peak takes that one's.

use ndarray::Array2;
use treeclust_rs::kernel::features::{Family, Spec, Surrogate};
use treeclust_rs::parallel::with_pool;
use treeclust_rs::table::Table;

// ---- random tables --------------------------------------------------------------------------------------------------

/// A small generator of random numbers with a fixed stream per seed.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const KINDS: [&str; 5] = ["grid", "quarters", "normal", "binary", "constant"];

fn random_column(random: &mut Random, n: usize, kind: &str) -> Vec<f64> {
    let width = 2 + random.below(7);
    let constant = random.below(5) as f64 - 2.0;
    (0..n)
        .map(|_| match kind {
            "grid" => random.below(width) as f64,
            "quarters" => (random.below(25) as f64 - 12.0) / 4.0,
            "normal" => random.normal(),
            "binary" => random.below(2) as f64,
            _ => constant,
        })
        .collect()
}

/// Up to 15 rows and 3 columns with ties, duplicate rows and constant columns.
fn random_table(random: &mut Random, not_negative: bool, may_be_far: bool) -> Array2<f64> {
    let (n, d) = (1 + random.below(15), 1 + random.below(3));
    let kind = random.below(KINDS.len() + 2);
    let columns: Vec<Vec<f64>> = (0..d)
        .map(|_| {
            let kind = match kind {
                5 => "normal", // with duplicate rows, below
                6 => random.one_of(&KINDS),
                kind => KINDS[kind],
            };
            random_column(random, n, kind)
        })
        .collect();
    let rows: Vec<usize> =
        (0..n).map(|row| if kind == 5 { random.below((n / 3).max(1)) } else { row }).collect();
    let mut x = Array2::from_shape_fn((n, d), |(i, f)| columns[f][rows[i]]);
    if not_negative {
        x.mapv_inplace(f64::abs);
    }
    if may_be_far && random.uniform() < 0.1 {
        let f = random.below(d);
        x.column_mut(f).mapv_inplace(|value| value + f64::from(1 << 20));
    }
    x
}

// ---- the definitions ------------------------------------------------------------------------------------------------

/// The unit of every column: its standard deviation, or 1.
fn scales(x: &Array2<f64>, standardise: bool) -> Vec<f64> {
    let of_column = |column: ndarray::ArrayView1<'_, f64>| {
        let deviation = column.std(0.0);
        if standardise && deviation > 0.0 { deviation } else { 1.0 }
    };
    x.columns().into_iter().map(of_column).collect()
}

fn means(x: &Array2<f64>) -> Vec<f64> {
    x.columns().into_iter().map(|column| column.sum() / column.len() as f64).collect()
}

/// 1 % of a column's range below its smallest value.
fn taylor_origins(x: &Array2<f64>) -> Vec<f64> {
    let of_column = |column: ndarray::ArrayView1<'_, f64>| {
        let (low, high) = ends(&column.to_vec());
        low - 0.01 * (high - low)
    };
    x.columns().into_iter().map(of_column).collect()
}

fn ends(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
}

fn distinct(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// e^{-size}, as a product of eight factors that underflow later; `others` are multiplied in between.
fn decay_times(size: f64, others: &[f64]) -> f64 {
    let root = (-size / 8.0).exp();
    let mut product = 1.0;
    for i in 0..others.len().max(8) {
        product *= if i < 8 { root } else { 1.0 };
        product *= others.get(i).copied().unwrap_or(1.0);
    }
    product
}

/// x^beta for the exponents of the tests.
fn power(x: f64, beta: f64) -> f64 {
    match beta {
        0.5 => x.sqrt(),
        1.0 => x,
        2.0 => x * x,
        _ => panic!("no such exponent here"),
    }
}

/// The features of one column at its values `t`, in the kernel's units: by feature, then value.
fn defined_features(family: &Family, t: &[f64], anchors: &[f64]) -> Vec<Vec<f64>> {
    let at = |f: &dyn Fn(f64) -> f64| t.iter().map(|&x| f(x)).collect::<Vec<f64>>();
    match *family {
        Family::Taylor { gamma, order } => (0..=order)
            .map(|j| {
                at(&|x| {
                    // x^j sqrt((2 gamma)^j / j!) = prod_{i = 1..j} x sqrt(2 gamma / i)
                    let factors: Vec<f64> =
                        (1..=j).map(|i| x * (2.0 * gamma / i as f64).sqrt()).collect();
                    decay_times(gamma * x * x, &factors)
                })
            })
            .collect(),
        Family::Gauss { gamma } => {
            anchors.iter().map(|a| at(&|x| decay_times(gamma * (x - a).powi(2), &[]))).collect()
        }
        Family::Laplace { gamma } => {
            anchors.iter().map(|a| at(&|x| decay_times(gamma * (x - a).abs(), &[]))).collect()
        }
        Family::Root => vec![at(&f64::sqrt)],
        Family::Intersection { beta } => {
            let z = distinct(&at(&|x| power(x, beta)));
            (0..z.len())
                .map(|j| {
                    let below = if j == 0 { 0.0 } else { z[j - 1] };
                    at(&|x| if power(x, beta) >= z[j] { (z[j] - below).sqrt() } else { 0.0 })
                })
                .collect()
        }
        Family::Chi2 { order } => (1..=order)
            .map(|j| at(&|x| (2.0 / j as f64).sqrt() * x * (j as f64 / order as f64).powf(x)))
            .collect(),
    }
}

/// Every number, or the largest of those further from the peak on its side of the (first) largest one.
fn unimodal(phi: &[f64]) -> Vec<f64> {
    let top = ends(phi).1;
    let peak = phi.iter().position(|&x| x == top).unwrap_or(0);
    (0..phi.len()).map(|i| ends(if i <= peak { &phi[..=i] } else { &phi[i..] }).1).collect()
}

fn is_unimodal(phi: &[f64]) -> bool {
    phi == unimodal(phi)
}

// ---- comparison -----------------------------------------------------------------------------------------------------

/// A table, the features to compute on it, and what belongs to them.
struct Case {
    x: Array2<f64>,
    family: Family,
    shift: Vec<f64>,
    scale: Vec<f64>,
    anchors: Vec<Vec<f64>>,
}

impl Case {
    /// With the default origin of the family and all distinct values as anchors.
    fn new(x: Array2<f64>, family: Family, standardise: bool) -> Self {
        let scale = scales(&x, standardise);
        let shift = match family {
            Family::Taylor { .. } => taylor_origins(&x),
            Family::Gauss { .. } | Family::Laplace { .. } => means(&x),
            _ => vec![0.0; x.ncols()],
        };
        let mut case = Case { x, family, shift, scale, anchors: vec![] };
        if matches!(case.family, Family::Gauss { .. } | Family::Laplace { .. }) {
            case.anchors = (0..case.x.ncols()).map(|f| case.units(f)).collect();
        }
        case
    }

    /// The distinct values of a column in the kernel's units.
    fn units(&self, f: usize) -> Vec<f64> {
        let values = distinct(&self.x.column(f).to_vec());
        values.iter().map(|value| (value - self.shift[f]) / self.scale[f]).collect()
    }

    /// All features of all rows, row-major, and the column of each feature.
    fn computed(&self, n_threads: usize) -> (Vec<f64>, Vec<usize>) {
        let anchors: Vec<&[f64]> = self.anchors.iter().map(Vec::as_slice).collect();
        let (shift, scale) = (&self.shift[..], &self.scale[..]);
        let spec = Spec { family: &self.family, shift, scale, anchors: &anchors };
        let table = Table::from_matrix(self.x.view()).unwrap();
        with_pool(n_threads, || {
            let surrogate = Surrogate::new(&table, &spec).unwrap();
            let columns: Vec<usize> = (0..surrogate.len()).map(|f| surrogate.place(f).0).collect();
            assert_eq!(surrogate.is_empty(), columns.is_empty());
            (surrogate.matrix(), columns)
        })
        .unwrap()
    }

    /// Compares all features with their definitions: to 1e-12 of each number, exactly unimodal, equal bits for one
    /// thread and three.
    fn check(&self) {
        let (matrix, columns) = self.computed(1);
        let (again, _) = self.computed(3);
        assert_eq!(bits(&matrix), bits(&again));
        let mut feature = 0;
        for f in 0..self.x.ncols() {
            let values = distinct(&self.x.column(f).to_vec());
            let anchors = self.anchors.get(f).map_or(&[][..], Vec::as_slice);
            let defined = defined_features(&self.family, &self.units(f), anchors);
            // Steps are roots of differences of powers: their squares are compared, as shares of the largest power.
            let steps = matches!(self.family, Family::Intersection { .. });
            let largest = self.units(f).last().map_or(0.0, |&x| match self.family {
                Family::Intersection { beta } => power(x, beta),
                _ => 0.0,
            });
            for phi in defined {
                let expected = unimodal(&phi);
                assert_eq!(columns[feature], f);
                let mut found = vec![f64::NAN; values.len()];
                for (row, &x) in self.x.column(f).iter().enumerate() {
                    let place = values.partition_point(|&value| value < x);
                    found[place] = matrix[row * columns.len() + feature];
                }
                assert!(is_unimodal(&found), "{:?}: {found:?}", self.family);
                for (&found, &expected) in found.iter().zip(&expected) {
                    let (error, margin) = if steps {
                        let squares = (found * found, expected * expected);
                        ((squares.0 - squares.1).abs(), 1e-12 * squares.1 + 1e-15 * largest)
                    } else {
                        ((found - expected).abs(), 1e-12 * expected.abs() + 1e-300)
                    };
                    assert!(error <= margin, "{:?}: {found} for {expected}", self.family);
                }
                feature += 1;
            }
        }
        assert_eq!(feature, columns.len());
    }
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn random_gamma(random: &mut Random) -> f64 {
    let exponent = random.below(11) as i32 - 6;
    f64::from(exponent).exp2() * random.one_of(&[1.0, 1.0, 1.0, 0.7, 1e3, 1e8])
}

fn random_family(random: &mut Random, name: &str) -> Family {
    let (gamma, order) = (random_gamma(random), 1 + random.below(7));
    match name {
        "taylor" => Family::Taylor { gamma, order },
        "gauss" => Family::Gauss { gamma },
        "laplace" => Family::Laplace { gamma },
        "root" => Family::Root,
        "intersection" => Family::Intersection { beta: random.one_of(&[1.0, 1.0, 0.5, 2.0]) },
        "chi2" => Family::Chi2 { order },
        _ => panic!("no such family"),
    }
}

#[test]
fn features_equal_the_definitions() {
    for (seed, name) in
        ["taylor", "gauss", "laplace", "root", "intersection", "chi2"].into_iter().enumerate()
    {
        for standardise in [false, true] {
            let mut random = Random(2 * seed as u64 + u64::from(standardise));
            for _ in 0..30 {
                let is_additive = matches!(name, "root" | "intersection" | "chi2");
                let x = random_table(&mut random, is_additive, !is_additive);
                let family = random_family(&mut random, name);
                Case::new(x, family, standardise).check();
            }
        }
    }
}

#[test]
fn features_of_any_gamma_equal_the_definitions() {
    let mut random = Random(100);
    let x = Array2::from_shape_fn((30, 3), |(_, f)| match f {
        0 => random.normal(),
        1 => 1e6 + random.below(9) as f64,
        _ => random.normal() / 1e4,
    });
    for gamma in [1e-12, 1e-3, 1.0, 1e3, 1e12] {
        let taylor = Family::Taylor { gamma, order: 6 };
        for family in [taylor, Family::Gauss { gamma }, Family::Laplace { gamma }] {
            Case::new(x.clone(), family, false).check();
        }
    }
}

#[test]
fn an_origin_far_below_the_data_and_few_anchors() {
    let mut random = Random(7);
    for number in 0..60 {
        let far = 10f64.powi(4 + random.below(5) as i32);
        let peak = (1 + random.below(4)) as f64;
        let x = Array2::from_shape_fn((15, 1 + number % 2), |_| {
            (random.uniform() * 1000.0).round() / 100.0
        });
        let d = x.ncols();
        let gamma = peak / (2.0 * (far + 5.0) * (far + 5.0));
        let mut case = Case::new(x.clone(), Family::Taylor { gamma, order: 4 }, false);
        case.shift = vec![-far; d];
        // Rounding of x^j exp(-gamma x^2) at gamma x^2 = j / 2 is a share of 1e-15: the tops are flat.
        case.check();
        let mut case = Case::new(x, Family::Gauss { gamma: 0.1 }, true);
        for anchors in &mut case.anchors {
            *anchors = anchors.iter().copied().step_by(4).collect();
        }
        case.check();
    }
}

#[test]
fn steps_and_anchors_are_those_of_the_columns_values() {
    let x = ndarray::array![[3.0, 10.0], [5.0, 10.0], [4.0, 30.0]];
    // Steps at 3, 4, 5 and at 10, 30.
    let steps = Case::new(x.clone(), Family::Intersection { beta: 1.0 }, false);
    let (matrix, columns) = steps.computed(1);
    assert_eq!(columns, [0, 0, 0, 1, 1]);
    let (three, ten, twenty) = (3f64.sqrt(), 10f64.sqrt(), 20f64.sqrt());
    let expected =
        [[three, 0.0, 0.0, ten, 0.0], [three, 1.0, 1.0, ten, 0.0], [three, 1.0, 0.0, ten, twenty]];
    assert_eq!(matrix, expected.concat());
    let anchored = Case::new(x.clone(), Family::Laplace { gamma: 1.0 }, true);
    assert_eq!(anchored.computed(2).1, [0, 0, 0, 1, 1]);
    let taylor = Case::new(x, Family::Taylor { gamma: 1.0, order: 2 }, false);
    assert_eq!(taylor.computed(1).1, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn wrong_sizes_are_errors() {
    let x = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
    let table = Table::from_matrix(x.view()).unwrap();
    for (shift, scale) in [(&[0.0][..], &[1.0, 1.0][..]), (&[0.0, 0.0], &[1.0, 1.0, 1.0])] {
        let spec = Spec { family: &Family::Root, shift, scale, anchors: &[] };
        let message = Surrogate::new(&table, &spec).unwrap_err().to_string();
        assert!(message.contains("entries"), "{message}");
    }
}

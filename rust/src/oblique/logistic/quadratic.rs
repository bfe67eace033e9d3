//! The quadratic model of a Newton step with an l1 penalty, minimised by coordinate descent and conjugate gradients.
//!
//! minimise slope' x + 1/2 x' H x + sum_j penalty_j |from_j + x_j|, H with a unit diagonal. Sweeps over the coordinates
//! (soft thresholding, one after the other) find out which of them are 0; where columns are much alike they converge
//! slowly, and conjugate gradients on the face of the other coordinates take over, up to where the first ones become 0.
//! Both keep the slope at the current point up to date, so that a coordinate that does not move costs nothing.
//!
//! Cost: k operations for each coordinate that moves, k^2 for a gradient, over k coordinates; the number of rows does
//! not enter.

/// slope' x + 1/2 x' H x + sum_j penalty_j |from_j + x_j| over x, where H has a unit diagonal.
pub struct Model<'a> {
    /// H, row-major.
    pub curvature: &'a [f64],
    /// The slope at x = 0.
    pub slope: Vec<f64>,
    /// Where the step starts.
    pub from: Vec<f64>,
    /// The penalty.
    pub penalty: Vec<f64>,
}

/// Most sweeps over all coordinates.
const MAX_SWEEPS: usize = 100;
/// Sweeps over the coordinates that are not 0, before conjugate gradients take over.
const MAX_INNER_SWEEPS: usize = 20;
/// Most faces crossed one after the other.
const MAX_FACES: usize = 50;
/// Most conjugate gradients in one go; they end when some in a row add less than a share of what all gained: this one,
/// per unit of the precision asked for.
const MAX_GRADIENTS: usize = 100;
const MIN_GAIN_SHARE: f64 = 0.01;
const MAX_LITTLE_GAINS: usize = 5;
/// Least bend of a direction, per square of its length.
const MIN_BEND: f64 = 1e-14;

impl Model<'_> {
    /// The minimising from + x, and by how much the value there lies below that at x = 0; about `precision` times as
    /// much may be left to gain.
    ///
    /// Coordinate descent finds out which coordinates are 0, but converges slowly where columns are much alike;
    /// conjugate gradients on the face of the others do not.
    pub fn minimise(mut self, precision: f64) -> (Vec<f64>, f64) {
        let all: Vec<usize> = (0..self.from.len()).collect();
        let mut gained = 0.0;
        let mut settled = false;
        for _ in 0..MAX_SWEEPS {
            let gain = self.sweep(&all);
            gained += gain;
            if settled && gain <= 0.1 * precision * gained {
                break;
            }
            let active: Vec<usize> = all.iter().copied().filter(|&j| self.from[j] != 0.0).collect();
            settled = self.settle(&active, &mut gained, precision);
            for _ in 0..MAX_FACES {
                if settled {
                    break;
                }
                let (gain, inside) = self.cross_face(MIN_GAIN_SHARE * precision);
                gained += gain;
                if inside {
                    break;
                }
            }
        }
        (self.from, gained)
    }

    /// Sweeps over some coordinates; returns whether less than the precision is left to gain.
    /// Gains of sweeps fall geometrically in the end; what is to come is estimated from the last two.
    fn settle(&mut self, coordinates: &[usize], gained: &mut f64, precision: f64) -> bool {
        let (mut last, mut last_rate) = (f64::INFINITY, 1.0f64);
        for sweep in 0..MAX_INNER_SWEEPS {
            let gain = self.sweep(coordinates);
            *gained += gain;
            // The gains of a slow direction fall geometrically, once those of the fast ones are gone.
            let rate = gain / last;
            let to_come = gain / (1.0 - rate.max(last_rate).min(1.0));
            if gain == 0.0 || to_come <= precision * *gained {
                return true;
            }
            (last, last_rate) = (gain, if sweep > 0 { rate } else { 0.0 });
        }
        false
    }

    /// Minimises over one coordinate after the other, keeping `slope` up to date; returns the decrease.
    /// The minimum over one coordinate is a soft threshold: H has a unit diagonal.
    fn sweep(&mut self, coordinates: &[usize]) -> f64 {
        let width = self.from.len();
        let mut gain = 0.0;
        for &j in coordinates {
            let (old, slope, penalty) = (self.from[j], self.slope[j], self.penalty[j]);
            let target = old - slope;
            let new = if target.abs() > penalty { target - penalty.copysign(target) } else { 0.0 };
            let step = new - old;
            if step == 0.0 {
                continue;
            }
            gain -= step * (slope + 0.5 * step) + penalty * (new.abs() - old.abs());
            self.from[j] = new;
            add(&mut self.slope, step, &self.curvature[j * width..][..width]);
        }
        gain
    }

    /// H x, x being 0 but for some coordinates.
    fn image(&self, coordinates: &[usize], x: &[f64]) -> Vec<f64> {
        let width = self.from.len();
        let mut image = vec![0.0; width];
        for (&j, &x) in coordinates.iter().zip(x) {
            add(&mut image, x, &self.curvature[j * width..][..width]);
        }
        image
    }

    /// Conjugate gradients over the coordinates that are not 0, then the best of several lengths of the way they found;
    /// returns the decrease and whether no coordinate becomes 0 on the way.
    fn cross_face(&mut self, least_share: f64) -> (f64, bool) {
        let width = self.from.len();
        let face: Vec<usize> = (0..width).filter(|&j| self.from[j] != 0.0).collect();
        let of_face = |j: &usize| -(self.slope[*j] + self.penalty[*j].copysign(self.from[*j]));
        let downhill: Vec<f64> = face.iter().map(of_face).collect();
        let mut rest = downhill.clone();
        let mut direction = rest.clone();
        let (mut x, mut slope_change) = (vec![0.0; face.len()], vec![0.0; width]);
        let mut size = dot(&rest, &rest);
        let (mut promised, mut little) = (0.0, 0);
        for _ in 0..MAX_GRADIENTS.min(2 * face.len()) {
            let image = self.image(&face, &direction);
            let bend: f64 = face.iter().zip(&direction).map(|(&j, d)| image[j] * d).sum();
            // Almost no bend counts as none: the step ends where a coordinate becomes 0.
            let step = size / bend.max(MIN_BEND * dot(&direction, &direction));
            if !step.is_finite() {
                break;
            }
            add(&mut x, step, &direction);
            add(&mut slope_change, step, &image);
            promised += step * size;
            little = if step * size > least_share * promised { 0 } else { little + 1 };
            if little == MAX_LITTLE_GAINS {
                break;
            }
            for (rest, &j) in rest.iter_mut().zip(&face) {
                *rest -= step * image[j];
            }
            let now = dot(&rest, &rest);
            for (direction, rest) in direction.iter_mut().zip(&rest) {
                *direction = rest + now / size * *direction;
            }
            size = now;
        }
        // All the way, or past half as many ends each time, down to the first: coordinates that become 0 stay there.
        let end = |(&j, x): (&usize, &f64)| -self.from[j] / x;
        let mut ends: Vec<f64> =
            face.iter().zip(&x).map(end).filter(|end| (0.0..1.0).contains(end)).collect();
        ends.sort_unstable_by(f64::total_cmp);
        let inside = ends.is_empty();
        ends.push(1.0);
        let (mut best, mut moves, mut image) = (0.0, vec![], vec![]);
        let mut at = ends.len() - 1;
        loop {
            let length = ends[at];
            let stop = |(j, x): (&usize, &f64)| {
                let end = end((j, x));
                if end >= 0.0 && end <= length { -self.from[*j] } else { length * x }
            };
            let stopped: Vec<f64> = face.iter().zip(&x).map(stop).collect();
            let change = match at {
                0 => slope_change.iter().map(|change| length * change).collect(),
                _ => self.image(&face, &stopped),
            };
            let bend: f64 = face.iter().zip(&stopped).map(|(&j, x)| change[j] * x).sum();
            let gain = dot(&downhill, &stopped) - 0.5 * bend;
            if gain > best {
                (best, moves, image) = (gain, stopped, change);
            }
            if at == 0 {
                break;
            }
            at /= 2;
        }
        if moves.is_empty() {
            return (0.0, true);
        }
        for (&j, x) in face.iter().zip(&moves) {
            self.from[j] += x;
        }
        add(&mut self.slope, 1.0, &image);
        (best, inside)
    }
}

/// sums += factor * x.
fn add(sums: &mut [f64], factor: f64, x: &[f64]) {
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum += factor * x;
    }
}

/// x . y.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Correlations of columns that share most of what they hold.
    fn alike(width: usize) -> Vec<f64> {
        let of_cell = |p: usize, q: usize| {
            if p == q { 1.0 } else { 0.999_99 - 1e-9 * (p * q) as f64 }
        };
        (0..width * width).map(|i| of_cell(i / width, i % width)).collect()
    }

    #[test]
    fn the_minimum_is_where_no_coordinate_can_gain() {
        for width in [1, 2, 5, 40] {
            let curvature = alike(width);
            let slope: Vec<f64> =
                (0..width).map(|j| ((j * 7 + 3) % 11) as f64 / 5.0 - 1.1).collect();
            let from: Vec<f64> = (0..width).map(|j| (j % 3) as f64 - 1.0).collect();
            let penalty: Vec<f64> = (0..width).map(|j| 0.01 * (1 + j % 4) as f64).collect();
            let value = |to: &[f64]| {
                let x: Vec<f64> = to.iter().zip(&from).map(|(to, from)| to - from).collect();
                let bend: f64 =
                    (0..width).map(|p| x[p] * dot(&curvature[p * width..][..width], &x)).sum();
                let size: f64 = to.iter().zip(&penalty).map(|(w, penalty)| penalty * w.abs()).sum();
                dot(&slope, &x) + 0.5 * bend + size
            };
            let model = Model {
                curvature: &curvature,
                slope: slope.clone(),
                from: from.clone(),
                penalty: penalty.clone(),
            };
            let (to, gain) = model.minimise(0.01);
            assert!((value(&from) - value(&to) - gain).abs() <= 1e-9 * (1.0 + gain), "{width}");
            // However long plain coordinate descent goes on, it finds next to nothing more.
            let mut model = Model { curvature: &curvature, slope, from: from.clone(), penalty };
            let all: Vec<usize> = (0..width).collect();
            let best: f64 = (0..200_000).map(|_| model.sweep(&all)).sum();
            assert!(gain >= 0.98 * best, "{width}: {gain} {best}");
        }
    }
}

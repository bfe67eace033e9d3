//! Where a cut is placed: the shortest decimal in the middle half of the gap between two neighbouring values.
//!
//! A printed tree shows 41.5, not 41.49999999999999, and the printed threshold is the one that routes.
//!
//! | formula | here |
//! |---|---|
//! | a < b, the values beside the gap | `a`, `b` |
//! | q1 = (3a + b)/4 and q3 = (a + 3b)/4, the quarters | `q1`, `q3` |
//! | mid = (a + b)/2 | `mid` |
//!
//! The threshold is 0 if q1 <= 0 <= q3, else the decimal of fewest digits in [q1, q3] whose nearest double lies
//! strictly between a and b; of several the one nearest to mid, then the lower one. In `f64` the quarters would round,
//! cross or overflow, so they are computed exactly, as big integers. A placement takes some microseconds.

use num_bigint::BigInt;
use num_bigint::Sign;

/// The threshold for a cut between `a` (left) and `b` (right), `a < b`, both finite: `a <= theta < b`, and
/// `a < theta` unless the two are adjacent doubles.
pub fn between(a: f64, b: f64) -> f64 {
    shortest_decimal(a, b).unwrap_or(a)
}

/// The lower end of an interval whose outside neighbour is `a` and whose smallest inside value is `b`:
/// `a < lo <= b`, and `lo = b` only where the two are adjacent doubles.
pub fn lower_end(a: f64, b: f64) -> f64 {
    shortest_decimal(a, b).unwrap_or(b)
}

/// `x = mantissa * 2^exponent`, exactly.
fn decompose(x: f64) -> (i64, i32) {
    let bits = x.to_bits();
    let biased = ((bits >> 52) & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (mantissa, exponent) =
        if biased == 0 { (fraction, -1074) } else { (fraction | (1 << 52), biased - 1075) };
    (if x < 0.0 { -mantissa } else { mantissa }, exponent)
}

/// The decimal of the rule above; none if a and b are adjacent doubles.
fn shortest_decimal(a: f64, b: f64) -> Option<f64> {
    debug_assert!(a < b && a.is_finite() && b.is_finite());
    // Everything in units of 2^unit, times 4: a and b are integers, the quarters too.
    let ((ma, ea), (mb, eb)) = (decompose(a), decompose(b));
    let unit = ea.min(eb);
    let (a4, b4) = (BigInt::from(ma) << (ea - unit + 2), BigInt::from(mb) << (eb - unit + 2));
    let quarter = (&b4 - &a4) / 4; // exact
    let (q1, q3): (BigInt, BigInt) = (&a4 + &quarter, &b4 - &quarter); // exact
    let mid: BigInt = (&a4 + &b4) / 2; // exact
    if q1.sign() != Sign::Plus && q3.sign() != Sign::Minus {
        return Some(0.0);
    }
    // Mirror to the positive side, so that digits are counted on a positive number.
    let negative = mid.sign() == Sign::Minus;
    let (low, high, mid) = if negative { (-q3, -q1, -mid) } else { (q1, q3, mid) };
    let shift = unit - 2; // value = integer * 2^shift
    let magnitude = ((a.abs() / 2.0 + b.abs() / 2.0).log10().floor() as i32).clamp(-330, 310);
    for digits in 1..=17 {
        // Candidates are multiples of 10^power. Two magnitudes are tried below, so an estimate of the
        // decimal exponent that is off by one costs nothing.
        let mut found: Option<(BigInt, f64)> = None;
        let power = exact_magnitude(&mid, shift, magnitude) - (digits - 1);
        let (numerator, denominator) = scale(&mid, shift, power);
        let floor = &numerator / &denominator;
        let exact = &floor * &denominator == numerator;
        let above = if exact { floor.clone() } else { &floor + 1 };
        for candidate in [floor, above] {
            // In [low, high]?
            let (l, dl) = scale(&low, shift, power);
            let (h, dh) = scale(&high, shift, power);
            if &candidate * &dl < l || &candidate * &dh > h {
                continue;
            }
            let text = format!("{}{candidate}e{power}", if negative { "-" } else { "" });
            let Ok(theta) = text.parse::<f64>() else { continue };
            if !(a < theta && theta < b) {
                continue;
            }
            let scaled = &candidate * &denominator;
            let distance =
                if scaled > numerator { scaled - &numerator } else { &numerator - scaled };
            // "Nearest, then the lower": floor comes first, which is the lower one unless mirrored.
            let better = found
                .as_ref()
                .is_none_or(|(best, _)| distance < *best || (distance == *best && negative));
            if better {
                found = Some((distance, theta));
            }
        }
        if let Some((_, theta)) = found {
            return Some(theta);
        }
    }
    None
}

/// The largest t with 10^t <= value * 2^shift, corrected from an estimate.
fn exact_magnitude(value: &BigInt, shift: i32, estimate: i32) -> i32 {
    let at_least = |t: i32| {
        let (numerator, denominator) = scale(value, shift, t);
        numerator >= denominator
    };
    let mut t = estimate;
    while !at_least(t) {
        t -= 1;
    }
    while at_least(t + 1) {
        t += 1;
    }
    t
}

/// `value * 2^shift / 10^power` as a fraction of two integers.
fn scale(value: &BigInt, shift: i32, power: i32) -> (BigInt, BigInt) {
    let mut numerator = value.clone();
    let mut denominator = BigInt::from(1);
    if shift >= 0 {
        numerator <<= shift;
    } else {
        denominator <<= -shift;
    }
    let ten = BigInt::from(10).pow(power.unsigned_abs());
    if power >= 0 {
        denominator *= ten;
    } else {
        numerator *= ten;
    }
    (numerator, denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_decimal_of_the_middle_half_is_taken() {
        let cases = [
            (0.0, 1.0, 0.5),
            (41.2, 41.8, 41.5),
            (0.5, 1.0, 0.7),
            (40.0, 44.0, 42.0),
            (1.0, 2.0, 1.5),
            (10.0, 20.0, 15.0), // one digit: 10 and 20 lie outside the middle half
            (10.0, 30.0, 20.0),
            (-1.0, 2.0, 0.0),
            (-2.0, -1.0, -1.5),
            (-30.0, -10.0, -20.0),
            (0.109375, 0.140625, 0.12), // 0.12 and 0.13 are as near: the lower
            (-0.140625, -0.109375, -0.13),
            (1e8, 1e8 + 1.0, 100_000_000.5),
            (f64::MIN, f64::MAX, 0.0),
            (1e308, f64::MAX, 1.4e308),
            (5e-324, 2e-323, 1e-323),
        ];
        for (a, b, expected) in cases {
            assert_eq!(between(a, b), expected, "between {a} and {b}");
        }
        assert!(between(-0.5, 0.5).is_sign_positive());
    }

    #[test]
    fn adjacent_doubles_leave_only_their_ends() {
        for a in [1.0, -1.0, 0.0, 1e300, 5e-324, 123.456] {
            let b = f64::next_up(a);
            assert_eq!(between(a, b).to_bits(), a.to_bits());
            assert_eq!(lower_end(a, b).to_bits(), b.to_bits());
        }
    }

    #[test]
    fn the_threshold_always_separates() {
        let mut state = 1u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let a = f64::from_bits(state);
            let b = f64::from_bits(state.wrapping_add(1 + (state >> 50)));
            if !a.is_finite() || !b.is_finite() || a == b {
                continue;
            }
            let (a, b) = if a < b { (a, b) } else { (b, a) };
            let theta = between(a, b);
            assert!(a <= theta && theta < b, "{a} {theta} {b}");
        }
    }
}

//! Sums as bytes: the same ones for the same value, however it was added up.

use super::{ExactSums, N_WINDOWS, Total, WINDOW};

/// Bytes of a digit.
const DIGIT: usize = WINDOW as usize / 8;
/// So many bytes of a sum, or more, are counted in a byte of their own.
const MANY: usize = 62;
/// Set in the first byte if the place of a sum's lowest byte is above 255.
const IS_HIGH: u8 = 1 << 7;

impl ExactSums {
    /// Appends the sum at `place`.
    pub fn encode(&self, place: usize, out: &mut Vec<u8>) {
        self.total(&[place], &[]).encode(out);
    }

    /// Adds a sum that [`ExactSums::encode`] wrote to the one at `place`, and takes its bytes from the front; none if these
    /// are no such sum.
    pub fn decode(&mut self, place: usize, bytes: &mut &[u8]) -> Option<()> {
        let head = *bytes.split_off_first()?;
        let Some(code) = usize::from(head & !IS_HIGH).checked_sub(1) else {
            return (head == 0).then_some(());
        };
        let (mut n_bytes, is_negative) = (code / 2, code % 2 == 1);
        let low = usize::from(*bytes.split_off_first()?) + (usize::from(head & IS_HIGH) << 1);
        if n_bytes == MANY {
            n_bytes += usize::from(*bytes.split_off_first()?);
        }
        let (first, next) = (low / DIGIT, (low + n_bytes).div_ceil(DIGIT));
        if next > N_WINDOWS + 2 {
            return None;
        }
        let of_sum = bytes.split_off(..n_bytes)?;
        let mut add = |window: usize, units: i128| {
            let last = window.min(N_WINDOWS - 1);
            self.counters_of(last)[place] += units << (WINDOW as usize * (window - last));
        };
        for window in first..next {
            let byte = |i: usize| match (DIGIT * window + i).checked_sub(low) {
                None => 0,
                Some(at) => of_sum.get(at).copied().unwrap_or(if is_negative { 255 } else { 0 }),
            };
            let digit = u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)]);
            add(window, digit.into());
        }
        if is_negative {
            add(next, -1);
        }
        Some(())
    }
}

impl Total {
    /// Appends nothing but a zero byte for 0; else a byte for the sign and the number of bytes, one for the place of the
    /// lowest, and the bytes that are needed.
    fn encode(mut self, out: &mut Vec<u8>) {
        while self.above != 0 && self.above != -1 {
            self.digits[self.next] = self.above as u32;
            self.above >>= WINDOW;
            self.next += 1;
        }
        let digits = &self.digits[self.first..self.next];
        let bytes: Vec<u8> = digits.iter().flat_map(|digit| digit.to_le_bytes()).collect();
        let start = bytes.iter().take_while(|&&byte| byte == 0).count();
        let repeated = self.above as u8;
        let end = bytes.iter().rposition(|&byte| byte != repeated).map_or(start, |last| last + 1);
        let bytes = &bytes[start..end];
        if bytes.is_empty() && self.above == 0 {
            return out.push(0);
        }
        let low = DIGIT * self.first + start;
        let code = 1 + 2 * bytes.len().min(MANY) as u8 + u8::from(self.above < 0);
        out.extend([code | if low > 255 { IS_HIGH } else { 0 }, low as u8]);
        if bytes.len() >= MANY {
            out.push((bytes.len() - MANY) as u8);
        }
        out.extend(bytes);
    }
}

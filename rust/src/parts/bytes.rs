//! Questions, answers and checkpoints as bytes: little-endian, with a version, and read with checks.

use crate::error::{Error, Result};
use crate::exact::ExactSums;

/// What all such bytes begin with: a name and a version.
const MAGIC: &[u8; 4] = b"tcp\x0d";

/// Writes bytes.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// `kind`: of what is written.
    pub fn new(kind: u8) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.push(kind);
        Writer(bytes)
    }

    pub fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    pub fn u64(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }

    /// A number in as many bytes as it needs, seven bits in each.
    pub fn short(&mut self, mut x: u64) {
        while x >= 1 << 7 {
            self.u8(x as u8 | 1 << 7);
            x >>= 7;
        }
        self.u8(x as u8);
    }

    pub fn len(&mut self, n: usize) {
        self.u64(n as u64);
    }

    pub fn f64(&mut self, x: f64) {
        self.u64(x.to_bits());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.len(bytes.len());
        self.0.extend(bytes);
    }

    /// Numbers whose count the reader knows.
    pub fn numbers(&mut self, numbers: &[f64]) {
        numbers.iter().for_each(|&x| self.f64(x));
    }

    /// Numbers and their count.
    pub fn f64s(&mut self, numbers: &[f64]) {
        self.len(numbers.len());
        self.numbers(numbers);
    }

    /// Sums whose count the reader knows.
    pub fn sums(&mut self, sums: &ExactSums, places: std::ops::Range<usize>) {
        places.for_each(|place| sums.encode(place, &mut self.0));
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads what a [`Writer`] wrote.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// `what` the bytes should be: "a question".
    ///
    /// # Errors
    /// [`Error::Value`] if they are of another kind or version.
    pub fn new(bytes: &'a [u8], kind: u8, what: &'static str) -> Result<Self> {
        let mut reader = Reader { rest: bytes, what };
        let magic = reader.take(MAGIC.len())?;
        if magic != MAGIC || reader.u8()? != kind {
            return Err(reader.broken());
        }
        Ok(reader)
    }

    /// The error of bytes that are not what they should be.
    pub fn broken(&self) -> Error {
        Error::Value(format!(
            "These bytes are not {} of this version of treeclust_rs, or not all of it.",
            self.what
        ))
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        self.rest.split_off(..n).ok_or_else(|| self.broken())
    }

    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            x @ 0..=1 => Ok(x == 1),
            _ => Err(self.broken()),
        }
    }

    pub fn u64(&mut self) -> Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| self.broken())?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// What [`Writer::short`] wrote.
    pub fn short(&mut self) -> Result<u64> {
        let mut x = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            x |= u64::from(byte & !(1 << 7)) << shift;
            if byte < 1 << 7 {
                return Ok(x);
            }
        }
        Err(self.broken())
    }

    /// A number that counts or points to something: below 2^32.
    pub fn index(&mut self) -> Result<usize> {
        let x = self.u64()?;
        u32::try_from(x).map(|x| x as usize).map_err(|_| self.broken())
    }

    /// The count of things that take at least `bytes` each.
    pub fn len(&mut self, bytes: usize) -> Result<usize> {
        let n = self.index()?;
        if n.saturating_mul(bytes) > self.rest.len() { Err(self.broken()) } else { Ok(n) }
    }

    pub fn f64(&mut self) -> Result<f64> {
        Ok(f64::from_bits(self.u64()?))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let n = self.len(1)?;
        self.take(n)
    }

    pub fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|_| self.broken())
    }

    pub fn numbers(&mut self, n: usize) -> Result<Vec<f64>> {
        if n.saturating_mul(8) > self.rest.len() {
            return Err(self.broken());
        }
        (0..n).map(|_| self.f64()).collect()
    }

    pub fn f64s(&mut self) -> Result<Vec<f64>> {
        let n = self.len(8)?;
        self.numbers(n)
    }

    /// Adds sums to those at the places.
    pub fn sums(&mut self, sums: &mut ExactSums, places: std::ops::Range<usize>) -> Result<()> {
        for place in places {
            sums.decode(place, &mut self.rest).ok_or_else(|| self.broken())?;
        }
        Ok(())
    }

    /// `n` sums.
    pub fn new_sums(&mut self, n: usize) -> Result<ExactSums> {
        if n > self.rest.len() {
            return Err(self.broken()); // each takes a byte
        }
        let mut sums = ExactSums::new(n);
        self.sums(&mut sums, 0..n)?;
        Ok(sums)
    }

    /// # Errors
    /// [`Error::Value`] if there are more bytes.
    pub fn end(self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.broken()) }
    }
}

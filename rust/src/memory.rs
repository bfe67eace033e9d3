//! Memory that may not be there: an allocation that fails is an [`Error::Memory`], never the end of the process.
//!
//! Rust aborts a process whose allocation fails. So every vector whose length grows with the rows (n), with n k or with
//! n^2 is made by a function of this module, which asks first whether the memory can be had. If not, it unwinds with the
//! [`Error`] as its payload: allocations stand deep inside closures of rayon and methods of criteria, and rayon passes
//! an unwinding on to the caller. [`catch`] turns it back into a `Result`; the bindings run everything inside it.
//!
//! Vectors of k, d or n_nodes numbers are made as usual. They take little and find room all the same: a large vector is
//! made only if `SPARE` bytes remain beside it, which the small ones and the unwinding can use.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Bytes that must remain for small vectors when a large one is made. More than 32 MiB: the C library takes such a block
/// from the system and returns it at once, and does not change how it allocates others.
pub(crate) const SPARE: usize = 33 << 20;

/// Bytes from which a vector is large. Smaller ones are not worth the few microseconds of asking.
const LARGE: usize = 256 << 10;

/// Held from the question whether there is room to the allocation, so that no other thread takes the room in between.
static ALLOCATING: Mutex<()> = Mutex::new(());

/// Runs `work`; an allocation of this module that fails inside is returned as an error.
///
/// # Errors
/// What `work` returns, [`Error::Memory`], and [`Error::Internal`] if `work` panics.
pub fn catch<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        Err(payload.downcast().map_or_else(
            |_| Error::Internal("a thread panicked.".into()),
            |error: Box<Error>| *error,
        ))
    })
}

/// A block of `bytes`, none if it cannot be had.
fn block(bytes: usize) -> Option<Vec<u8>> {
    let mut block = Vec::new();
    let room = block.try_reserve_exact(bytes);
    // Without a use of the block the compiler may leave the allocation out.
    std::hint::black_box(&block);
    room.is_ok().then_some(block)
}

/// Whether `bytes` can be allocated.
pub(crate) fn is_room(bytes: usize) -> bool {
    block(bytes).is_some()
}

/// [`SPARE`] bytes that nobody else can have while this is held.
pub(crate) struct Spare {
    _block: Vec<u8>,
}

impl Spare {
    /// None if the bytes cannot be had.
    pub(crate) fn hold() -> Option<Self> {
        block(SPARE).map(|block| Spare { _block: block })
    }
}

/// Whether `bytes` can be allocated, for `what` ("the regrets"), and `SPARE` bytes remain.
///
/// # Errors
/// [`Error::Memory`] if not.
pub fn check(bytes: usize, what: &'static str) -> Result<()> {
    if is_room(bytes.saturating_add(SPARE)) { Ok(()) } else { Err(Error::Memory { bytes, what }) }
}

/// Makes vectors of `len` items in all. `make` allocates them, and takes no time otherwise.
fn within<T, V>(len: usize, what: &'static str, make: impl FnOnce() -> V) -> V {
    let bytes = len.saturating_mul(size_of::<T>());
    if bytes < LARGE {
        return make();
    }
    let _guard = ALLOCATING.lock().unwrap_or_else(PoisonError::into_inner);
    match check(bytes, what) {
        Ok(()) => make(),
        Err(error) => resume_unwind(Box::new(error)),
    }
}

/// Makes sure of room for vectors of `len` items in all, which the standard library or another crate makes next.
pub fn room<T>(len: usize, what: &'static str) {
    within::<T, _>(len, what, || ());
}

/// A vector of `len` zeros.
pub fn zeros<T: Clone + Default>(len: usize, what: &'static str) -> Vec<T> {
    within::<T, _>(len, what, || vec![T::default(); len])
}

/// A vector of `len` times the same value.
pub fn filled<T: Clone>(value: T, len: usize, what: &'static str) -> Vec<T> {
    let mut vector = reserved(len, what);
    vector.resize(len, value);
    vector
}

/// An empty vector with room for `len` items.
pub fn reserved<T>(len: usize, what: &'static str) -> Vec<T> {
    within::<T, _>(len, what, || Vec::with_capacity(len))
}

/// Makes room for `more` items beside those of a vector: twice its length at least, as `push` does.
pub fn reserve<T>(vector: &mut Vec<T>, more: usize, what: &'static str) {
    if vector.capacity() - vector.len() < more {
        let len = (vector.len() + more).max(2 * vector.len());
        within::<T, _>(len, what, || vector.reserve_exact(len - vector.len()));
    }
}

/// The items of an iterator that knows their number.
pub fn collected<T>(items: impl ExactSizeIterator<Item = T>, what: &'static str) -> Vec<T> {
    let mut vector = reserved(items.len(), what);
    vector.extend(items);
    vector
}

/// A copy of a slice.
pub fn copied<T: Clone>(items: &[T], what: &'static str) -> Vec<T> {
    collected(items.iter().cloned(), what)
}

/// Appends an item.
#[inline]
pub fn push<T>(vector: &mut Vec<T>, item: T, what: &'static str) {
    reserve(vector, 1, what);
    vector.push(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOO_MUCH: usize = 1 << 46;

    #[test]
    fn what_cannot_be_allocated_is_an_error_of_its_size() {
        let error = catch(|| Ok(zeros::<f64>(TOO_MUCH, "the regrets"))).unwrap_err();
        assert_eq!(error, Error::Memory { bytes: 8 * TOO_MUCH, what: "the regrets" });
        assert_eq!(
            error.to_string(),
            "Not enough memory: 524288.0 GiB for the regrets cannot be allocated with 33.0 MiB to spare."
        );
        let mut some = vec![1u8];
        let more = catch(|| {
            reserve(&mut some, usize::MAX - 1, "bytes");
            Ok(())
        });
        assert!(more.is_err());
        assert!(catch(|| Ok(reserved::<u64>(usize::MAX, "numbers"))).is_err());
    }

    #[test]
    fn vectors_are_those_of_the_standard_library() {
        let n = LARGE; // bytes: large ones
        assert_eq!(zeros::<u8>(n, "x"), vec![0; n]);
        assert_eq!(filled(7u8, n, "x"), vec![7; n]);
        assert_eq!(collected(0..n as u32, "x"), (0..n as u32).collect::<Vec<_>>());
        assert_eq!(copied(&[1, 2], "x"), [1, 2]);
        let mut pushed = vec![];
        (0..n).for_each(|i| push(&mut pushed, i, "x"));
        assert_eq!(pushed, (0..n).collect::<Vec<_>>());
        assert!(matches!(catch(|| -> Result<()> { panic!("of a test") }), Err(Error::Internal(_))));
    }
}

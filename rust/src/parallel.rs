//! Threads: local pools, sums in a fixed order, and a way to stop.
//!
//! Work that adds floating-point numbers is cut into pieces that do not depend on the number of threads, each
//! summed by one thread in row order, and the pieces are combined in index order: the same bits for any `n_jobs`.
//!
//! Work is shared out by [`map`]: the pool's threads take piece after piece, and the caller waits for the last of them.
//! Threads that have nothing to do look for work a while before they sleep (`LINGER`).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory;

/// Rows that one task adds up. Fixed: the order of the additions does not depend on the number of threads.
const ROWS_PER_BLOCK: usize = 4096;

/// Cells and terms that the calling thread reads by itself: about what it takes to start threads.
pub(crate) const MAX_WORK_OF_CALLER: usize = 1 << 16;

/// Bytes of a thread's stack.
const STACK: usize = 2 << 20;

/// Starts a pool of `n_threads` threads, at least one.
///
/// A thread that finds no memory for what the system keeps about it ends the process, and the C library may give the
/// first thread all there is, 64 MiB for its small vectors. So threads start one after the other, each after a check,
/// and `memory::Spare` is held until all of them run.
///
/// # Errors
/// [`Error::Memory`] if there is no room for the threads, [`Error::Value`] if they cannot be started for another reason.
pub fn pool(n_threads: usize) -> Result<rayon::ThreadPool> {
    let n_threads = n_threads.max(1);
    let no_room =
        Error::Memory { bytes: n_threads.saturating_mul(STACK), what: "the stacks of threads" };
    let spare = memory::Spare::hold().ok_or_else(|| no_room.clone())?;
    let mut has_room = true;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .spawn_handler(|thread| {
            has_room = memory::is_room(STACK + memory::SPARE);
            if !has_room {
                return Err(std::io::ErrorKind::OutOfMemory.into());
            }
            let (started, wait) = std::sync::mpsc::channel();
            std::thread::Builder::new().stack_size(STACK).spawn(move || {
                // The receiver waits until this arrives.
                let _ = started.send(());
                thread.run();
            })?;
            wait.recv().map_err(std::io::Error::other)
        })
        .build();
    let pool = pool.map_err(|error| match has_room {
        false => no_room,
        true => Error::Value(format!(
            "{n_threads} threads cannot be started: {error}. Set n_jobs lower."
        )),
    })?;
    pool.broadcast(|_| ());
    drop(spare);
    Ok(pool)
}

/// Runs `work` on a [`pool`] of its own.
///
/// # Errors
/// As [`pool`].
pub fn with_pool<T: Send>(n_threads: usize, work: impl FnOnce() -> T + Send) -> Result<T> {
    pool(n_threads).map(|pool| pool.install(work))
}

/// Returns the number of threads of the current pool.
pub fn n_threads() -> usize {
    rayon::current_num_threads()
}

/// Returns what `work` makes of each item, in their order; every item is a task of its own.
///
/// For pieces of work of a microsecond or more. Rayon's iterators are compiled anew at each place that uses one, into
/// five to ten kilobytes; this takes a tenth of it.
pub fn map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    map_some(items, 1, work)
}

/// [`map`] of work that may fail: the results, or the error of the first item in order that has one.
///
/// # Errors
/// What `work` returns. All items are worked on all the same.
pub fn try_map<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    try_map_some(items, 1, work)
}

/// [`try_map`] whose tasks are `at_a_time` neighbouring items or more.
///
/// # Errors
/// As [`try_map`].
pub fn try_map_some<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    at_a_time: usize,
    work: impl Fn(I) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    map_some(items, at_a_time, work).into_iter().collect()
}

/// [`map`] whose tasks are `at_a_time` neighbouring items or more.
pub fn map_some<I: Send, T: Send>(
    items: impl IntoIterator<Item = I>,
    at_a_time: usize,
    work: impl Fn(I) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    for_each_index(slots.len(), at_a_time, &|i| {
        let mut slot = slots[i].lock().unwrap_or_else(PoisonError::into_inner);
        slot.1 = slot.0.take().map(&work);
    });
    let result = |slot: Mutex<(Option<I>, Option<T>)>| {
        slot.into_inner().unwrap_or_else(PoisonError::into_inner).1
    };
    slots.into_iter().filter_map(result).collect()
}

/// The vector of `of(0)`, .., `of(len - 1)`. Tasks are `at_a_time` neighbouring entries.
pub fn collect<T: Clone + Default + Send>(
    len: usize,
    at_a_time: usize,
    what: &'static str,
    of: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut all: Vec<T> = memory::zeros(len, what);
    map(all.chunks_mut(at_a_time).enumerate(), |(chunk, all)| {
        for (i, entry) in all.iter_mut().enumerate() {
            *entry = of(chunk * at_a_time + i);
        }
    });
    all
}

/// How many neighbouring rows, `least` or more, a task takes so that `n` rows are shared out evenly. Depends on the
/// number of threads: for what comes out the same however the rows are cut.
pub fn even_share(n: usize, least: usize) -> usize {
    const TASKS_PER_THREAD: usize = 4;
    let n_threads = n_threads();
    let most = (n / least.max(1)).clamp(1, TASKS_PER_THREAD * n_threads);
    let n_tasks = if most > n_threads { most / n_threads * n_threads } else { most };
    n.div_ceil(n_tasks).max(1)
}

/// Runs `work` on 0, .., n - 1, `at_a_time` of them or fewer a task. Each thread begins at a place of its own, the same
/// one in pass after pass over the same rows, and helps the others when it has done its share.
fn for_each_index(n: usize, at_a_time: usize, work: &(dyn Fn(usize) + Sync)) {
    let n_shares = n_threads().min(n.div_ceil(at_a_time));
    if n_shares <= 1 {
        return (0..n).for_each(work);
    }
    // Of each share the next index, and where it ends.
    let share = |i: usize| (AtomicUsize::new(n * i / n_shares), n * (i + 1) / n_shares);
    let shares: Vec<(AtomicUsize, usize)> = (0..n_shares).map(share).collect();
    let n_done = AtomicUsize::new(0);
    let work_from = |first: usize| {
        for (next, end) in shares[first..].iter().chain(&shares[..first]) {
            loop {
                let start = next.fetch_add(at_a_time, Ordering::Relaxed);
                let stop = (start + at_a_time).min(*end);
                if start >= stop {
                    break;
                }
                (start..stop).for_each(work);
                n_done.fetch_add(stop - start, Ordering::Release);
            }
        }
    };
    let work_from = &work_from;
    rayon::scope(|scope| {
        let caller = rayon::current_thread_index();
        for first in 1..n_shares {
            scope.spawn(move |_| {
                work_from(first);
                if rayon::current_thread_index() != caller && !LINGERS.get() {
                    rayon::spawn(linger);
                }
            });
        }
        work_from(0);
        let since = Instant::now();
        while n_done.load(Ordering::Acquire) < n && since.elapsed() < LINGER {
            pause();
        }
    });
}

/// How long a thread without work looks for some before it sleeps. Rayon's look for a few microseconds. A fit is hundreds of
/// short pieces of parallel work with less than this between them, and to wake a thread takes as long as many of them do.
const LINGER: Duration = Duration::from_micros(100);

thread_local! {
    /// Whether this thread is in [`linger`].
    static LINGERS: Cell<bool> = const { Cell::new(false) };
}

/// Does what work the pool has until there was none for [`LINGER`].
fn linger() {
    if LINGERS.replace(true) {
        return;
    }
    let mut since = Instant::now();
    while since.elapsed() < LINGER {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => since = Instant::now(),
            _ => pause(),
        }
    }
    LINGERS.set(false);
}

/// Waits for part of a microsecond; longer if the core has other threads to run.
fn pause() {
    (0..16).for_each(|_| std::hint::spin_loop());
    std::thread::yield_now();
}

/// Returns the sum over `rows` of vectors of `width` numbers, in blocks of fixed size: `add(row, sums)` adds one row.
pub fn sum_rows(rows: &[u32], width: usize, add: impl Fn(u32, &mut [f64]) + Sync) -> Vec<f64> {
    let sum_block = |block: &[u32]| {
        let mut sums = vec![0.0; width];
        for &row in block {
            add(row, &mut sums);
        }
        sums
    };
    if rows.len() <= ROWS_PER_BLOCK {
        return sum_block(rows);
    }
    memory::room::<f64>(rows.len().div_ceil(ROWS_PER_BLOCK) * width, "the sums of rows");
    let blocks = map(rows.chunks(ROWS_PER_BLOCK), sum_block);
    let mut total = vec![0.0; width];
    for block in &blocks {
        for (t, x) in total.iter_mut().zip(block) {
            *t += x;
        }
    }
    total
}

/// The progress of a long fit, and whether it must stop. Shared with the thread that waits for it.
#[derive(Debug, Default)]
pub struct Monitor {
    stop: AtomicBool,
    n_leaves: AtomicUsize,
    last_gain: Mutex<f64>,
}

impl Monitor {
    /// Makes the fit stop at its next check.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Checks whether the fit may go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once [`Monitor::stop`] was called.
    pub fn check(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Records the number of leaves and the gain of the last split.
    pub fn report(&self, n_leaves: usize, gain: f64) {
        self.n_leaves.store(n_leaves, Ordering::Relaxed);
        if let Ok(mut last) = self.last_gain.lock() {
            *last = gain;
        }
    }

    /// Returns the number of leaves and the gain of the last split.
    pub fn progress(&self) -> (usize, f64) {
        let gain = self.last_gain.lock().map_or(f64::NAN, |gain| *gain);
        (self.n_leaves.load(Ordering::Relaxed), gain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_same_bits_for_any_number_of_threads() {
        let rows: Vec<u32> = (0..50_000).collect();
        let add = |row: u32, sums: &mut [f64]| sums[row as usize % 3] += 1.0 / f64::from(row + 1);
        let one = with_pool(1, || sum_rows(&rows, 3, add)).unwrap();
        let three = with_pool(3, || sum_rows(&rows, 3, add)).unwrap();
        assert_eq!(
            one.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            three.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let squares: Vec<usize> = (0..1000).map(|i| i * i).collect();
        for n_threads in [1, 3] {
            for at_a_time in [1, 7, 1000, 5000] {
                let found = with_pool(n_threads, || map_some(0..1000, at_a_time, |i| i * i));
                assert_eq!(found.unwrap(), squares);
                let found = with_pool(n_threads, || collect(1000, at_a_time, "x", |i| i * i));
                assert_eq!(found.unwrap(), squares);
            }
            let mut entries = [1, 2, 3];
            let old = with_pool(n_threads, || map(&mut entries, |x| std::mem::replace(x, 9)));
            assert_eq!((old.unwrap(), entries), (vec![1, 2, 3], [9; 3]));
        }
        assert!(map(0..0, |i| i).is_empty());
    }

    #[test]
    fn the_error_of_the_first_item_that_has_one_is_returned() {
        let of = |limit: usize| {
            move |i: usize| if i < limit { Ok(i) } else { Err(Error::Value(i.to_string())) }
        };
        for n_threads in [1, 3] {
            let found =
                with_pool(n_threads, || (try_map(0..9, of(9)), try_map(0..9, of(4)))).unwrap();
            assert_eq!(found, (Ok((0..9).collect()), Err(Error::Value("4".into()))));
        }
    }

    #[test]
    fn every_item_is_worked_on_once_also_inside_of_others() {
        for n_threads in [1, 2, 5] {
            let found = with_pool(n_threads, || {
                map(0..40, |i| map_some(0..i * i, 3, |j| j).into_iter().sum::<usize>())
            });
            let expected: Vec<usize> = (0..40).map(|i| (0..i * i).sum()).collect();
            assert_eq!(found.unwrap(), expected);
        }
    }

    #[test]
    fn rows_are_shared_out_evenly() {
        let shares = |n, least| with_pool(3, || even_share(n, least)).unwrap();
        // A multiple of the threads where there are as many tasks, at most four a thread.
        assert_eq!([0, 1, 100, 299, 350].map(|n| shares(n, 100)), [1, 1, 100, 150, 117]);
        assert_eq!([500, 600, 3_000_000].map(|n| shares(n, 100)), [167, 100, 250_000]);
    }

    #[test]
    fn an_unwinding_reaches_the_caller() {
        let of = |i: usize| memory::filled(0u8, i << 46, "the bytes of a thread").len();
        let found = memory::catch(|| with_pool(2, || map(0..64, of)));
        assert!(matches!(found, Err(Error::Memory { what: "the bytes of a thread", .. })));
    }

    #[test]
    fn no_threads_are_one() {
        assert_eq!(pool(0).unwrap().current_num_threads(), 1);
    }

    #[test]
    fn a_stopped_monitor_says_so() {
        let monitor = Monitor::default();
        assert_eq!(monitor.check(), Ok(()));
        monitor.stop();
        assert_eq!(monitor.check(), Err(Error::Interrupted));
    }
}

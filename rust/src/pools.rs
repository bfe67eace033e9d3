//! Thread pools that outlive the call they were made for.
//!
//! A fit calls the core several times. Threads that stay keep their CPU and their memory from call to call:
//! half the page faults of threads started anew, and hardly a migration.

use std::mem::{forget, take};
use std::process;
use std::sync::{Mutex, MutexGuard};

use rayon::ThreadPool;

use crate::error::Result;
use crate::parallel::pool;

/// Most pools that wait for work, each of another size.
const MOST: usize = 4;

static IDLE: Mutex<Idle> = Mutex::new(Idle { owner: 0, pools: Vec::new() });

/// Pools without work; the one used last comes last.
struct Idle {
    /// The process that started the threads. A forked child has the pools, but none of their threads.
    owner: u32,
    pools: Vec<ThreadPool>,
}

/// The idle pools of this process; nothing if another thread holds them, or held them when this process was
/// forked.
fn idle() -> Option<MutexGuard<'static, Idle>> {
    let mut idle = IDLE.try_lock().ok()?;
    if idle.owner != process::id() {
        idle.owner = process::id();
        forget(take(&mut idle.pools));
    }
    Some(idle)
}

/// Does `work` with a pool of `n_threads` threads that nobody else uses meanwhile, and keeps it for later.
///
/// # Errors
/// [`Error::Internal`](crate::error::Error::Internal) if threads cannot be started.
pub fn with_kept_pool<T>(n_threads: usize, work: impl FnOnce(&ThreadPool) -> T) -> Result<T> {
    let of_this_size = |pool: &ThreadPool| pool.current_num_threads() == n_threads.max(1);
    let waiting = idle().and_then(|mut idle| {
        let at = idle.pools.iter().position(of_this_size)?;
        Some(idle.pools.remove(at))
    });
    let pool = waiting.map_or_else(|| pool(n_threads), Ok)?;
    let result = work(&pool);
    if let Some(mut idle) = idle() {
        idle.pools.retain(|other| !of_this_size(other));
        if idle.pools.len() == MOST {
            idle.pools.remove(0);
        }
        idle.pools.push(pool);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_one_pool_of_a_size_waits_and_no_more_than_the_most() {
        let nested = with_kept_pool(2, |outer| {
            with_kept_pool(2, |inner| (outer.current_num_threads(), inner.current_num_threads()))
        });
        assert_eq!(nested, Ok(Ok((2, 2))));
        for n_threads in 1..=MOST + 2 {
            with_kept_pool(n_threads, |pool| assert_eq!(pool.current_num_threads(), n_threads))
                .unwrap();
        }
        let sizes: Vec<usize> =
            idle().unwrap().pools.iter().map(ThreadPool::current_num_threads).collect();
        assert_eq!(sizes, [3, 4, 5, 6]);
    }
}

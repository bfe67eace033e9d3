//! Runs core work without the GIL, on a local thread pool, so that Ctrl-C can stop it.
//!
//! The calling thread waits for the result. While it waits it checks for signals every [`POLL`] and reports progress
//! every [`REPORT`]; both take the GIL for a moment. A signal stops the core through its [`Monitor`], and the call
//! returns once the core has. A panic of the core, or memory that is not there, becomes an [`Error`].

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{Monitor, pool};

/// How often the waiting thread checks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);
/// How often progress is reported.
const REPORT: Duration = Duration::from_millis(500);

/// Threads that the calls of one fit share: started by the first call, ended with the object. New threads for every
/// call would allocate their first memory each time; threads that outlive a fit wake on the core they ran on last,
/// which may be the same for all. Made by `_base/fit_rows.py`.
#[pyclass(frozen, name = "Threads", module = "treeclust_rs._core")]
pub struct PyThreads {
    n_jobs: usize,
    // Started by the first call: threads that have work at once are put on cores of their own.
    pool: Mutex<Option<Arc<rayon::ThreadPool>>>,
}

#[pymethods]
impl PyThreads {
    /// `n_jobs` threads, at least one.
    #[new]
    fn new(n_jobs: usize) -> Self {
        PyThreads { n_jobs, pool: Mutex::new(None) }
    }

    /// Number of threads.
    #[getter]
    fn n_jobs(&self) -> usize {
        self.n_jobs
    }
}

/// Where a call runs: on a number of threads of its own, or on those of a fit.
#[derive(FromPyObject)]
pub enum Jobs<'py> {
    /// Threads of this call alone.
    Number(usize),
    /// The threads of a fit.
    Threads(PyRef<'py, PyThreads>),
}

impl Jobs<'_> {
    /// The pool of the threads, started if it is not running.
    ///
    /// # Errors
    /// [`Error::Internal`] if the threads cannot be started.
    fn pool(&self) -> Result<Arc<rayon::ThreadPool>> {
        match self {
            Jobs::Number(n_jobs) => pool(*n_jobs).map(Arc::new),
            Jobs::Threads(threads) => {
                let mut shared = threads.pool.lock().unwrap_or_else(PoisonError::into_inner);
                let pool = match shared.take() {
                    Some(pool) => pool,
                    None => Arc::new(pool(threads.n_jobs)?),
                };
                Ok(shared.insert(pool).clone())
            }
        }
    }
}

/// Runs `work` on this thread if it `is_small`, else as [`run`] does. Small work must not ask for other threads.
///
/// # Errors
/// As [`run`].
pub fn run_or_here<T: Send>(
    py: Python<'_>,
    is_small: bool,
    jobs: &Jobs<'_>,
    monitor: &Monitor,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    if is_small {
        return Ok(py.detach(|| memory::catch(work))?);
    }
    run(py, jobs, monitor, None, work)
}

/// Runs `work` on `jobs` while this thread waits, checks for signals and calls `progress(n_leaves, gain)`.
///
/// # Errors
/// What `work` returns, `KeyboardInterrupt`, or what `progress` raises.
pub fn run<T: Send>(
    py: Python<'_>,
    jobs: &Jobs<'_>,
    monitor: &Monitor,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    let pool = jobs.pool()?;
    memory::check(0, "a fit")?;
    py.detach(|| {
        pool.in_place_scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move |_| {
                // The receiver waits until this arrives.
                let _ = sender.send(memory::catch(work));
            });
            let mut raised: Option<PyErr> = None;
            let mut reported = Instant::now();
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(result) => return raised.map_or_else(|| result.map_err(PyErr::from), Err),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Error::Internal("a thread was lost.".into()).into());
                    }
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let due = progress.as_ref().filter(|_| reported.elapsed() >= REPORT);
                        let checked = Python::attach(|py| {
                            py.check_signals()?;
                            if let Some(progress) = due {
                                reported = Instant::now();
                                progress.call1(py, monitor.progress())?;
                            }
                            Ok(())
                        });
                        if let Err(error) = checked {
                            monitor.stop();
                            raised = Some(error);
                        }
                    }
                }
            }
        })
    })
}

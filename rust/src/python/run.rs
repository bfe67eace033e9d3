//! Work without the GIL, on a local thread pool, that Ctrl-C can stop.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::parallel::{Monitor, pool};

/// How often the waiting thread looks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);
/// How often progress is told.
const TELL: Duration = Duration::from_millis(500);

/// Runs `work` on `n_jobs` threads while this thread waits, looks for signals and tells progress to
/// `progress(n_leaves, gain)`.
pub fn run<T: Send>(
    py: Python<'_>,
    n_jobs: usize,
    monitor: &Monitor,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce() -> Result<T> + Send,
) -> PyResult<T> {
    py.detach(|| {
        pool(n_jobs)?.in_place_scope(|scope| {
            let (sender, receiver) = channel();
            scope.spawn(move |_| {
                let result = catch_unwind(AssertUnwindSafe(work))
                    .unwrap_or_else(|_| Err(Error::Internal("a thread panicked.".into())));
                // The receiver waits until this arrives.
                let _ = sender.send(result);
            });
            let mut raised: Option<PyErr> = None;
            let mut told = Instant::now();
            loop {
                match receiver.recv_timeout(POLL) {
                    Ok(result) => return raised.map_or_else(|| result.map_err(PyErr::from), Err),
                    Err(RecvTimeoutError::Disconnected) => {
                        return Err(Error::Internal("a thread was lost.".into()).into());
                    }
                    Err(RecvTimeoutError::Timeout) if raised.is_some() => {}
                    Err(RecvTimeoutError::Timeout) => {
                        let tell = progress.as_ref().filter(|_| told.elapsed() >= TELL);
                        let looked = Python::attach(|py| {
                            py.check_signals()?;
                            if let Some(progress) = tell {
                                told = Instant::now();
                                progress.call1(py, monitor.progress())?;
                            }
                            Ok(())
                        });
                        if let Err(error) = looked {
                            monitor.stop();
                            raised = Some(error);
                        }
                    }
                }
            }
        })
    })
}

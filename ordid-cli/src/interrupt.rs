//! Ctrl-C, and SIGTERM: work ends at its next safe point, and a second one ends the process at once.

use std::{future::Future, process, sync::Arc};

use tokio::sync::watch;

use crate::failure::{COULD_NOT, Failure};

/// Tells whether the user wants the work to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Arc<watch::Receiver<bool>>);

impl Interrupt {
    /// Whether the work is to end.
    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is.
    pub(crate) async fn wait(&self) {
        let mut receiver = watch::Receiver::clone(&self.0);
        // An error would be that nobody listens to signals any more, at the end of the program.
        if receiver.wait_for(|is_set| *is_set).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs work that looks at its [`Interrupt`] at its safe points.
///
/// # Errors
///
/// Returns the error of the work, or says that there are no threads or signals.
pub(crate) fn run<T, F: Future<Output = Result<T, Failure>>>(
    work: impl FnOnce(Interrupt) -> F,
) -> Result<T, Failure> {
    let cannot = |error| Failure::could_not(format_args!("the runtime cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(cannot)?;
    runtime.block_on(async {
        let (sender, receiver) = watch::channel(false);
        let mut terminate = terminations().map_err(cannot)?;
        tokio::spawn(async move {
            terminate.next().await;
            // Nobody may be listening.
            let _ = sender.send(true);
            terminate.next().await;
            process::exit(COULD_NOT.into());
        });
        work(Interrupt(Arc::new(receiver))).await
    })
}

/// Runs work that can be dropped at any point: it reads, or its transaction is rolled back.
///
/// # Errors
///
/// Returns the error of the work, or says that it was interrupted.
pub(crate) fn run_droppable<T, F: Future<Output = Result<T, Failure>>>(
    work: impl FnOnce() -> F,
) -> Result<T, Failure> {
    run(|interrupt| async move {
        tokio::select! {
            done = work() => done,
            () = interrupt.wait() => Err(Failure::could_not("interrupted; nothing was changed")),
        }
    })
}

#[cfg(unix)]
struct Terminations {
    interrupts: tokio::signal::unix::Signal,
    terminations: tokio::signal::unix::Signal,
}

#[cfg(unix)]
fn terminations() -> std::io::Result<Terminations> {
    use tokio::signal::unix::{SignalKind, signal};

    Ok(Terminations {
        interrupts: signal(SignalKind::interrupt())?,
        terminations: signal(SignalKind::terminate())?,
    })
}

#[cfg(unix)]
impl Terminations {
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupts.recv() => {}
            _ = self.terminations.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Terminations;

#[cfg(not(unix))]
fn terminations() -> std::io::Result<Terminations> {
    Ok(Terminations)
}

#[cfg(not(unix))]
impl Terminations {
    async fn next(&mut self) {
        // An error would be that there are no signals: then none comes.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

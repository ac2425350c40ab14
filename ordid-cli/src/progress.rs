//! Progress on stderr, of whatever takes more than a second.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How long work may take before it shows its progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two lines where there is no terminal.
const PERIOD: Duration = Duration::from_secs(30);

/// A bar that appears after a second, if stderr is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    is_shown: bool,
    /// Ends the lines when it is dropped.
    _lines: Option<Sender<()>>,
}

impl Progress {
    /// Begins work of so many steps; 0 if nobody knows how many.
    pub(crate) fn new(what: &str, steps: u64) -> Self {
        let bar = match steps {
            0 => ProgressBar::no_length(),
            steps => ProgressBar::new(steps),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.set_style(Self::style(steps));
        bar.set_message(what.to_owned());
        Self {
            bar,
            begun: Instant::now(),
            is_shown: false,
            _lines: None,
        }
    }

    /// Writes a line every half minute where stderr is no terminal, such as a file of a job that takes hours.
    pub(crate) fn with_lines(self) -> Self {
        match io::stderr().is_terminal() {
            true => self,
            false => self.with_lines_to(PERIOD, io::stderr()),
        }
    }

    fn with_lines_to(mut self, period: Duration, mut to: impl Write + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel();
        let bar = self.bar.clone();
        thread::spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(period) {
                let rows = match bar.position() {
                    0 => String::new(),
                    rows => format!(", {rows} rows"),
                };
                // If stderr is closed, there is nobody to tell.
                let _ = writeln!(
                    to,
                    "ordid: {}{rows}, {} s",
                    bar.message(),
                    bar.elapsed().as_secs()
                );
            }
        });
        self._lines = Some(sender);
        self
    }

    /// Begins a part of the work, of so many steps if that is known.
    pub(crate) fn begin(&self, what: &str, steps: Option<u64>) {
        match steps {
            Some(steps) => self.bar.set_length(steps),
            None => self.bar.unset_length(),
        }
        self.bar.set_style(Self::style(steps.unwrap_or(0)));
        self.bar.reset();
        self.bar.set_message(what.to_owned());
    }

    fn style(steps: u64) -> ProgressStyle {
        let template = match steps {
            0 => "{msg} {spinner} {human_pos} ({rate})",
            _ => "{msg} {wide_bar} {human_pos}/{human_len} ({rate}, {eta} left)",
        };
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        // indicatif's own rate has four digits behind the point.
        let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec());
        };
        style.with_key("rate", rate)
    }

    /// Says that so many more steps are done.
    pub(crate) fn add(&mut self, steps: u64) {
        self.bar.inc(steps);
        if !self.is_shown && self.begun.elapsed() >= PATIENCE {
            self.is_shown = true;
            if io::stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
        }
    }

    /// Writes something else while the bar is away.
    pub(crate) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// Says what is being done now.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&all).into_owned()
        }

        fn wait_for(&self, part: &str) {
            let begun = Instant::now();
            while !self.text().contains(part) {
                assert!(begun.elapsed() < Duration::from_secs(20), "{}", self.text());
                thread::sleep(Duration::from_millis(5));
            }
        }
    }

    #[test]
    fn lines_are_written_while_work_runs_and_end_with_it() {
        let lines = Lines::default();
        let mut progress =
            Progress::new("move", 0).with_lines_to(Duration::from_millis(10), lines.clone());
        progress.begin("keys", Some(100));
        lines.wait_for("ordid: keys, ");
        progress.add(40);
        lines.wait_for("ordid: keys, 40 rows, ");
        progress.begin("check", None);
        lines.wait_for("ordid: check, ");
        progress.finish();
        // One may be under way.
        thread::sleep(Duration::from_millis(100));
        let ended = lines.text();
        thread::sleep(Duration::from_millis(100));
        assert_eq!(lines.text(), ended);
    }
}

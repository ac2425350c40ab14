//! Progress on stderr, of whatever takes more than a second.

use std::{
    fmt,
    io::{self, IsTerminal as _},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How long work may take before it shows its progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar that appears after a second, if stderr is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    is_shown: bool,
}

impl Progress {
    /// Begins work of so many steps; 0 if nobody knows how many.
    pub(crate) fn new(what: &str, steps: u64) -> Self {
        let bar = match steps {
            0 => ProgressBar::no_length(),
            steps => ProgressBar::new(steps),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = match steps {
            0 => "{msg} {spinner} {human_pos} ({rate})",
            _ => "{msg} {wide_bar} {human_pos}/{human_len} ({rate}, {eta} left)",
        };
        let style = ProgressStyle::with_template(template).expect("the template is fixed");
        // indicatif's own rate has four digits behind the point.
        let rate = |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec());
        };
        bar.set_style(style.with_key("rate", rate));
        bar.set_message(what.to_owned());
        Self {
            bar,
            begun: Instant::now(),
            is_shown: false,
        }
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

    /// Says what is being done now.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

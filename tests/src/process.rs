//! What the standard library does not offer of processes: `fork`, and signals.

#![allow(unsafe_code, reason = "fork has no safe form")]

use std::{
    io::{self, PipeReader, PipeWriter, Read, Write},
    process,
};

use rustix::process::{Pid, WaitOptions, WaitStatus};

/// What a process can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// To stand still.
    Stop,
    /// To go on.
    Continue,
    /// To end where it is.
    Kill,
}

/// Signals a program that this process has started. One that has ended gets nothing.
///
/// # Panics
///
/// If the system refuses.
pub fn signal(program: &mut process::Child, signal: Signal) {
    // As long as nobody has waited for it, and only its owner can, the number is no other process's.
    if program.try_wait().expect("a child's state").is_none() {
        send(Pid::from_child(program), signal);
    }
}

/// `pid` is a child's that was not waited for.
fn send(pid: Pid, signal: Signal) {
    use rustix::process::Signal as Number;

    let number = match signal {
        Signal::Stop => Number::STOP,
        Signal::Continue => Number::CONT,
        Signal::Kill => Number::KILL,
    };
    rustix::process::kill_process(pid, number).expect("kill");
}

/// A forked child, and the pipe that it writes its answer to.
///
/// Dropping it kills the child: a test that fails leaves none behind.
pub struct Child {
    pid: Pid,
    answer: PipeReader,
    /// Its number may be another process's from then on.
    was_waited_for: bool,
}

/// Forks; the child runs `work`, writes what it returns to its parent, and exits without running
/// anything of the parent's: no destructors, no test harness.
///
/// The child may allocate: glibc and musl keep their allocators whole over a fork.
///
/// # Panics
///
/// If the system refuses a pipe or a process.
pub fn fork(work: impl FnOnce() -> Vec<u8>) -> Child {
    fork_writing(|pipe| pipe.write_all(&work()))
}

/// As [`fork`], for an answer that the child writes piece by piece and the parent reads so.
///
/// # Panics
///
/// If the system refuses a pipe or a process.
pub fn fork_writing(work: impl FnOnce(&mut PipeWriter) -> io::Result<()>) -> Child {
    let (read, write) = io::pipe().expect("a pipe");
    // SAFETY: the child touches only its own memory, the pipe, and `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", io::Error::last_os_error()),
        0 => {
            drop(read);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut write = write;
                work(&mut write)
            }));
            let code = i32::from(!matches!(outcome, Ok(Ok(()))));
            // SAFETY: always sound; leaves the parent's buffers and handlers alone.
            unsafe { libc::_exit(code) }
        }
        pid => Child {
            pid: Pid::from_raw(pid).expect("a process id"),
            answer: read,
            was_waited_for: false,
        },
    }
}

/// Gives the next child of this process a namespace of its own, in which its number is 1. Returns whether the system lets
/// it: root, or a user who may have a namespace of users. The process must have one thread.
pub fn begin_process_namespace() -> bool {
    #[cfg(target_os = "linux")]
    {
        let begins = |namespaces| {
            // SAFETY: always sound; there is no pointer in it.
            unsafe { libc::unshare(namespaces) == 0 }
        };
        begins(libc::CLONE_NEWPID) || begins(libc::CLONE_NEWUSER | libc::CLONE_NEWPID)
    }
    #[cfg(not(target_os = "linux"))]
    false
}

impl Child {
    /// Returns the child's process id.
    pub fn pid(&self) -> libc::pid_t {
        self.pid.as_raw_pid()
    }

    /// Signals the child, which is not waited for: what it has written can still be read.
    ///
    /// # Panics
    ///
    /// If the system refuses.
    pub fn signal(&self, signal: Signal) {
        send(self.pid, signal);
    }

    /// Waits for the child and returns the rest of its answer.
    ///
    /// # Panics
    ///
    /// If the child failed or was killed.
    pub fn join(mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        self.answer
            .read_to_end(&mut answer)
            .expect("the pipe of the child");
        let exit = self.wait().and_then(|status| status.exit_status());
        assert_eq!(exit, Some(0), "the child failed");
        answer
    }

    /// Waits for the child's end, once. `None` if the system has no such child.
    fn wait(&mut self) -> Option<WaitStatus> {
        self.was_waited_for = true;
        let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
        waited.ok().flatten().map(|(_, status)| status)
    }
}

impl Read for Child {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.answer.read(buffer)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.was_waited_for {
            send(self.pid, Signal::Kill);
            self.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        sync::mpsc,
        thread,
        time::Duration,
    };

    use super::*;

    #[test]
    fn a_program_that_is_stopped_answers_when_it_goes_on() {
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut to, mut from) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        let (heard, hear) = mpsc::channel();
        let reader = thread::spawn(move || {
            let mut byte = [0];
            while from.read_exact(&mut byte).is_ok() {
                heard.send(byte[0]).unwrap();
            }
        });
        to.write_all(b"a").unwrap();
        assert_eq!(hear.recv(), Ok(b'a'));
        signal(&mut cat, Signal::Stop);
        to.write_all(b"b").unwrap();
        assert!(hear.recv_timeout(Duration::from_millis(200)).is_err());
        signal(&mut cat, Signal::Continue);
        assert_eq!(hear.recv(), Ok(b'b'));

        signal(&mut cat, Signal::Kill);
        assert!(!cat.wait().unwrap().success());
        reader.join().unwrap();
        // It has ended, and its number may be another's.
        signal(&mut cat, Signal::Kill);
    }

    #[test]
    fn what_a_killed_child_has_written_is_still_there() {
        let mut child = fork_writing(|pipe| {
            pipe.write_all(b"written")?;
            loop {
                thread::sleep(Duration::from_secs(600));
            }
        });
        let mut first = [0];
        child.read_exact(&mut first).unwrap();
        child.signal(Signal::Kill);
        let mut rest = Vec::new();
        child.read_to_end(&mut rest).unwrap();
        assert_eq!((first, &*rest), ([b'w'], &b"ritten"[..]));
    }
}

//! Real processes made by `fork`, which the standard library does not offer.

#![allow(unsafe_code, reason = "fork and waitpid have no safe form")]

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{FromRawFd, OwnedFd},
};

/// A forked child, and the pipe that it writes its answer to.
///
/// Dropping it kills the child: a test that fails leaves none behind.
pub struct Child {
    pid: libc::pid_t,
    answer: File,
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
pub fn fork_writing(work: impl FnOnce(&mut File) -> io::Result<()>) -> Child {
    let mut ends = [0; 2];
    // SAFETY: `ends` is a valid array of two integers, as pipe(2) wants.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "pipe");
    // SAFETY: pipe(2) has just opened both and nobody else owns them.
    let [read, write] = ends.map(|end| File::from(unsafe { OwnedFd::from_raw_fd(end) }));
    // SAFETY: the child touches only its own memory, the pipe, and `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork: {}", std::io::Error::last_os_error()),
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
        pid => Child { pid, answer: read },
    }
}

impl Child {
    /// Returns the child's process id.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
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
        let pid = self.pid;
        let status = self.wait();
        assert_eq!(status, (pid, 0), "the child failed");
        answer
    }

    /// Waits for the child's end, once; the pid is zero from then on.
    fn wait(&mut self) -> (libc::pid_t, libc::c_int) {
        let mut status = 0;
        // SAFETY: `status` is valid, and `pid` is a child that was not waited for.
        let waited = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        self.pid = 0;
        (waited, status)
    }
}

impl Read for Child {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.answer.read(buffer)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: `pid` is a child that was not waited for, so nobody else has the number.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }
}

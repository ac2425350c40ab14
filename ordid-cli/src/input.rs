//! Keys that a user gives: as arguments, as lines of a file, or as lines of stdin.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
};

use crate::failure::Failure;

/// The longest line that is read. A key has 100 characters at most.
const MAX_LINE: u64 = 4_096;

/// Opens a file, or stdin by the name `-`.
///
/// # Errors
///
/// The file cannot be opened.
pub(crate) fn open(name: &str) -> Result<Box<dyn BufRead + Send>, Failure> {
    const BUFFER: usize = 1 << 18;

    if name == "-" {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin())));
    }
    match File::open(name) {
        Ok(file) => Ok(Box::new(BufReader::with_capacity(BUFFER, file))),
        Err(error) => Err(Failure::could_not(format_args!(
            "cannot open {name:?}: {error}"
        ))),
    }
}

/// Returns the keys among the arguments; the lines of stdin for a single `-`.
///
/// # Errors
///
/// See [`lines`].
pub(crate) fn keys(arguments: Vec<String>) -> Result<Keys, Failure> {
    match &arguments[..] {
        [only] if only == "-" => Ok(Keys::Lines(lines(open("-")?))),
        _ => Ok(Keys::Arguments(arguments.into_iter())),
    }
}

/// Keys of a user.
pub(crate) enum Keys {
    /// Arguments.
    Arguments(std::vec::IntoIter<String>),
    /// The lines of stdin.
    Lines(Lines<Box<dyn BufRead + Send>>),
}

impl Iterator for Keys {
    type Item = Result<String, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Arguments(arguments) => arguments.next().map(Ok),
            Self::Lines(lines) => lines.next(),
        }
    }
}

/// The lines of a text that have something in them, without space around.
pub(crate) fn lines<R: BufRead>(reader: R) -> Lines<R> {
    Lines {
        reader,
        buffer: Vec::new(),
        number: 0,
    }
}

/// Lines of a text.
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Returns the number of the line that was read last; the first is 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line, into memory that the next call takes again.
    ///
    /// # Errors
    ///
    /// The text cannot be read, or a line is no UTF-8 or much longer than a key.
    pub(crate) fn read(&mut self) -> Result<Option<&str>, Failure> {
        loop {
            self.buffer.clear();
            let mut limited = io::Read::take(&mut self.reader, MAX_LINE);
            let read = limited.read_until(b'\n', &mut self.buffer);
            let read = read.map_err(|error| {
                Failure::could_not(format_args!("the keys cannot be read: {error}"))
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.buffer.len() as u64 == MAX_LINE && !self.buffer.ends_with(b"\n") {
                return Err(Failure::wrong(format_args!(
                    "line {} is longer than {MAX_LINE} bytes, which no key is",
                    self.number
                )));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        match str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some(line.trim_ascii())),
            Err(_) => Err(Failure::wrong(format_args!(
                "line {} is no UTF-8",
                self.number
            ))),
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<String, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map(|line| line.map(str::to_owned)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_trimmed_and_empty_ones_are_left_out() {
        let mut lines = lines(&b"a\r\n\n  b \nc"[..]);
        assert_eq!(lines.read().unwrap(), Some("a"));
        assert_eq!(lines.read().unwrap(), Some("b"));
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.read().unwrap(), Some("c"));
        assert_eq!(lines.read().unwrap(), None);
    }

    #[test]
    fn a_line_that_is_no_text_or_too_long_is_refused_by_its_number() {
        let refused = |bytes: &[u8]| match lines(bytes).find(Result::is_err) {
            Some(Err(Failure::WrongUse(message))) => message,
            _ => panic!("it is read"),
        };
        assert_eq!(refused(b"a\n\xff\n"), "line 2 is no UTF-8");
        let long = vec![b'a'; 5_000];
        assert_eq!(
            refused(&long),
            "line 1 is longer than 4096 bytes, which no key is"
        );
    }
}

//! `cargo xtask docs`: writes the pictures of the guide.

use std::{fs, io};

fn main() -> io::Result<()> {
    for picture in ordid_tests::pictures::pictures() {
        if picture.found()? != picture.text {
            let file = picture.file();
            fs::create_dir_all(file.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
            fs::write(file, picture.text)?;
        }
    }
    Ok(())
}

//! The pictures of the guide. Each one is made of what the code says when it is run, and is written in a light and in a
//! dark form. `cargo xtask docs` writes them, and a test compares them.

mod byte_orders;
mod flush;
mod layouts;
mod leases;
mod slots;
mod svg;

use crate::lists::List;

/// The folder of the pictures in the repository.
pub const FOLDER: &str = "docs/src/pictures";

/// Returns the files of all pictures.
pub fn pictures() -> Vec<List> {
    let pictures: [(&str, svg::Svg); 5] = [
        ("byte-orders", byte_orders::draw()),
        ("flush", flush::draw()),
        ("layouts", layouts::draw()),
        ("leases", leases::draw()),
        ("slots", slots::draw()),
    ];
    let mut files = Vec::new();
    for (name, picture) in pictures {
        for (theme, palette) in [("light", &svg::LIGHT), ("dark", &svg::DARK)] {
            files.push(List {
                path: format!("{FOLDER}/{name}-{theme}.svg"),
                text: picture.written(palette),
            });
        }
    }
    files
}

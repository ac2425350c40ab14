//! Which bytes of a UUID an engine compares first. Each rule is asked where it puts every byte.

use ordid::{
    layout::Comparison,
    storage::{ColumnOn, Stores, column, dialect},
    uuid::Uuid,
};

use super::svg::{Colour, MARGIN, Style, Svg, WIDTH};

/// Sixteen different bytes. Version and variant are those of the picture's row, as MariaDB asks for both.
const fn bytes(version: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    let mut at = 0;
    let mut value = 0;
    while at < 16 {
        bytes[at] = value;
        at += 1;
        value += 1;
    }
    bytes[6] |= version << 4;
    bytes[8] |= 0x80;
    bytes
}

/// Returns for each byte of the text whether it is the first, second, .. that a rule compares.
pub fn ranks(rule: Comparison, version: u8) -> [usize; 16] {
    let bytes = bytes(version);
    let compared = rule.sort_key(&bytes);
    bytes.map(|byte| {
        let rank = compared.iter().position(|it| *it == byte);
        rank.expect("a rule compares every byte") + 1
    })
}

/// The rule of a column, which has to exist on the engine.
const fn rule<D, C: Stores<Uuid> + ColumnOn<D>>() -> Comparison
where
    D: dialect::Dialect,
{
    C::COMPARISON
}

pub fn draw() -> Svg {
    use column::{
        Binary16, Binary16DotNet, Binary16Swapped, Blob, MariaDbUuid, Raw16, Raw16DotNet,
        UniqueIdentifier, Uuid as UuidColumn,
    };
    use dialect::{MariaDb, MySql, Oracle, Postgres, SqlServer, Sqlite};

    let alike = [
        rule::<Postgres, UuidColumn>(),
        rule::<MySql, Binary16>(),
        rule::<MariaDb, Binary16>(),
        rule::<Sqlite, Blob>(),
        rule::<Oracle, Raw16>(),
    ];
    assert_eq!(alike, [Comparison::Bytes; 5]);
    let dotnet = [
        rule::<MySql, Binary16DotNet>(),
        rule::<MariaDb, Binary16DotNet>(),
        rule::<Oracle, Raw16DotNet>(),
    ];
    assert_eq!(dotnet, [Comparison::DotNetBytes; 3]);
    let rows = [
        (
            [
                "uuid, BINARY(16), BLOB, RAW(16)",
                "PostgreSQL, MySQL, MariaDB, SQLite, Oracle",
            ],
            alike[0],
            7,
        ),
        (
            ["UUID, versions 6 to 8", "MariaDB"],
            rule::<MariaDb, MariaDbUuid>(),
            7,
        ),
        (
            ["UUID, versions 1 to 5", "MariaDB"],
            rule::<MariaDb, MariaDbUuid>(),
            4,
        ),
        (
            ["uniqueidentifier", "SQL Server"],
            rule::<SqlServer, UniqueIdentifier>(),
            7,
        ),
        (
            [
                "BINARY(16), RAW(16) as .NET writes them",
                "MySQL, MariaDB, Oracle",
            ],
            dotnet[0],
            7,
        ),
        (
            ["BINARY(16) of UUID_TO_BIN(x, 1)", "MySQL"],
            rule::<MySql, Binary16Swapped>(),
            7,
        ),
    ];
    let mut svg = Svg::new("The order in which engines compare the bytes of a UUID");
    let mut y = 24.0;
    svg.text(
        MARGIN,
        y,
        "Each cell is a byte of the UUID's text, from left to right.",
        Style::FAINT,
    );
    y += 16.0;
    svg.text(
        MARGIN,
        y,
        "Its number says when the engine compares it.",
        Style::FAINT,
    );
    y += 18.0;
    y += svg.legend(
        y,
        &[
            (Colour::Blue, "compared 1st to 6th"),
            (Colour::Green, "7th and 8th"),
            (Colour::Grey, "later"),
        ],
    );
    svg.text(
        MARGIN,
        y,
        "The time of version 7 is in the first six bytes of the text.",
        Style {
            size: 11.0,
            ..Style::FAINT
        },
    );
    for ([title, engines], rule, version) in rows {
        y += 22.0;
        svg.text(MARGIN, y, title, Style::BOLD);
        y += 15.0;
        svg.text(MARGIN, y, engines, Style::FAINT);
        y += 6.0;
        cells(&mut svg, y, ranks(rule, version));
        y += 24.0;
    }
    svg
}

/// Draws a row of cells, with gaps where the text has hyphens.
fn cells(svg: &mut Svg, y: f64, ranks: [usize; 16]) {
    const GAP: f64 = 6.0;
    let width = (WIDTH - 2.0 * MARGIN - 4.0 * GAP) / 16.0;
    let mut x = MARGIN;
    for (at, rank) in ranks.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            x += GAP;
        }
        let colour = match rank {
            1..=6 => Colour::Blue,
            7 | 8 => Colour::Green,
            _ => Colour::Grey,
        };
        svg.labelled((x, y), (width, 24.0), &rank.to_string(), colour);
        x += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_server_compares_the_last_six_bytes_first() {
        let ranks = ranks(Comparison::SqlServer, 7);
        assert_eq!(ranks[10..], [1, 2, 3, 4, 5, 6]);
        assert_eq!(ranks[..4], [16, 15, 14, 13]);
    }

    #[test]
    fn mariadb_compares_by_version() {
        let in_order: Vec<usize> = (1..=16).collect();
        assert_eq!(ranks(Comparison::MariaDbUuid, 7)[..], in_order);
        assert_eq!(ranks(Comparison::MariaDbUuid, 4)[10..], [1, 2, 3, 4, 5, 6]);
    }
}

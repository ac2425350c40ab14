//! Keys of given times, and how engines write them.

use super::wrong::Engine;

/// 2026-01-01.
pub(super) const BEGIN: u64 = 1_767_225_600_000;

/// Bits that look random, and are the same in each run.
pub(super) fn noise(seed: u64) -> u128 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    u128::from(next()) << 64 | u128::from(next())
}

fn with_version(bits: u128, version: u128) -> u128 {
    bits & !(0xf << 76) & !(3 << 62) | version << 76 | 2 << 62
}

/// A UUID of version 7, of this millisecond.
pub(super) fn v7_at(millis: u64, seed: u64) -> u128 {
    with_version(noise(seed) >> 48 | u128::from(millis) << 80, 7)
}

/// The version 7 of a row, a second after that of the row before.
pub(super) fn v7(row: u64) -> u128 {
    v7_at(BEGIN + row * 1_000, row)
}

/// A UUID of version 4.
pub(super) fn v4(row: u64) -> u128 {
    with_version(noise(row), 4)
}

/// A UUID of version 6, of the same time as the version 7 of this row.
pub(super) fn v6(row: u64) -> u128 {
    let ticks = u128::from((BEGIN + row * 1_000) * 10_000 + 0x01b2_1dd2_1381_4000);
    let time = (ticks >> 12) << 80 | (ticks & 0xfff) << 64;
    with_version(time | noise(row) & 0xffff_ffff_ffff_ffff, 6)
}

/// A UUID of version 1, 7 minutes after that of the row before, so that its low bits wrap.
pub(super) fn v1(row: u64) -> u128 {
    let ticks = u128::from((BEGIN + row * 311_000) * 10_000 + 0x01b2_1dd2_1381_4000);
    let time = (ticks & 0xffff_ffff) << 96 | (ticks >> 32 & 0xffff) << 80 | (ticks >> 48) << 64;
    with_version(time | 0x0123_4567_89ab_cdef, 1)
}

/// What `UUID_TO_BIN(x, 1)` stores.
pub(super) fn swapped(uuid: u128) -> u128 {
    let bytes = uuid.to_be_bytes();
    let order = [6, 7, 4, 5, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15];
    u128::from_be_bytes(order.map(|at| bytes[at]))
}

/// A key of Twitter's layout.
pub(super) fn snowflake(millis: u64, node: u64, sequence: u64) -> u64 {
    (millis - 1_288_834_974_657) << 22 | node << 12 | sequence
}

/// A key of Baidu's layout, 2 hours before its epoch ends.
pub(super) fn baidu(row: u64) -> u64 {
    ((1 << 28) - 7_200 + row) << 35 | 1 << 13
}

/// 36 characters.
pub(super) fn text(uuid: u128) -> String {
    uuid::Uuid::from_u128(uuid).hyphenated().to_string()
}

/// Texts of 22 characters of both cases, which rise.
pub(super) fn ordered_texts(count: u64) -> Vec<String> {
    let entry = ordid_core::scheme::catalogue::find("ordered_text_22").expect("a scheme");
    let clock = std::sync::Arc::new(ordid_core::clock::SystemClock);
    let generator = entry.generator(None, clock).expect("a generator");
    let texts = (0..count).map(|row| {
        let time =
            ordid_core::clock::Timestamp::from_unix_millis(BEGIN + row * 1_000).expect("a time");
        generator.generate_at(time).expect("a key").text(None)
    });
    texts.collect()
}

/// A UUID as the engine's own column takes it.
pub(super) fn native(engine: Engine, uuid: u128) -> String {
    match engine {
        Engine::Postgres => format!("'{}'", text(uuid)),
        _ => format!("X'{uuid:032x}'"),
    }
}

/// Statements that insert rows, each of which is what stands between parentheses.
pub(super) fn insert(table: &str, rows: impl IntoIterator<Item = String>) -> String {
    let rows: Vec<String> = rows.into_iter().map(|row| format!("({row})")).collect();
    let statements = rows
        .chunks(500)
        .map(|rows| format!("INSERT INTO {table} VALUES {};\n", rows.join(", ")));
    statements.collect()
}

use super::*;

const NOW: u64 = 1_795_000_000_000; // 2026-11-18

fn column(kind: Kind) -> Column {
    Column {
        name: "id".to_owned(),
        declared: String::new(),
        kind,
        collation: None,
        is_nullable: false,
        counter: None,
        is_rowid: false,
    }
}

fn profile(kind: Kind, values: Vec<Value>) -> Profile {
    let rows: Vec<Row> = values
        .into_iter()
        .enumerate()
        .map(|(place, value)| Row {
            values: vec![value],
            place: i128::try_from(place).ok(),
            created: None,
        })
        .collect();
    let now = Timestamp::saturating_from_unix_millis(NOW);
    Profile::of(Engine::Postgres, &column(kind), &rows, 0, now)
}

fn integers_of(numbers: impl IntoIterator<Item = i128>) -> Profile {
    profile(
        Kind::Integer {
            bits: 64,
            is_signed: true,
        },
        numbers.into_iter().map(Value::Integer).collect(),
    )
}

fn scheme(profile: &Profile) -> &'static str {
    profile.main().map_or("none", |main| main.scheme)
}

fn snowflakes() -> impl Iterator<Item = i128> {
    (0..100).map(|row| (1_790_000_000_000 - 1_288_834_974_657 + row) << 22 | 1 << 12)
}

#[test]
fn integers_are_counted_scattered_or_of_a_layout() {
    assert_eq!(scheme(&integers_of(1..100)), "sequence");
    // A sequence may begin anywhere.
    assert_eq!(scheme(&integers_of((1 << 60)..(1 << 60) + 100)), "sequence");
    assert_eq!(scheme(&integers_of(snowflakes())), "snowflake");
    let step = i128::from(i64::MAX) / 100;
    assert_eq!(
        scheme(&integers_of((0..100).map(|row| row * step))),
        "unknown"
    );
    assert_eq!(
        scheme(&integers_of((-50..50).map(|row| row * 2 * step))),
        "unknown"
    );
}

#[test]
fn times_of_rows_decide_between_layouts() {
    // A number that is 2026 for Snowflake is 2018 for Baidu's layout.
    let numbers: Vec<i128> = snowflakes().collect();
    let rows = |created| -> Vec<Row> {
        let row = |number: &i128| Row {
            values: vec![Value::Integer(*number)],
            place: None,
            created: Some(created),
        };
        numbers.iter().map(row).collect()
    };
    let read = |created| {
        let now = Timestamp::saturating_from_unix_millis(NOW);
        let column = column(Kind::Integer {
            bits: 64,
            is_signed: true,
        });
        Profile::of(Engine::Postgres, &column, &rows(created), 0, now)
    };
    let recent = read(1_790_000_000_000);
    assert_eq!(scheme(&recent), "snowflake");
    assert!(recent.also.contains(&"baidu_uid"));
    let seconds = i64::try_from(numbers[0] >> 35).unwrap();
    assert_eq!(
        scheme(&read(1_463_673_600_000 + seconds * 1_000)),
        "baidu_uid"
    );
}

#[test]
fn hashes_of_32_digits_are_no_uuids() {
    // Bits that mix well, so that any version and variant is among them.
    let hash = |row: u128| (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let hashes = (0..200).map(|row| Value::Text(format!("{:032x}", hash(row))));
    let found = profile(
        Kind::Text {
            length: None,
            is_padded: false,
        },
        hashes.collect(),
    );
    assert_eq!(scheme(&found), "unknown");
    assert!(!found.is_uuid_text() && !found.is_of_keys());
}

#[test]
fn rows_of_one_place_have_no_order() {
    let rows: Vec<Row> = [3, 2, 1, 9]
        .iter()
        .zip([0, 0, 0, 1])
        .map(|(number, place)| Row {
            values: vec![Value::Integer(*number)],
            place: Some(place),
            created: None,
        })
        .collect();
    let column = column(Kind::Integer {
        bits: 64,
        is_signed: true,
    });
    assert_eq!(steps_down(Engine::Mysql, &column, &rows, 0), Some((0, 3)));
}

#[test]
fn spellings_are_told_apart() {
    for (text, expected) in [
        ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", Spelling::Hyphenated),
        (
            "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
            Spelling::HyphenatedUpper,
        ),
        ("017f22e2-79B0-7cc3-98c4-dc0c0c07398f", Spelling::OtherUuid),
        ("017f22e279b07cc398c4dc0c0c07398f", Spelling::Hex),
        (
            "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
            Spelling::OtherUuid,
        ),
        ("01ARYZ6S41TSV4RRFFQ69G5FAV", Spelling::OneCase(26)),
        ("0NQ_LnK8m~Cv5uYuAOTzUG", Spelling::MixedCase(22)),
        ("de", Spelling::Text),
        ("a sentence with 3 blanks", Spelling::Text),
    ] {
        assert_eq!(Spelling::of_text(text), expected, "{text}");
    }
}

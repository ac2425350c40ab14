//! "did you mean": the nearest of the known names, and the sentence that lists them.

/// Says that a name is not known: ``unknown option `tabel`; did you mean `table`? (options: key,
/// table)``.
pub(crate) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match nearest(name, known) {
        Some(nearest) => {
            format!("unknown {kind} `{name}`; did you mean `{nearest}`? ({kind}s: {list})")
        }
        None => format!("unknown {kind} `{name}` ({kind}s: {list})"),
    }
}

/// Returns the known name that differs least, if it differs by no more than a third.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (distance(name, known), *known))
        .filter(|(distance, known)| *distance <= (name.len().max(known.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Counts the letters to insert, delete, replace or swap with their neighbour (optimal string
/// alignment), not looking at case.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != r))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                let swapped: &Vec<usize> = &before_last;
                best = best.min(swapped[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        const KNOWN: &[&str] = &["crate", "rename_all", "schema", "table"];
        assert_eq!(nearest("tabel", KNOWN), Some("table"));
        assert_eq!(nearest("renameAll", KNOWN), Some("rename_all"));
        assert_eq!(nearest("Schema", KNOWN), Some("schema"));
        assert_eq!(nearest("key", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
        assert_eq!(
            nearest("postgress", &["mysql", "postgres"]),
            Some("postgres")
        );
        assert_eq!(nearest("uuid_v9", &["uuid_v7"]), Some("uuid_v7"));
        assert_eq!(nearest("ky", &["key"]), Some("key"));
    }

    #[test]
    fn the_sentence_lists_the_known_names() {
        assert_eq!(
            unknown("scheme", "uuid_v9", &["uuid_v7"]),
            "unknown scheme `uuid_v9`; did you mean `uuid_v7`? (schemes: uuid_v7)"
        );
        assert_eq!(
            unknown("option", "unique", &["key", "skip"]),
            "unknown option `unique` (options: key, skip)"
        );
    }
}

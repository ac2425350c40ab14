//! Names that are nearly another.

/// Returns `; did you mean ..?` if one of the names is near, or nothing.
pub(crate) fn suggestion<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let near = names
        .into_iter()
        .map(|other| (distance(&name.to_lowercase(), &other.to_lowercase()), other))
        .min_by_key(|(distance, _)| *distance);
    match near {
        Some((distance, other)) if distance <= 2.max(name.len() / 3) => {
            format!("; did you mean `{other}`?")
        }
        _ => String::new(),
    }
}

/// Counts the letters that have to be added, removed or replaced.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = ["orders", "order_lines", "customers"];
        assert_eq!(suggestion("oders", names), "; did you mean `orders`?");
        assert_eq!(suggestion("Orders", names), "; did you mean `orders`?");
        assert_eq!(suggestion("invoices", names), "");
        assert_eq!(suggestion("x", []), "");
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

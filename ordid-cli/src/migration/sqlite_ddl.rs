//! The text of a `CREATE TABLE` of SQLite, which keeps it as it was written.

/// Words that end a column's type.
const CONSTRAINTS: [&str; 10] = [
    "CONSTRAINT",
    "PRIMARY",
    "NOT",
    "NULL",
    "UNIQUE",
    "CHECK",
    "DEFAULT",
    "COLLATE",
    "REFERENCES",
    "GENERATED",
];

/// The names of the rowid, each as long as no column has it.
const ROWIDS: [&str; 3] = ["rowid", "_rowid_", "oid"];

/// Whether a statement, such as that of a trigger, uses a rowid.
pub(crate) fn uses_rowid(sql: &str) -> bool {
    ROWIDS.iter().any(|word| has_word(sql, word))
}

/// Returns a name of the rowid that no column has, if there is one.
pub(crate) fn rowid_beside<'a>(
    columns: impl Iterator<Item = &'a str> + Clone,
) -> Option<&'static str> {
    let is_free = |name: &&str| !columns.clone().any(|it| it.eq_ignore_ascii_case(name));
    ROWIDS.into_iter().find(is_free)
}

/// Returns the statement that creates the table under another name, which is quoted, with another type for these columns.
/// A column comes with whether it is the key.
///
/// # Errors
///
/// The text is not understood, and says why.
pub(crate) fn retyped(
    create: &str,
    name: &str,
    columns: &[(String, bool)],
    sql_type: &str,
) -> Result<String, String> {
    rewritten(create, name, columns, sql_type, true)
}

/// The same without new checks: a column that has the check of an earlier move gets that of its new type.
///
/// # Errors
///
/// As [`retyped`].
pub(crate) fn redeclared(
    create: &str,
    name: &str,
    columns: &[(String, bool)],
    sql_type: &str,
) -> Result<String, String> {
    rewritten(create, name, columns, sql_type, false)
}

fn rewritten(
    create: &str,
    name: &str,
    columns: &[(String, bool)],
    sql_type: &str,
    is_moved: bool,
) -> Result<String, String> {
    let tokens = tokens(create);
    let open = tokens
        .iter()
        .position(|it| *it == "(")
        .ok_or("its definition has no list of columns")?;
    let mut depth = 0_usize;
    let mut close = None;
    let mut parts = vec![Vec::new()];
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            ")" => {
                depth -= 1;
                if depth == 0 {
                    close = Some(at);
                    break;
                }
            }
            "," if depth == 1 => {
                parts.push(Vec::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(*token);
        }
    }
    let close = close.ok_or("the list of its columns does not end")?;
    let mut texts = Vec::new();
    let mut found = 0;
    for part in parts {
        let first = part.iter().position(|it| !is_space(it));
        let column = first.and_then(|first| {
            let name = unquoted(part[first]);
            columns
                .iter()
                .find(|(column, _)| column.eq_ignore_ascii_case(&name))
        });
        match (first, column) {
            (Some(first), Some((_, is_key))) => {
                found += 1;
                texts.push(column_of(&part, first, *is_key, sql_type, is_moved));
            }
            // The table's own constraint, which may say it in the column's place. Only an integer can be so.
            _ => {
                let moves_key = is_moved && columns.iter().any(|(_, is_key)| *is_key);
                let stays = |it: &&&str| !(moves_key && it.eq_ignore_ascii_case("AUTOINCREMENT"));
                texts.push(part.iter().filter(stays).copied().collect());
            }
        }
    }
    if found != columns.len() {
        return Err("a column of its definition is not found".to_owned());
    }
    let tail = tokens[close..].concat();
    Ok(format!("CREATE TABLE {name} ({}{tail}", texts.join(",")))
}

/// Adds the option `WITHOUT ROWID` to the statement of a table.
pub(crate) fn without_rowid(create: &str) -> String {
    let tokens = tokens(create);
    let Some(open) = tokens.iter().position(|it| *it == "(") else {
        return create.to_owned();
    };
    let (table, options) = tokens.split_at(closing(&tokens, open) + 1);
    let comma = match options.iter().all(|token| is_space(token)) {
        true => "",
        false => ",",
    };
    format!(
        "{} WITHOUT ROWID{comma}{}",
        table.concat(),
        options.concat()
    )
}

/// Names what the statement of a table computes from one of the columns: `a CHECK` or `a generated column`. The checks of
/// an earlier move are none.
pub(crate) fn expression_over(
    create: &str,
    columns: &[(String, bool)],
) -> Option<(&'static str, String)> {
    let tokens = tokens(create);
    for (at, token) in tokens.iter().enumerate() {
        let what = match () {
            () if token.eq_ignore_ascii_case("CHECK") => "a CHECK",
            () if token.eq_ignore_ascii_case("AS") => "a generated column",
            () => continue,
        };
        let Some(open) = (at + 1..tokens.len()).find(|at| !is_space(tokens[*at])) else {
            break;
        };
        if tokens[open] != "(" {
            continue;
        }
        let group = &tokens[open..=closing(&tokens, open)];
        let text = group.concat();
        let over = group
            .iter()
            .find_map(|token| Some((named_by(token, columns)?, token)));
        if let Some((column, token)) = over
            && !own_checks(token).contains(&text)
        {
            return Some((what, column.to_owned()));
        }
    }
    None
}

/// Whether the statement of an index computes something from one of the columns, or chooses rows by it.
pub(crate) fn index_computes(create: &str, columns: &[(String, bool)]) -> bool {
    let tokens: Vec<&str> = tokens(create)
        .into_iter()
        .filter(|token| !is_space(token))
        .collect();
    let Some(open) = tokens.iter().position(|token| *token == "(") else {
        return false;
    };
    let close = closing(&tokens, open);
    let mentions = |tokens: &[&str]| {
        tokens
            .iter()
            .any(|token| named_by(token, columns).is_some())
    };
    let mut depth = 0_usize;
    let parts = tokens[open + 1..close].split(|token| {
        match *token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *token == ","
    });
    let is_plain = |part: &[&str]| {
        part.get(1).is_none_or(|second| {
            ["ASC", "DESC", "COLLATE"]
                .iter()
                .any(|word| word.eq_ignore_ascii_case(second))
        })
    };
    parts
        .into_iter()
        .any(|part| mentions(part) && !is_plain(part))
        || mentions(tokens.get(close + 1..).unwrap_or_default())
}

/// Whether the statement of a virtual table takes its content from this table.
pub(crate) fn has_content_of(create: &str, table: &str) -> bool {
    let tokens: Vec<&str> = tokens(create)
        .into_iter()
        .filter(|token| !is_space(token))
        .collect();
    tokens.windows(3).any(|three| {
        three[0].eq_ignore_ascii_case("content")
            && three[1] == "="
            && unquoted(three[2]).eq_ignore_ascii_case(table)
    })
}

/// Returns the column that a token names; a text names none.
fn named_by<'c>(token: &str, columns: &'c [(String, bool)]) -> Option<&'c str> {
    if token.starts_with('\'') {
        return None;
    }
    let name = unquoted(token);
    columns
        .iter()
        .find(|(column, _)| column.eq_ignore_ascii_case(&name))
        .map(|(column, _)| column.as_str())
}

/// Returns the place of the parenthesis that ends what another one begins.
fn closing(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}

/// Whether a statement has a word, outside of names in quotes, texts and comments.
pub(crate) fn has_word(sql: &str, word: &str) -> bool {
    tokens(sql)
        .iter()
        .any(|token| token.eq_ignore_ascii_case(word))
}

/// Returns the statement without the collation of a column.
///
/// # Errors
///
/// The column is not found.
pub(crate) fn without_collation(create: &str, column: &str) -> Result<String, String> {
    let tokens = tokens(create);
    let (mut depth, mut is_first, mut is_column, mut found) = (0_usize, false, false, false);
    let mut drops = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" => {
                depth += 1;
                is_first |= depth == 1;
                continue;
            }
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 1 => {
                is_first = true;
                continue;
            }
            token if is_space(token) => continue,
            _ if depth == 1 && is_first => {
                is_column = unquoted(token).eq_ignore_ascii_case(column);
                found |= is_column;
            }
            token if depth == 1 && is_column && token.eq_ignore_ascii_case("COLLATE") => {
                let name = tokens[at + 1..].iter().position(|it| !is_space(it));
                drops.push(at..=at + 1 + name.unwrap_or_default());
            }
            _ => {}
        }
        is_first = false;
    }
    if !found {
        return Err("a column of its definition is not found".to_owned());
    }
    let kept = tokens
        .iter()
        .enumerate()
        .filter(|(at, _)| !drops.iter().any(|drop| drop.contains(at)));
    Ok(kept.map(|(_, token)| *token).collect())
}

fn column_of(part: &[&str], first: usize, is_key: bool, sql_type: &str, is_moved: bool) -> String {
    let is_constraint = |token: &&str| {
        CONSTRAINTS
            .iter()
            .chain(&["AS"])
            .any(|word| word.eq_ignore_ascii_case(token))
    };
    let rest = part[first + 1..]
        .iter()
        .position(is_constraint)
        .map_or(part.len(), |at| first + 1 + at);
    let mut kept: String = part[rest..]
        .iter()
        .filter(|token| !token.eq_ignore_ascii_case("AUTOINCREMENT"))
        .copied()
        .collect();
    let length = kept.len();
    for check in own_checks(part[first]) {
        kept = kept.replace(&format!("CHECK {check}"), "");
    }
    let is_checked = is_moved || kept.len() < length;
    let kept = kept.trim_start().trim_end_matches(' ');
    let has_not_null = part[rest..]
        .iter()
        .any(|token| token.eq_ignore_ascii_case("NOT"));
    let not_null = if is_key && !has_not_null {
        " NOT NULL"
    } else {
        ""
    };
    // A key of another type than INTEGER may be NULL in SQLite, unless it says otherwise.
    let [blob, text, null_or_blob] = own_checks(part[first]);
    let check = match (sql_type.starts_with("BLOB"), is_key) {
        (true, true) => blob,
        (true, false) => null_or_blob,
        (false, _) => text,
    };
    let check = match is_checked {
        true => format!(" CHECK {check}"),
        false => String::new(),
    };
    // A line break at the end of the rest may end a comment.
    format!(
        "{}{} {sql_type}{not_null}{check}{}{kept}",
        part[..first].concat(),
        part[first],
        if kept.is_empty() { "" } else { " " }
    )
}

/// Returns the checks by which a moved column refuses old keys: a key of bytes, one that is a text, a reference to one of
/// bytes. SQLite takes values of any type in a column, and compares numbers with bytes without an error.
fn own_checks(column: &str) -> [String; 3] {
    [
        format!("(typeof({column}) = 'blob')"),
        format!("(length({column}) = 36)"),
        format!("({column} IS NULL OR typeof({column}) = 'blob')"),
    ]
}

fn is_space(token: &str) -> bool {
    token.starts_with(char::is_whitespace) || token.starts_with("--") || token.starts_with("/*")
}

fn unquoted(token: &str) -> String {
    let mut inside = token.chars();
    match inside.next() {
        Some(quote @ ('"' | '`' | '\'')) => {
            inside.next_back();
            let doubled = format!("{quote}{quote}");
            inside.as_str().replace(&doubled, &quote.to_string())
        }
        Some('[') => {
            inside.next_back();
            inside.as_str().to_owned()
        }
        _ => token.to_owned(),
    }
}

/// Cuts a statement into words, quoted ones, spaces with comments, and single characters.
fn tokens(sql: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let until = |text: &str, end: &str, from: usize| {
            text[from..]
                .find(end)
                .map_or(text.len(), |at| from + at + end.len())
        };
        let length = match first {
            '"' | '`' | '\'' => {
                let quote = first.to_string();
                let mut end = until(rest, &quote, 1);
                // A quote that is doubled is a part of the name.
                while rest[end..].starts_with(first) {
                    end = until(rest, &quote, end + 1);
                }
                end
            }
            '[' => until(rest, "]", 1),
            '-' if rest.starts_with("--") => until(rest, "\n", 2),
            '/' if rest.starts_with("/*") => until(rest, "*/", 2),
            c if c.is_whitespace() => rest
                .find(|c: char| !c.is_whitespace())
                .unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        all.push(token);
        rest = behind;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &[(&str, bool)]) -> Vec<(String, bool)> {
        names
            .iter()
            .map(|(name, is_key)| ((*name).to_owned(), *is_key))
            .collect()
    }

    #[test]
    fn only_the_type_of_the_columns_changes() {
        let create = "CREATE TABLE orders (\n  id INTEGER PRIMARY KEY AUTOINCREMENT, -- the key, of course\n  ref TEXT CHECK (ref <> \
                      'id, x'),\n  \"parent id\" INTEGER(8) REFERENCES orders (id) ON DELETE SET NULL,\n  total NUMERIC(10, 2)\n) STRICT";
        let new = retyped(
            create,
            "\"new\"",
            &columns(&[("id", true), ("parent id", false)]),
            "BLOB",
        )
        .expect("it is understood");
        assert_eq!(
            new,
            "CREATE TABLE \"new\" (\n  id BLOB NOT NULL CHECK (typeof(id) = 'blob') PRIMARY KEY, -- the key, of course\n  ref TEXT CHECK (ref <> 'id, x'),\n  \
             \"parent id\" BLOB CHECK (\"parent id\" IS NULL OR typeof(\"parent id\") = 'blob') REFERENCES orders (id) ON DELETE SET NULL,\n  total NUMERIC(10, 2)\n) STRICT"
        );
    }

    #[test]
    fn a_key_that_the_table_declares_counts_no_longer() {
        let create = "CREATE TABLE t (\"id\" INTEGER, n TEXT, PRIMARY KEY(\"id\" AUTOINCREMENT))";
        let new =
            retyped(create, "t", &columns(&[("id", true)]), "BLOB").expect("it is understood");
        assert!(
            !new.contains("AUTOINCREMENT") && new.contains("PRIMARY KEY(\"id\" )"),
            "{new}"
        );
    }

    #[test]
    fn a_column_that_was_moved_before_has_one_check() {
        let columns = columns(&[("id", true), ("up", false)]);
        let move_to = |create: &str, sql_type| {
            retyped(create, "t", &columns, sql_type).expect("it is understood")
        };
        let first = move_to(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, up INTEGER REFERENCES t (id))",
            "BLOB",
        );
        assert_eq!(first.matches("CHECK").count(), 2, "{first}");
        let again = move_to(&first, "BLOB");
        assert_eq!(again.matches("CHECK").count(), 2, "{again}");
        assert_eq!(move_to(&move_to(&again, "TEXT"), "BLOB"), again);
    }

    #[test]
    fn a_column_that_was_not_moved_gets_no_check() {
        let columns = columns(&[("id", true)]);
        let old = "CREATE TABLE t (id TEXT PRIMARY KEY)";
        let new = redeclared(old, "t", &columns, "BLOB").expect("it is understood");
        assert_eq!(new, "CREATE TABLE t (id BLOB NOT NULL PRIMARY KEY)");
        let moved = retyped(old, "t", &columns, "TEXT").expect("it is understood");
        assert_eq!(
            redeclared(&moved, "t", &columns, "BLOB").expect("it is understood"),
            "CREATE TABLE t (id BLOB CHECK (typeof(id) = 'blob') NOT NULL  PRIMARY KEY)"
        );
    }

    #[test]
    fn a_comment_at_the_end_of_a_column_ends() {
        let new = retyped(
            "CREATE TABLE t (x, id INTEGER PRIMARY KEY -- the key\n, y)",
            "t",
            &columns(&[("id", true)]),
            "TEXT",
        );
        assert_eq!(
            new.expect("it is understood"),
            "CREATE TABLE t (x, id TEXT NOT NULL CHECK (length(id) = 36) PRIMARY KEY -- the key\n, y)"
        );
    }

    #[test]
    fn what_is_computed_from_a_column_is_found() {
        let key = columns(&[("id", true)]);
        let over = |create: &str| expression_over(create, &key).map(|(what, _)| what);
        assert_eq!(
            over("CREATE TABLE t (id INT, CHECK (\"ID\" > 0))"),
            Some("a CHECK")
        );
        assert_eq!(
            over("CREATE TABLE t (id INT, x GENERATED ALWAYS AS ((id) * 2) STORED)"),
            Some("a generated column")
        );
        assert_eq!(
            over("CREATE TABLE t (id INT, x CHECK (x <> 'id'), y AS (x))"),
            None
        );
        let moved = retyped("CREATE TABLE t (id INTEGER PRIMARY KEY)", "t", &key, "BLOB");
        assert_eq!(over(&moved.expect("it is understood")), None);

        let computes = |sql: &str| index_computes(sql, &key);
        assert!(computes("CREATE INDEX i ON t (id % 16)"));
        assert!(computes("CREATE INDEX i ON t (x, abs(x, id))"));
        assert!(computes("CREATE INDEX i ON t (x) WHERE [id] > 5"));
        assert!(!computes(
            "CREATE UNIQUE INDEX i ON t (x + 1, id COLLATE binary DESC) WHERE x = 'id'"
        ));

        assert!(has_content_of(
            "CREATE VIRTUAL TABLE f USING fts5(x, content = 't')",
            "T"
        ));
        assert!(!has_content_of(
            "CREATE VIRTUAL TABLE f USING fts5(t, content='')",
            "t"
        ));
    }

    #[test]
    fn the_option_without_rowid_stands_before_others() {
        assert_eq!(
            without_rowid("CREATE TABLE t (id INT, CHECK (x > 0)) STRICT"),
            "CREATE TABLE t (id INT, CHECK (x > 0)) WITHOUT ROWID, STRICT"
        );
        assert_eq!(
            without_rowid("CREATE TABLE t (id INT) -- a table"),
            "CREATE TABLE t (id INT) WITHOUT ROWID -- a table"
        );
    }

    #[test]
    fn a_doubled_quote_is_a_part_of_a_name() {
        let create =
            r#"CREATE TABLE "a ""(b" ("the ""k'ey" TEXT PRIMARY KEY, x TEXT DEFAULT 'it''s, ')"#;
        let new = redeclared(create, "n", &columns(&[("the \"k'ey", true)]), "BLOB");
        assert_eq!(
            new.expect("it is understood"),
            r#"CREATE TABLE n ("the ""k'ey" BLOB NOT NULL PRIMARY KEY, x TEXT DEFAULT 'it''s, ')"#
        );
    }

    #[test]
    fn the_collation_of_one_column_is_left_out() {
        let create = "CREATE TABLE t (a TEXT COLLATE NOCASE, \"b\" TEXT NOT NULL COLLATE /* why */ NOCASE CHECK (b <> 'x' COLLATE \
                      NOCASE) PRIMARY KEY)";
        assert_eq!(
            without_collation(create, "B").expect("it is understood"),
            "CREATE TABLE t (a TEXT COLLATE NOCASE, \"b\" TEXT NOT NULL  CHECK (b <> 'x' COLLATE NOCASE) PRIMARY KEY)"
        );
        assert!(without_collation(create, "c").is_err());
    }

    #[test]
    fn without_columns_only_the_name_changes() {
        let create = "create table [a b](x,y,primary key(x,y))WITHOUT ROWID";
        assert_eq!(
            retyped(create, "\"n\"", &[], "").expect("it is understood"),
            "CREATE TABLE \"n\" (x,y,primary key(x,y))WITHOUT ROWID"
        );
    }

    #[test]
    fn a_column_without_a_type_gets_one() {
        let new = retyped(
            "CREATE TABLE t (id PRIMARY KEY NOT NULL, x)",
            "n",
            &columns(&[("ID", true)]),
            "TEXT",
        );
        assert_eq!(
            new.expect("it is understood"),
            "CREATE TABLE n (id TEXT CHECK (length(id) = 36) PRIMARY KEY NOT NULL, x)"
        );
        assert!(retyped("CREATE TABLE t AS SELECT 1", "n", &[], "").is_err());
        assert!(retyped("CREATE TABLE t (a)", "n", &columns(&[("b", false)]), "TEXT").is_err());
    }
}

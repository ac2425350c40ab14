//! Pages over a key of two columns, by the SQL of the guide.

use std::collections::BTreeSet;

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    key::{CompositeKey, KeyPart, StaticScheme},
    page::{Connection, Cursor, ListOrder, Page, Slice},
    uuid::Uuid,
};
use ordid_tests::servers::Servers;
use sqlx::{MySql, Pool, Postgres, Sqlite, pool::PoolOptions};

use crate::{
    Outcome,
    database::{Binds, Executes, Gets, Live, Question, get, read},
    guide::script,
    on_scratch, sqlite,
};

#[derive(KeyType)]
#[ordid(prefix = "issue", sqlx)]
struct IssueId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "label", sqlx)]
struct LabelId(Uuid);

#[derive(KeyType)]
#[ordid(sqlx(postgres = text, mysql = char36, sqlite = text))]
struct TextId(Uuid);

type Key<A, B> = CompositeKey<(A, B)>;

/// The columns of a table, and the statements of the guide for them.
#[derive(Clone)]
struct Form {
    columns: [&'static str; 2],
    /// All rows, and those of one issue.
    sql: [String; 2],
    /// Whether parameters have no numbers, and so are bound as often as they stand in the statement.
    is_by_place: bool,
}

impl Form {
    /// Takes the guide's statements. For columns of other types, each of `bounds` replaces a default: `coalesce(`, the
    /// text before the default, the default, and the one to use.
    fn new(engine: &str, columns: [&'static str; 2], bounds: [&[(&str, &str, &str)]; 2]) -> Self {
        let script = script(&format!("pages of two columns: {engine}"));
        let (all, of_issue) = script.split_once(";\n").expect("two statements");
        let mut sql = [all, of_issue.trim_end().trim_end_matches(';')].map(str::to_owned);
        for (sql, bounds) in sql.iter_mut().zip(bounds) {
            for (before, from, to) in bounds {
                let from = format!("coalesce({before}{from})");
                assert!(sql.contains(&from), "{from}");
                *sql = sql.replace(&from, &format!("coalesce({before}{to})"));
            }
        }
        Self {
            columns,
            sql,
            is_by_place: engine == "mysql",
        }
    }

    /// The statement that inserts these rows.
    fn insert<DB, A: KeyPart, B: KeyPart>(&self, keys: &[Key<A, B>]) -> Question<DB>
    where
        DB: Pages<A, B>,
    {
        let rows: Vec<_> = (0..keys.len())
            .map(|row| match self.sql[0].contains('$') {
                true => format!("(${}, ${})", row * 2 + 1, row * 2 + 2),
                false => "(?, ?)".to_owned(),
            })
            .collect();
        let sql = format!(
            "INSERT INTO issue_labels (issue, label) VALUES {}",
            rows.join(", ")
        );
        let question = Question::new(sql).not_kept();
        keys.iter()
            .fold(question, |question, CompositeKey((issue, label))| {
                question.bind(Some(*issue)).bind(Some(*label))
            })
    }

    /// The statement for a slice of all rows.
    fn all<DB, A: KeyPart, B: KeyPart>(&self, start: &str, slice: &Slice<Key<A, B>>) -> Question<DB>
    where
        DB: Pages<A, B>,
    {
        let [above, below] = [slice.above, slice.below].map(|key| key.map(|key| key.0));
        let mut question = self.question(start, &self.sql[0], slice.is_descending);
        for bound in [above, below] {
            let (first, second) = bound.unzip();
            question = question.bind(first);
            if self.is_by_place {
                question = question.bind(first);
            }
            question = question.bind(second);
        }
        question.bind(i64::from(slice.rows()))
    }

    /// The statement for a slice of the rows of an issue.
    fn of_issue<DB, A: KeyPart, B: KeyPart>(
        &self,
        start: &str,
        issue: A,
        slice: &Slice<Key<A, B>>,
    ) -> Question<DB>
    where
        DB: Pages<A, B>,
    {
        let [above, below] = [slice.above, slice.below].map(|key| key.map(|key| key.0.1));
        self.question(start, &self.sql[1], slice.is_descending)
            .bind(Some(issue))
            .bind(above)
            .bind(below)
            .bind(i64::from(slice.rows()))
    }

    fn question<DB: Executes>(&self, start: &str, sql: &str, is_descending: bool) -> Question<DB> {
        let sql = match is_descending {
            true => sql
                .replace("ORDER BY issue, label", "ORDER BY issue DESC, label DESC")
                .replace("ORDER BY label", "ORDER BY label DESC"),
            false => sql.to_owned(),
        };
        Question::new(format!("{start}{sql}"))
    }
}

/// A database that keeps keys of these columns.
trait Pages<A, B>: Live + Binds<Option<A>> + Binds<Option<B>> + Binds<i64> + Gets<A> + Gets<B> {}

impl<DB, A, B> Pages<A, B> for DB where
    DB: Live + Binds<Option<A>> + Binds<Option<B>> + Binds<i64> + Gets<A> + Gets<B>
{
}

/// The number of issues, and of labels. Every second pair of them is a row from the start.
const MANY: usize = 100;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let uuids = "pages_of_two_uuids";
    let numbers = "pages_of_a_text_and_a_number";
    let rising = || rising::<LabelId>();
    // Some are negative.
    let numbered = || (-7..).take(MANY).collect::<Vec<i32>>();

    let form = Form::new("postgres", ["UUID", "UUID"], [&[], &[]]);
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", uuids, move |pool| async move {
        let table = Table::<IssueId, _>::create(&pool, form, rising()).await?;
        table.test_pages(&pool).await?;
        planned_on_postgres(&pool, &table).await
    });
    let low = "::uuid, '00000000-0000-0000-0000-000000000000'";
    let high = "::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'";
    let [low_text, high_text] = [low, high].map(|it| it.replace("uuid", "text"));
    let (of_all, of_issue) = (
        [
            ("$1", low, &*low_text),
            ("$2", low, "::int, -1000"),
            ("$3", high, &*high_text),
            ("$4", high, "::int, 1000"),
        ],
        [("$2", low, "::int, -1000"), ("$3", high, "::int, 1000")],
    );
    let form = Form::new(
        "postgres",
        ["TEXT COLLATE \"C\"", "INTEGER"],
        [&of_all, &of_issue],
    );
    on_scratch::<Postgres, _, _>(
        trials,
        servers,
        "postgres",
        numbers,
        move |pool| async move {
            let table = Table::<TextId, _>::create(&pool, form, numbered()).await?;
            table.test_pages(&pool).await?;
            planned_on_postgres(&pool, &table).await
        },
    );

    let form = Form::new("sqlite", ["BLOB", "BLOB"], [&[], &[]]);
    sqlite::add(trials, uuids, move |pool| async move {
        let table = Table::<IssueId, _>::create(&pool, form, rising()).await?;
        table.test_pages(&pool).await?;
        planned_on_sqlite(&pool, &table).await
    });
    let of_all = [
        ("?1, ", "x''", "''"),
        ("?2, ", "x''", "-1000"),
        ("?3, ", "x'ffffffffffffffffffffffffffffffffff'", "'~'"),
        ("?4, ", "x'ffffffffffffffffffffffffffffffffff'", "1000"),
    ];
    let of_issue = [
        ("?2, ", "x''", "-1000"),
        ("?3, ", "x'ffffffffffffffffffffffffffffffffff'", "1000"),
    ];
    let form = Form::new("sqlite", ["TEXT", "INTEGER"], [&of_all, &of_issue]);
    sqlite::add(trials, numbers, move |pool| async move {
        let table = Table::<TextId, _>::create(&pool, form, numbered()).await?;
        table.test_pages(&pool).await?;
        planned_on_sqlite(&pool, &table).await
    });

    for server in ["mariadb", "mysql"] {
        let form = Form::new("mysql", ["BINARY(16)", "BINARY(16)"], [&[], &[]]);
        on_scratch::<MySql, _, _>(trials, servers, server, uuids, move |pool| async move {
            let table = Table::<IssueId, _>::create(&pool, form, rising()).await?;
            table.test_pages(&pool).await?;
            read_on_mysql(&pool, &table).await
        });
        let of_all = [
            ("?, ", "x''", "''"),
            ("?, ", "x'ffffffffffffffffffffffffffffffffff'", "'~'"),
        ];
        let of_issue = [
            ("?, ", "x''", "-1000"),
            ("?, ", "x'ffffffffffffffffffffffffffffffffff'", "1000"),
        ];
        let text = "CHAR(36) CHARACTER SET ascii COLLATE ascii_bin";
        let form = Form::new("mysql", [text, "INTEGER"], [&of_all, &of_issue]);
        on_scratch::<MySql, _, _>(trials, servers, server, numbers, move |pool| async move {
            let table = Table::<TextId, _>::create(&pool, form, numbered()).await?;
            table.test_pages(&pool).await?;
            read_on_mysql(&pool, &table).await
        });
    }
}

/// The table `issue_labels`.
struct Table<A, B> {
    form: Form,
    issues: Vec<A>,
    labels: Vec<B>,
    rows: BTreeSet<Key<A, B>>,
}

/// Keys up to one that begins with the byte `ff`.
fn rising<K: KeyType<Raw = Uuid, Scheme: StaticScheme>>() -> Vec<K> {
    let last = Uuid::from_u128(0xffff_ffff_ffff_7fff_bfff_ffff_ffff_ffff);
    let last = K::from_raw(last).expect("a key of version 7");
    (1..MANY).map(|_| K::generate()).chain([last]).collect()
}

impl<A: KeyType<Raw = Uuid, Scheme: StaticScheme>, B: KeyPart> Table<A, B> {
    async fn create<DB: Pages<A, B>>(pool: &Pool<DB>, form: Form, labels: Vec<B>) -> Outcome<Self> {
        let [issue, label] = form.columns;
        let sql = format!(
            "CREATE TABLE issue_labels (issue {issue} NOT NULL, label {label} NOT NULL, PRIMARY KEY (issue, label)) {}",
            DB::OPTIONS
        );
        DB::script(pool, &sql).await?;
        let mut table = Self {
            form,
            issues: rising(),
            labels,
            rows: BTreeSet::new(),
        };
        let pairs = (0..MANY * MANY).map(|it| (it / MANY, it % MANY));
        let pairs: Vec<_> = pairs
            .filter(|(issue, label)| (issue + label) % 2 == 0)
            .collect();
        for pairs in pairs.chunks(500) {
            let keys: Vec<_> = pairs.iter().map(|pair| table.key(*pair)).collect();
            table.form.insert::<DB, _, _>(&keys).ask(pool).await?;
            table.rows.extend(keys);
        }
        Ok(table)
    }

    fn key(&self, (issue, label): (usize, usize)) -> Key<A, B> {
        CompositeKey((self.issues[issue], self.labels[label]))
    }

    /// Reads the list in pages, in both directions and orders, while other rows come in between.
    async fn test_pages<DB: Pages<A, B>>(&self, pool: &Pool<DB>) -> Outcome {
        let mut all = self.rows.clone();
        // The other pairs, in a mixed order: 37 has no factor in common with their number.
        let mut others = (0..MANY * MANY / 2).map(|it| {
            let (issue, half) = (it * 37 / (MANY / 2) % MANY, it * 37 % (MANY / 2));
            (issue, half * 2 + (issue + 1) % 2)
        });
        let issue = self.issues[MANY - 1];
        for (within, order, size, is_forward) in [
            (None, ListOrder::Ascending, 61, true),
            (None, ListOrder::Ascending, 199, false),
            (None, ListOrder::Descending, 199, true),
            (None, ListOrder::Descending, 61, false),
            (None, ListOrder::Ascending, 10_000, true),
            (Some(issue), ListOrder::Ascending, 7, true),
            (Some(issue), ListOrder::Ascending, 7, false),
            (Some(issue), ListOrder::Descending, 1, true),
            (Some(issue), ListOrder::Descending, 7, false),
        ] {
            let old = all.clone();
            let mut page = if is_forward {
                Page::first(size)
            } else {
                Page::last(size)
            };
            let mut found = Vec::new();
            loop {
                let question = match within {
                    None => self.form.all::<DB, _, _>("", &page.slice(order, 10_000)?),
                    Some(issue) => {
                        let slice = page.within(issue)?.slice(order, 10_000)?;
                        self.form.of_issue("", issue, &slice)
                    }
                };
                let slice = page.slice(order, 10_000)?;
                let rows = question.ask(pool).await?;
                let keys: Result<Vec<_>, sqlx::Error> = rows
                    .iter()
                    .map(|row| Ok(CompositeKey((get::<DB, A>(row, 0)?, get::<DB, B>(row, 1)?))))
                    .collect();
                let read = Connection::new(&slice, keys?, |key| *key);
                let at = if is_forward { found.len() } else { 0 };
                found.splice(at..at, read.nodes().copied());
                let info = read.page_info;
                let (has_more, end) = match is_forward {
                    true => (info.has_next_page, info.end_cursor),
                    false => (info.has_previous_page, info.start_cursor),
                };
                let Some(end) = end.filter(|_| has_more) else {
                    break;
                };
                let end: Cursor<Key<A, B>> = end.to_string().parse()?;
                page = if is_forward {
                    page.after(end)
                } else {
                    page.before(end)
                };
                let new: Vec<_> = others.by_ref().take(3).map(|pair| self.key(pair)).collect();
                if !new.is_empty() {
                    self.form.insert::<DB, _, _>(&new).ask(pool).await?;
                    all.extend(new);
                }
            }
            if order == ListOrder::Descending {
                found.reverse();
            }
            assert!(
                found.is_sorted_by(|one, next| one < next),
                "each row once and in order"
            );
            let is_in = |key: &&Key<A, B>| within.is_none_or(|issue| key.0.0 == issue);
            let found: BTreeSet<_> = found.into_iter().collect();
            let old: BTreeSet<_> = old.iter().filter(is_in).copied().collect();
            assert!(
                found.is_superset(&old) && found.is_subset(&all),
                "{order:?} by {size}"
            );
            if within.is_some() {
                assert!(found.iter().all(|key| is_in(&key)));
            }
        }
        assert!(all.len() > self.rows.len() + 100, "rows came in between");
        Ok(())
    }

    /// Returns slices far behind the start of the list, of all rows and of an issue.
    fn slices(&self) -> Outcome<[Slice<Key<A, B>>; 4]> {
        let key = |pair| Cursor::new(self.key(pair));
        let page = Page::first(10).after(key((80, 80)));
        let both = page.before(key((90, 90)));
        let slice = |page: Page<Key<A, B>>, order| page.slice(order, 100);
        Ok([
            slice(page, ListOrder::Ascending)?,
            slice(both, ListOrder::Ascending)?,
            slice(Page::first(10).after(key((20, 20))), ListOrder::Descending)?,
            slice(Page::last(10).before(key((90, 90))), ListOrder::Ascending)?,
        ])
    }
}

/// Returns the plans of the statements for each slice.
async fn plans<DB: Pages<A, B>, A: KeyType<Raw = Uuid, Scheme: StaticScheme>, B: KeyPart>(
    pool: &Pool<DB>,
    table: &Table<A, B>,
    explain: &str,
    column: usize,
) -> Outcome<Vec<[String; 2]>> {
    let mut plans = Vec::new();
    for slice in table.slices()? {
        let mut of_slice = [String::new(), String::new()];
        let questions = [
            table.form.all(explain, &slice),
            table.form.of_issue(explain, table.issues[80], &slice),
        ];
        for (plan, question) in of_slice.iter_mut().zip(questions) {
            for row in question.ask(pool).await? {
                *plan += &get::<DB, String>(&row, column)?;
                *plan += "\n";
            }
        }
        plans.push(of_slice);
    }
    Ok(plans)
}

async fn planned_on_postgres<A: KeyType<Raw = Uuid, Scheme: StaticScheme>, B: KeyPart>(
    pool: &Pool<Postgres>,
    table: &Table<A, B>,
) -> Outcome
where
    Postgres: Pages<A, B>,
{
    Postgres::script(pool, "VACUUM ANALYZE issue_labels").await?;
    for sql in &table.form.sql {
        // Not every library names the types of parameters.
        Postgres::script(pool, &format!("PREPARE page AS {sql}; DEALLOCATE page")).await?;
    }
    for [of_all, of_issue] in plans(pool, table, "EXPLAIN (COSTS OFF) ", 0).await? {
        for plan in [&of_all, &of_issue] {
            assert!(plan.contains("using issue_labels_pkey"), "{plan}");
            assert!(!plan.contains("Filter") && !plan.contains("Sort"), "{plan}");
        }
        let [above, below] = [">", "<"].map(|is| format!("(ROW(issue, label) {is} ROW("));
        assert!(
            of_all.contains(&above) && of_all.contains(&below),
            "{of_all}"
        );
        for part in ["(issue = ", "(label > ", "(label < "] {
            assert!(of_issue.contains(part), "{of_issue}");
        }
    }
    Ok(())
}

async fn planned_on_sqlite<A: KeyType<Raw = Uuid, Scheme: StaticScheme>, B: KeyPart>(
    pool: &Pool<Sqlite>,
    table: &Table<A, B>,
) -> Outcome
where
    Sqlite: Pages<A, B>,
{
    let search = "SEARCH issue_labels USING PRIMARY KEY";
    for [of_all, of_issue] in plans(pool, table, "EXPLAIN QUERY PLAN ", 3).await? {
        let both = "((issue,label)>(?,?) AND (issue,label)<(?,?))";
        assert_eq!(of_all, format!("{search} {both}\n"));
        assert_eq!(
            of_issue,
            format!("{search} (issue=? AND label>? AND label<?)\n")
        );
    }
    Ok(())
}

/// A page far behind reads as few rows as the first one. The server counts them.
async fn read_on_mysql<A: KeyType<Raw = Uuid, Scheme: StaticScheme>, B: KeyPart>(
    pool: &Pool<MySql>,
    table: &Table<A, B>,
) -> Outcome
where
    MySql: Pages<A, B>,
{
    MySql::script(pool, "ANALYZE TABLE issue_labels").await?;
    // The counters are those of a session.
    let one = PoolOptions::new().max_connections(1);
    let pool = &one.connect_with((*pool.connect_options()).clone()).await?;
    let reads = async || -> Outcome<u64> {
        let sql = "SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_first', 'Handler_read_key', \
                   'Handler_read_last', 'Handler_read_next', 'Handler_read_prev')";
        let counters: Vec<(String, String)> = read(pool, sql).await?;
        assert_eq!(counters.len(), 5);
        let counts: Result<Vec<u64>, _> = counters.iter().map(|it| it.1.parse()).collect();
        Ok(counts?.into_iter().sum())
    };
    for slice in table.slices()? {
        for question in [
            table.form.all("", &slice),
            table.form.of_issue("", table.issues[80], &slice),
        ] {
            let before = reads().await?;
            let rows = question.ask(pool).await?.len();
            let reads = reads().await? - before;
            assert!(rows > 0, "the server read something");
            // One more where the range ends before the page is full.
            assert!(
                reads <= u64::try_from(rows)? + 1,
                "{rows} rows by {reads} reads"
            );
        }
    }
    // The guide says why its statement compares the columns one by one.
    let CompositeKey((issue, label)) = table.key((80, 80));
    let sql = "SELECT issue, label FROM issue_labels WHERE (issue, label) > (?, ?) ORDER BY issue, label LIMIT 11";
    let before = reads().await?;
    let question = Question::<MySql>::new(sql.to_owned())
        .bind(Some(issue))
        .bind(Some(label));
    assert_eq!(question.ask(pool).await?.len(), 11);
    let reads = reads().await? - before;
    assert!(
        reads > 4_000,
        "the server no longer reads all rows before the page, but {reads}"
    );
    Ok(())
}

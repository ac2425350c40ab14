//! The SQL of a move on PostgreSQL.

mod constraints;
mod switch;

use ordid_core::storage::{Dialect as _, dialect::Postgres};

use super::{Found, FoundColumn, is_indexed, quote};
use crate::migration::{
    model::{Action, Keys, References, Statement, Step},
    subject::{Column, ForeignKey, Index, LAST_MICROS, Moved, literal, named, named_by_column},
    target::Target,
};

/// Writes the SQL.
pub(super) struct Writer<'a> {
    pub(super) found: &'a Found,
    pub(super) target: &'a Target,
    pub(super) created: Option<&'a FoundColumn>,
}

const BRIEF: &str = "each table for some milliseconds, once its running transactions are done; nobody waits longer than the lock \
                     timeout";
const NONE: &str = "no table";
const KEY_VARIABLES: &str = "DECLARE\n  ordid_moment timestamptz;\n  ordid_micros text;\n  ordid_last text;\n  ordid_further int;\n";

impl Writer<'_> {
    /// Returns a name in the table's schema, quoted.
    pub(super) fn name(&self, name: &str) -> String {
        Postgres::quote_table(Some(&self.found.schema), name)
    }

    fn main(&self) -> &Moved {
        &self.found.tables[0]
    }

    fn key(&self) -> &Column {
        &self.main().columns[0]
    }

    fn table(&self, table: &Moved) -> String {
        Postgres::quote_table(Some(&table.schema), &table.name)
    }

    fn work(&self) -> String {
        self.name(&named("ordid_work_", &self.found.name, ""))
    }

    fn key_function(&self) -> String {
        self.name(&named("ordid_key_of_", &self.found.name, ""))
    }

    /// The function of a table's trigger, in the table's schema.
    fn function(&self, table: &Moved) -> String {
        let name = named("ordid_sync_", &table.name, "");
        Postgres::quote_table(Some(&table.schema), &name)
    }

    /// The name of an index's copy on the new columns.
    fn copy_of(index: &Index) -> String {
        named("ordid_new_", &index.name, "")
    }

    fn check_of(column: &Column) -> String {
        quote(&named("ordid_check_", &column.name, ""))
    }

    fn new_key_of(foreign_key: &ForeignKey) -> String {
        named("ordid_new_", &foreign_key.name, "")
    }

    /// A table's primary key has a moved column, and its old columns need an index of their own for the way back.
    fn twin_of(index: &Index) -> String {
        named("ordid_old_", &index.name, "")
    }

    fn rows(&self, per_second: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "it is an estimate")]
        let rows = self.found.rows as f64;
        rows / per_second
    }

    fn step(name: &str, what: String, locks: &str, seconds: f64, action: Action) -> Step {
        Step {
            name: name.to_owned(),
            on: None,
            what,
            locks: locks.to_owned(),
            seconds: seconds.max(0.1),
            action,
        }
    }

    pub(super) fn steps(&self) -> Vec<Step> {
        let mut steps = vec![
            self.columns(),
            self.triggers(),
            self.work_list(),
            self.keys(),
        ];
        steps.push(Self::step(
            "wait",
            "Waits for the transactions that were running when the last key was made: their referring rows may not have seen it"
                .to_owned(),
            NONE,
            1.0,
            Action::Wait {
                list: "SELECT virtualxid FROM pg_locks WHERE locktype = 'virtualxid' AND pid <> pg_backend_pid() AND pid IN \
                       (SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                       AND coalesce(backend_type, '') <> 'autovacuum worker') \
                       UNION ALL SELECT transaction::text FROM pg_prepared_xacts WHERE database = current_database()"
                    .to_owned(),
            },
        ));
        steps.extend(self.references());
        steps.push(self.constraints());
        steps.push(self.copies());
        steps.push(self.foreign_keys());
        steps.push(self.validate_constraints());
        steps.push(self.check());
        steps.push(self.switch());
        steps
    }

    fn columns(&self) -> Step {
        let sql_type = self.target.column.sql_type;
        let statements = self.found.tables.iter().map(|table| {
            let columns: Vec<String> = table
                .columns
                .iter()
                .map(|it| format!("ADD COLUMN {} {sql_type}", quote(&it.new_name())))
                .collect();
            format!("ALTER TABLE {} {}", self.table(table), columns.join(", "))
        });
        // A table each, so that no transaction waits for a second lock.
        let mut statements: Vec<Statement> = statements
            .zip(&self.found.tables)
            .map(|(sql, table)| {
                Statement::new(sql).unless(format!(
                    "SELECT 1 FROM pg_attribute WHERE attrelid = {}::regclass AND attname = {} AND NOT attisdropped",
                    literal(&self.table(table)),
                    literal(&table.columns[0].new_name())
                ))
            })
            .collect();
        for table in &self.found.tables {
            for column in &table.columns {
                if let Some(comment) = &column.comment {
                    statements.push(Statement::new(format!(
                        "COMMENT ON COLUMN {}.{} IS {}",
                        self.table(table),
                        quote(&column.new_name()),
                        literal(comment)
                    )));
                }
            }
        }
        statements.extend(self.found.options.iter().map(Statement::new));
        Self::step(
            "columns",
            format!("Adds an empty column {sql_type} beside each moved column"),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    /// The time of a row in a trigger, by which its key is made.
    fn row_time(&self) -> String {
        match self.created {
            None => "clock_timestamp()".to_owned(),
            Some(column) => {
                let time = moment(&format!("NEW.{}", quote(&column.name)), &column.sql_type);
                // Rows of one second would have keys in no order, if their time has no fraction.
                match coarse_unit(&column.sql_type) {
                    None => time,
                    Some(unit) => format!(
                        "CASE WHEN {time} > clock_timestamp() - interval '{unit}' AND {time} <= clock_timestamp() THEN \
                         clock_timestamp() ELSE {time} END"
                    ),
                }
            }
        }
    }

    /// The lines that compute `ordid_moment`, the time of a row's key. Rows of one transaction have one time, by the default
    /// `now()`. Each of them goes a microsecond further, so their keys are in the order in which they are inserted.
    fn row_moment(&self) -> String {
        let time = self.row_time();
        if self.created.is_none() {
            return format!("    ordid_moment := {time};\n");
        }
        format!(
            "    ordid_moment := {time};\n    ordid_micros := (extract(epoch FROM ordid_moment) * 1000000)::bigint::text;\n    \
             ordid_last := current_setting('ordid.last_' || TG_RELID, true);\n    ordid_further := CASE WHEN split_part(ordid_last, \
             ' ', 1) = ordid_micros THEN split_part(ordid_last, ' ', 2)::int + 1 ELSE 0 END;\n    PERFORM \
             set_config('ordid.last_' || TG_RELID, coalesce(ordid_micros, '') || ' ' || ordid_further, true);\n    ordid_moment := \
             ordid_moment + ordid_further * interval '1 microsecond';\n"
        )
    }

    /// The function of the trigger: `before` the switch it fills new columns, after it old ones.
    ///
    /// It runs with the rights of the user of `apply`. Somebody else could attach it to a table whose columns have casts
    /// that run code, so nobody may attach it but its owner, and it refuses other tables. A trigger that is attached
    /// runs for everybody who writes the table.
    fn sync_function(&self, table: &Moved, before: bool) -> String {
        let names = |column: &Column| match before {
            true => (quote(&column.name), quote(&column.new_name())),
            false => (quote(&column.name), quote(&column.old_name())),
        };
        let mut variables = "";
        let mut body = format!(
            "  IF TG_RELID IS DISTINCT FROM to_regclass({}) THEN\n    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', \
             MESSAGE = format('the trigger function %s is not made for the table %s', {}, TG_RELID::regclass);\n  END IF;\n",
            literal_anywhere(&self.table(table)),
            literal_anywhere(&self.function(table)),
        );
        let is_main = table.title() == self.main().title();
        let (key, other_key) = names(self.key());
        if is_main && before {
            variables = KEY_VARIABLES;
            // The work list has the old key of a row. One whose old key changes is found by nobody, and gets its new key here.
            body.push_str(&format!(
                "  IF NEW.{other_key} IS NULL AND (TG_OP = 'INSERT' OR NEW.{key} IS DISTINCT FROM OLD.{key}) THEN\n{}    \
                 NEW.{other_key} := {}(ordid_moment);\n  END IF;\n",
                self.row_moment(),
                self.key_function(),
            ));
        } else if is_main {
            body.push_str(&format!(
                "  IF NEW.{key} IS NULL AND TG_OP = 'INSERT' THEN\n    NEW.{key} := {}({});\n  END IF;\n",
                self.key_function(),
                self.row_time()
            ));
            if self.found.key.default.is_none() && !self.found.key.is_identity {
                body.push_str(&format!(
                    "  IF NEW.{other_key} IS NULL THEN\n    NEW.{other_key} := gen_random_uuid();\n  END IF;\n"
                ));
            }
        }
        for (column, _) in table.references() {
            let (from, to) = names(column);
            let main = self.table(self.main());
            let own = |from: &str, key: &str, to: &str, other_key: &str| match is_main {
                true => format!(
                    "  ELSIF NEW.{from} = NEW.{key} THEN\n    NEW.{to} := NEW.{other_key};\n"
                ),
                false => String::new(),
            };
            // An INSERT without a list of columns still gives the old column, which is the first one.
            if !before {
                body.push_str(&format!(
                    "  IF TG_OP <> 'INSERT' OR NEW.{from} IS NOT NULL OR NEW.{to} IS NULL THEN\n    NULL;\n{own}  ELSE\n    SELECT \
                     it.{key} INTO NEW.{from} FROM {main} AS it WHERE it.{other_key} = NEW.{to};\n    IF NOT FOUND THEN\n      \
                     RAISE EXCEPTION USING ERRCODE = 'foreign_key_violation', MESSAGE = format('%I.%I has the new key of a row, and \
                     the old key %s that was given instead is of no row', TG_TABLE_NAME, {name}, NEW.{to});\n    END IF;\n  END \
                     IF;\n",
                    own = own(&to, &other_key, &from, &key),
                    name = literal_anywhere(&column.name),
                ));
            }
            // A foreign key is checked at the end of the statement, by a later snapshot than this one: it would accept a row that
            // is not found here, and the link would be lost. So such a statement is always refused.
            body.push_str(&format!(
                "  IF NEW.{from} IS NULL THEN\n    NEW.{to} := NULL;\n{own}  ELSIF TG_OP = 'INSERT' OR NEW.{to} IS NULL OR NEW.{from} IS \
                 DISTINCT FROM OLD.{from} THEN\n    SELECT it.{other_key} INTO NEW.{to} FROM {main} AS it WHERE it.{key} = \
                 NEW.{from};\n    IF NOT FOUND AND (TG_OP = 'INSERT' OR NEW.{from} IS DISTINCT FROM OLD.{from}) THEN\n      RAISE \
                 EXCEPTION USING ERRCODE = CASE current_setting('transaction_isolation') WHEN 'read committed' THEN \
                 'foreign_key_violation' ELSE 'serialization_failure' END, MESSAGE = format('the row %s that %I.%I refers to is not \
                 there yet, or is newer than this transaction: write it first, and try again', NEW.{from}, TG_TABLE_NAME, \
                 {name});\n    END IF;\n  END IF;\n",
                own = own(&from, &key, &to, &other_key),
                name = literal_anywhere(&column.name),
            ));
        }
        // One message, which is one transaction: nobody sees the function while everybody may attach it.
        format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, \
             pg_temp AS {body};\nREVOKE EXECUTE ON FUNCTION {function}() FROM PUBLIC",
            function = self.function(table),
            body = dollar_quoted(&format!("\n{variables}BEGIN\n{body}  RETURN NEW;\nEND\n")),
        )
    }

    /// Triggers run in the order of their names: this one has to see what the users' triggers have made of a row.
    fn triggers(&self) -> Step {
        let key_function = format!(
            "CREATE OR REPLACE FUNCTION {}(moment timestamptz DEFAULT clock_timestamp()) RETURNS {} LANGUAGE sql VOLATILE AS \
             $ordid$\n  SELECT {} FROM (SELECT least(greatest(floor(extract(epoch FROM coalesce(moment, clock_timestamp())) * \
             1000000)::bigint, 0), {LAST_MICROS}) AS m, replace(gen_random_uuid()::text, '-', '') AS r) AS it\n$ordid$",
            self.key_function(),
            self.type_name(),
            self.target.postgres()
        );
        // Whoever inserts rows calls it, as it becomes the default.
        let grant = format!(
            "GRANT EXECUTE ON FUNCTION {}(timestamptz) TO PUBLIC",
            self.key_function()
        );
        let mut statements = vec![Statement::new(key_function), Statement::new(grant)];
        // The table itself comes last: a row of it that has its key from the trigger is not in the work list, so whatever
        // refers to that row needs its trigger by then.
        for table in self.found.tables.iter().rev() {
            statements.push(Statement::new(self.sync_function(table, true)));
            statements.push(
                Statement::new(format!(
                    "CREATE TRIGGER zzzz_ordid_sync BEFORE INSERT OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION {}()",
                    self.table(table),
                    self.function(table)
                ))
                .unless(format!(
                    "SELECT 1 FROM pg_trigger WHERE tgrelid = {}::regclass AND tgname = 'zzzz_ordid_sync'",
                    literal(&self.table(table))
                )),
            );
        }
        Self::step(
            "triggers",
            "Creates the triggers that fill the new columns of rows which others write from now on"
                .to_owned(),
            BRIEF,
            0.1,
            Action::Online { statements },
        )
    }

    /// The column's type without its collation, which a function has no use for.
    fn type_name(&self) -> &str {
        let sql_type = self.target.column.sql_type;
        sql_type
            .split_once(" COLLATE")
            .map_or(sql_type, |(name, _)| name)
    }

    fn work_list(&self) -> Step {
        let table = self.table(self.main());
        let key = quote(&self.key().name);
        let (micros, order) = match self.created {
            None => (
                "(extract(epoch FROM now()) * 1000000)::bigint - (count(*) OVER () - row_number() OVER (ORDER BY {key})) * 1000"
                    .replace("{key}", &key),
                key.clone(),
            ),
            Some(column) => {
                let time = moment(&quote(&column.name), &column.sql_type);
                let first =
                    format!("coalesce({time}, (SELECT min({time}) FROM {table}), now())");
                (
                    format!("floor(extract(epoch FROM {first}) * 1000000)::bigint"),
                    format!("{time} NULLS FIRST, {key}"),
                )
            }
        };
        let work = self.work();
        Self::step(
            "work_list",
            match self.created {
                Some(column) => format!(
                    "Lists the rows without a new key in the order of {}, and of the old key where times are equal",
                    column.name
                ),
                None => "Lists the rows without a new key in the order of the old key".to_owned(),
            },
            NONE,
            self.rows(500_000.0),
            Action::Transaction {
                statements: vec![
                    format!("DROP TABLE IF EXISTS {work}"),
                    format!(
                        "CREATE TABLE {work} AS SELECT row_number() OVER (ORDER BY {order}) AS position, {key} AS old, {micros} AS \
                         micros FROM {table} WHERE {} IS NULL",
                        quote(&self.key().new_name())
                    ),
                    format!("ALTER TABLE {work} ADD PRIMARY KEY (position)"),
                    format!("ANALYZE {work}"),
                ],
            },
        )
    }

    /// Returns the statement that comes first in a transaction that changes rows. It turns other triggers off, if the user may
    /// do that, and if no other triggers would run instead.
    fn quiet(&self) -> Vec<String> {
        match self.found.turns_triggers_off() {
            true => vec!["SET LOCAL session_replication_role = replica".to_owned()],
            false => Vec::new(),
        }
    }

    fn keys(&self) -> Step {
        let key = quote(&self.key().name);
        let new = quote(&self.key().new_name());
        let mut write = self.quiet();
        write.push(format!(
            "UPDATE {table} AS it SET {new} = k.key FROM {work} AS w JOIN (VALUES {{rows}}) AS k (position, key) \
             ON k.position = w.position WHERE w.position > {{after}} AND w.position <= {{last}} AND it.{key} = w.old \
             AND it.{new} IS NULL",
            table = self.table(self.main()),
            work = self.work()
        ));
        Self::step(
            "keys",
            "Gives each listed row a key of its time, made by ordid, in chunks".to_owned(),
            "the rows of a chunk, until its COMMIT",
            self.rows(15_000.0),
            Action::Keys(Keys {
                session: Vec::new(),
                read: format!(
                    "SELECT position, micros FROM {} WHERE position > {{after}} ORDER BY position LIMIT {{chunk}}",
                    self.work()
                ),
                row: "({position},{key})".to_owned(),
                write,
            }),
        )
    }

    fn references(&self) -> Vec<Step> {
        let key = quote(&self.key().name);
        let new_key = quote(&self.key().new_name());
        let mut steps = Vec::new();
        for table in &self.found.tables {
            for (column, _) in table.references() {
                let (from, to) = (quote(&column.name), quote(&column.new_name()));
                if !is_indexed(table, column) {
                    let name = named_by_column("ordid_work_", &table.name, &column.name);
                    steps.push(Self::step(
                        "index",
                        format!(
                            "Builds an index on {}.{from}, by which its rows are found",
                            table.title()
                        ),
                        NONE,
                        self.rows(300_000.0),
                        Action::Online {
                            statements: vec![concurrently(
                                &table.schema,
                                &name,
                                &format!(
                                    "CREATE INDEX CONCURRENTLY {} ON {} ({from})",
                                    quote(&name),
                                    self.table(table)
                                ),
                            )],
                        },
                    ));
                }
                let (child, main) = (self.table(table), self.table(self.main()));
                let mut write = self.quiet();
                // A row that others change meanwhile has another place, and gets the new column from its trigger. After a VACUUM
                // FULL all rows have other places, and are listed again.
                write.push(format!(
                    "UPDATE {child} AS c SET {to} = it.{new_key} FROM {main} AS it WHERE c.ctid = ANY ('{{{{rows}}}}'::tid[]) AND \
                     it.{key} = c.{from} AND c.{to} IS NULL"
                ));
                let name = format!("{}.{}", table.title(), column.name);
                steps.push(
                    Self::step(
                        "references",
                        format!("Fills the new column of {name} in chunks"),
                        "the rows of a chunk, until its COMMIT",
                        self.rows(15_000.0),
                        Action::References(References {
                            read: format!(
                                "SELECT max(position) FROM (SELECT position FROM {} WHERE position > {{after}} ORDER BY position \
                                 LIMIT {{chunk}}) AS it",
                                self.work()
                            ),
                            session: Vec::new(),
                            collect: Vec::new(),
                            rows: format!(
                                "SELECT c.ctid FROM {} AS w JOIN {main} AS it ON it.{key} = w.old AND it.{new_key} IS NOT \
                                 NULL JOIN {child} AS c ON c.{from} = w.old WHERE w.position > {{after}} AND w.position <= {{last}} \
                                 AND c.{to} IS NULL ORDER BY w.position LIMIT {{limit}}",
                                self.work()
                            ),
                            row: "\"{row}\"".to_owned(),
                            write,
                        }),
                    )
                    .on(name),
                );
            }
        }
        steps
    }
}

/// Returns the span of times that a column does not tell apart, if that is more than a millisecond.
fn coarse_unit(sql_type: &str) -> Option<&'static str> {
    match sql_type {
        "date" => Some("1 day"),
        other if other.contains("(0)") => Some("1 second"),
        other if other.contains("(1)") => Some("100 milliseconds"),
        other if other.contains("(2)") => Some("10 milliseconds"),
        _ => None,
    }
}

/// Returns an expression of a time with a zone. Times without one are read as UTC. An infinite one is none.
fn moment(column: &str, sql_type: &str) -> String {
    let time = match sql_type.contains("with time zone") {
        true => column.to_owned(),
        false => format!("({column}::timestamp AT TIME ZONE 'UTC')"),
    };
    format!(
        "(CASE WHEN {} THEN NULL ELSE {time} END)",
        is_no_moment(column)
    )
}

/// The condition of times that no key can have.
pub(super) fn is_no_moment(column: &str) -> String {
    format!("NOT isfinite({column})")
}

/// Returns a text as a function's body writes it: its session may have `standard_conforming_strings` off, so that a backslash would
/// take the quote behind it into the text.
fn literal_anywhere(text: &str) -> String {
    match text.contains('\\') {
        true => format!("E{}", literal(&text.replace('\\', "\\\\"))),
        false => literal(text),
    }
}

/// Returns a text between dollar signs. A column's name may have any of these marks in it, so it takes one that the text
/// does not have.
fn dollar_quoted(text: &str) -> String {
    let mut mark = "$ordid$".to_owned();
    let mut number = 0;
    while text.contains(&mark) {
        number += 1;
        mark = format!("$ordid{number}$");
    }
    format!("{mark}{text}{mark}")
}

fn concurrently(schema: &str, name: &str, sql: &str) -> Statement {
    let index = Postgres::quote_table(Some(schema), name);
    Statement::new(sql)
        .unless(format!(
            "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass({}) AND indisvalid",
            literal(&index)
        ))
        .after(format!("DROP INDEX CONCURRENTLY IF EXISTS {index}"))
        .waiting()
}

//! Expansions: snapshots, one per combination of options, and the messages of mistakes.

mod snapshot;

use self::snapshot::{Derive, KEY_TYPE, KEY_TYPE_OPTIONS, assert_snapshot, expanded};
use crate::expand;

/// Returns the messages of all `compile_error!`s in the expansion.
fn errors(derive: Derive, input: &str) -> Vec<String> {
    let expansion = expanded(derive, input);
    let file = syn::parse_file(&expansion).expect("the expansion is a file");
    let [syn::Item::Const(item)] = &file.items[..] else {
        panic!("the expansion is one const");
    };
    let syn::Expr::Block(block) = &*item.expr else {
        panic!("the const is a block");
    };
    let macros = block
        .block
        .stmts
        .iter()
        .filter_map(|statement| match statement {
            syn::Stmt::Item(syn::Item::Macro(item)) => Some(&item.mac),
            syn::Stmt::Macro(statement) => Some(&statement.mac),
            _ => None,
        });
    macros
        .filter(|mac| {
            let last = mac.path.segments.last();
            last.is_some_and(|last| last.ident == "compile_error")
        })
        .map(|mac| {
            let text: syn::LitStr = mac.parse_body().expect("the message is a literal");
            text.value()
        })
        .collect()
}

#[test]
fn key_type_without_options() {
    KEY_TYPE.assert_snapshot();
}

#[test]
fn key_type_with_every_option() {
    KEY_TYPE_OPTIONS.assert_snapshot();
}

#[test]
fn key_type_with_an_adapter_s_own_choice() {
    assert_snapshot(
        "key_type_sqlx",
        expand::key_type,
        "#[ordid(sqlx)] struct OrderId(Uuid);",
    );
}

#[test]
fn key_type_with_several_adapters_and_without_order() {
    assert_snapshot(
        "key_type_adapters",
        expand::key_type,
        "#[ordid(scheme = snowflake, sqlx, oracle(oracle = unordered(number19)), \
         tiberius(sql_server = bigint, babelfish = unordered(bigint)))] struct OrderId(i64);",
    );
}

#[test]
fn key_type_with_a_renamed_adapter() {
    assert_snapshot(
        "key_type_sqlx_crate",
        expand::key_type,
        "#[ordid(sqlx(crate = storage::ordid_sqlx, mysql = mariadb_uuid))] struct OrderId(Uuid);",
    );
}

#[test]
fn key_type_with_adapters_of_other_crates() {
    assert_snapshot(
        "key_type_adapter_paths",
        expand::key_type,
        "#[ordid(adapter = duckdb, adapter = crate::memory(vec = unordered(uuid), map = text))] \
         #[ordid(adapter = ::ledger(unordered(char22)))] struct OrderId(Uuid);",
    );
    let of = |options: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId(Uuid);"),
        )
    };
    let usage = "expected `adapter = my_crate`, `adapter = my_crate(column)` or `adapter = my_crate(engine = column)`";
    for wrong in [
        "adapter",
        "adapter = ",
        "adapter(memory)",
        "adapter = \"memory\"",
        "adapter = memory()",
        "adapter = memory<u8>",
    ] {
        assert_eq!(of(wrong), [usage], "{wrong}");
    }
    assert_eq!(
        of("adapter = a, adapter = b(x = y), adapter = c::a, adapter = c::a(x = z)"),
        ["duplicate adapter `c::a`"]
    );
    assert_eq!(
        of("adapter = memory(crate = storage::memory, vec = uuid)"),
        ["the adapter's path says where it is: write it in place of this one"]
    );
    assert_eq!(
        of("adapter = memory(vec = uuid, vec = text, map = \"uuid\", set(uuid), list)"),
        [
            "duplicate engine `vec`",
            "expected `map = column` or `map = unordered(column)`",
            "expected `set = column` or `set = unordered(column)`",
            "expected `list = column` or `list = unordered(column)`",
        ]
    );
}

/// An adapter that is given no options chooses the columns. Its word and its path expand alike.
#[test]
fn an_adapter_s_word_stands_for_its_path() {
    let of = |options: &str| {
        let input = format!("#[ordid({options})] struct OrderId(Uuid);");
        expanded(expand::key_type, &input)
    };
    for (word, path) in [
        ("diesel", "::ordid_diesel"),
        ("mysql_async", "::ordid_mysql_async"),
        ("oracle", "::ordid_oracle"),
        ("rusqlite", "::ordid_rusqlite"),
        ("sea_orm", "::ordid_seaorm"),
        ("sqlx", "::ordid_sqlx"),
        ("tiberius", "::ordid_tiberius"),
        ("tokio_postgres", "::ordid_tokio_postgres"),
    ] {
        assert_eq!(of(word), of(&format!("adapter = {path}")));
        let columns = "(mysql = unordered(binary16))";
        assert_eq!(
            of(&format!("{word}{columns}")),
            of(&format!("adapter = {path}{columns}"))
        );
    }
}

#[test]
fn key_type_of_a_scheme_with_its_default_parameter() {
    assert_snapshot(
        "key_type_scheme_default",
        expand::key_type,
        "#[ordid(scheme = snowflake)] struct OrderId(i64);",
    );
}

#[test]
fn key_type_of_a_scheme_with_a_parameter_by_name_or_path() {
    assert_snapshot(
        "key_type_scheme_preset",
        expand::key_type,
        "#[ordid(scheme = snowflake(layout = Sonyflake), crate = keys)] struct OrderId(i64);",
    );
    assert_snapshot(
        "key_type_scheme_own",
        expand::key_type,
        "#[ordid(scheme = snowflake(layout = keys::Compact<Orders>))] struct OrderId(i64);",
    );
}

#[test]
fn key_type_of_a_snowflake_of_bits_or_of_a_need_or_of_another_epoch() {
    assert_snapshot(
        "key_type_snowflake_bits",
        expand::key_type,
        r#"
        #[ordid(scheme = snowflake(
            epoch = "2026-01-01", unit = 10, time = 39, node = 0x10, sequence = 8
        ))]
        struct OrderId(i64);
        "#,
    );
    assert_snapshot(
        "key_type_snowflake_need",
        expand::key_type,
        "#[ordid(scheme = snowflake(epoch = 1_767_225_600_000, years = 20, ids_per_second = 2))] \
         struct OrderId(i64);",
    );
    assert_snapshot(
        "key_type_snowflake_epoch",
        expand::key_type,
        "#[ordid(scheme = snowflake(layout = BaiduUid<7>, epoch = \"2026-01-01\"))] \
         struct OrderId(i64);",
    );
}

#[test]
fn key_type_of_a_scheme_that_spreads() {
    assert_snapshot(
        "key_type_spread",
        expand::key_type,
        "#[ordid(scheme = uuid_v7_spread(buckets = 64))] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_spread_default",
        expand::key_type,
        "#[ordid(scheme = uuid_v7_spread)] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_snowflake_spread",
        expand::key_type,
        "#[ordid(scheme = snowflake_spread(buckets = 4, epoch = \"2026-01-01\"))] struct OrderId(i64);",
    );
    assert_snapshot(
        "key_type_snowflake_spread_need",
        expand::key_type,
        "#[ordid(scheme = snowflake_spread(buckets = 8, epoch = 0, years = 20, ids_per_second = 2))] \
         struct OrderId(i64);",
    );
    assert_snapshot(
        "key_type_snowflake_spread_bits",
        expand::key_type,
        "#[ordid(scheme = snowflake_spread(buckets = 32, epoch = \"2026-01-01\", time = 41, node = 8, sequence = 9))] \
         struct OrderId(i64);",
    );
}

#[test]
fn key_type_of_a_scheme_whose_generator_a_parameter_settles() {
    assert_snapshot(
        "key_type_node",
        expand::key_type,
        "#[ordid(scheme = uuid_v6(node = Fixed<0x0100_0000_0007>), crate = keys)] \
         struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_node_own",
        expand::key_type,
        "#[ordid(scheme = uuid_v1(node = nodes::Random))] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_period",
        expand::key_type,
        "#[ordid(scheme = uuid_v4_clustered_compat(period = Minute))] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_machine",
        expand::key_type,
        "#[ordid(scheme = object_id(machine = HostAndProcess))] struct OrderId(ObjectId);",
    );
}

#[test]
fn key_type_with_a_bucket_in_front() {
    assert_snapshot(
        "key_type_scatter",
        expand::key_type,
        "#[ordid(scatter(buckets = 16))] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_scatter_bits",
        expand::key_type,
        "#[ordid(scatter(buckets = 16, lowest_bit = 80))] struct OrderId(Uuid);",
    );
    assert_snapshot(
        "key_type_scatter_mistake",
        expand::key_type,
        "#[ordid(scatter(buckets = 0))] struct OrderId(Uuid);",
    );
}

#[test]
fn key_type_with_a_mask() {
    assert_snapshot(
        "key_type_mask",
        expand::key_type,
        "#[ordid(scheme = uuid_v7_unguessable, mask = secrets::MASK)] struct OrderId(Uuid);",
    );
}

#[test]
fn key_type_that_accepts_any_version() {
    assert_snapshot(
        "key_type_accept",
        expand::key_type,
        "#[ordid(accept = any_version)] struct OrderId(Uuid);",
    );
    let of = |options: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId(Uuid);"),
        )
    };
    for wrong in ["accept = version_4", "accept", "accept = \"any_version\""] {
        assert_eq!(of(wrong), ["expected `accept = any_version`"]);
    }
    assert_eq!(
        of("accept = any_version, accept = any_version"),
        ["duplicate option `accept`"]
    );
}

#[test]
fn key_type_that_is_a_number_in_json() {
    assert_snapshot(
        "key_type_json",
        expand::key_type,
        "#[ordid(scheme = snowflake(epoch = \"2026-01-01\", years = 20, ids_per_second = 1_000), \
         json = number)] struct OrderId(i64);",
    );
    let of = |options: &str, raw: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId({raw});"),
        )
    };
    for wrong in ["json = text", "json", "json = \"number\""] {
        let options = format!("scheme = snowflake, {wrong}");
        assert_eq!(of(&options, "i64"), ["expected `json = number`"]);
    }
    assert_eq!(
        of("json = number, prefix = \"ord\"", "Uuid"),
        [
            "keys of scheme `uuid_v7` are not numbers: take `json` off, or take a `snowflake` of at most \
             53 bits, such as `snowflake(epoch = \"2026-01-01\", years = 20, ids_per_second = 1_000)`",
            "a number has no prefix: take `prefix` or `json` off",
        ]
    );
    assert_eq!(
        of("json = number, scheme = sequence", "i64"),
        [
            "keys of scheme `sequence` may be 2^53 or more, and many readers of JSON round such numbers: \
          take `json` off, or take a `snowflake` of at most 53 bits, such as `snowflake(epoch = \
          \"2026-01-01\", years = 20, ids_per_second = 1_000)`"
        ]
    );
}

#[test]
fn key_type_with_short_ids() {
    assert_snapshot(
        "key_type_short",
        expand::key_type,
        "#[ordid(scheme = sequence, short = settings::SHORT)] struct OrderId(i64);",
    );
    let of = |options: &str, raw: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId({raw});"),
        )
    };
    for wrong in ["short", "short = \"abc\"", "short(SHORT)"] {
        let options = format!("scheme = sequence, {wrong}");
        assert_eq!(of(&options, "i64"), ["expected `short = SHORT`"]);
    }
    assert_eq!(
        of("short = SHORT, short = SHORT", "Uuid"),
        [
            "duplicate option `short`",
            "keys of scheme `uuid_v7` are not integers and have no short ids: take `short` off, or take a scheme of \
             integers, such as `snowflake` or `sequence`",
        ]
    );
}

#[test]
fn every_mistake_in_parameters_is_reported_at_once() {
    let of = |options: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId(i64);"),
        )
    };
    assert_eq!(
        of(
            "scheme = snowflake(tme = 41, node = 64, unit = \"ms\", epoch = \"1.1.2026\", nodes, \
            layout = 7, layout = Twitter)"
        ),
        [
            "duplicate option `layout`",
            "unknown option `tme`; did you mean `time`? (options: layout, epoch, unit, time, node, \
             sequence, years, ids_per_second, nodes)",
            "expected a number from 0 to 63, as in `node = 10`",
            "expected a number from 1 to 4294967295, as in `unit = 10`",
            "expected a day from 1970 on, or milliseconds since then: `epoch = \"2026-01-01\"` or \
             `epoch = 1_767_225_600_000`",
            "expected a number from 1 to 4294967295, as in `nodes = 4`",
            "expected a type, as in `layout = Sonyflake`",
        ]
    );
    assert_eq!(
        of("scheme = snowflake(epoch = 0, time = 41, node = 11, sequence = 12)"),
        ["time, node and sequence have 41 + 11 + 12 = 64 bits, and a key has 63: take 1 off"]
    );
    assert_eq!(
        of("scheme = snowflake(time = 41, sequence = 12)"),
        [
            "beside `time` say `epoch` and `node` too: write `snowflake(epoch = \"2026-01-01\", \
             time = 41, node = 10, sequence = 12)`"
        ]
    );
    let two_ways = of("scheme = snowflake(layout = Twitter, time = 41, years = 7)");
    assert_eq!(two_ways.len(), 2, "{two_ways:?}");
    for (message, other) in two_ways.iter().zip(["time", "years"]) {
        let start = format!("`layout` and `{other}` say the same in two ways: write `snowflake(");
        assert!(message.starts_with(&start), "{message}");
    }
    assert_eq!(
        of("scheme = snowflake, scatter(buckets = 1_000, lowest_bit = 0, bucket = 7)"),
        [
            "unknown option `bucket`; did you mean `buckets`? (options: buckets, lowest_bit)",
            "reversed bits make a power of two of buckets: write `buckets = 1024`",
        ]
    );
    assert_eq!(
        of("scheme = snowflake, scatter(buckets = 16, lowest_bit = 61), scatter = 7"),
        [
            "expected `scatter(buckets = 16)` or `scatter(buckets = 16, lowest_bit = 80)`",
            "a key of scheme `snowflake` has 64 bits, and none from 61 on for 16 buckets: write \
             `lowest_bit = 60`, or less",
        ]
    );
}

#[test]
fn buckets_are_a_power_of_two_that_leaves_room() {
    let of = |scheme: &str, raw: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid(scheme = {scheme})] struct OrderId({raw});"),
        )
    };
    for wrong in ["1", "3", "512", "\"16\"", "Many"] {
        assert_eq!(
            of(&format!("uuid_v7_spread(buckets = {wrong})"), "Uuid"),
            ["expected a power of two from 2 to 256, as in `buckets = 16`"]
        );
    }
    assert_eq!(
        of("uuid_v7_spread(bucket = 16)", "Uuid"),
        [
            "unknown option `bucket` of scheme `uuid_v7_spread`: write `scheme = uuid_v7_spread(buckets = 16)`"
        ]
    );
    assert_eq!(
        of("snowflake_spread(buckets = 32)", "i64"),
        [
            "32 buckets leave 58 bits, and time, node and sequence have 59 where nothing else is said: write \
             `snowflake_spread(buckets = 32, epoch = \"2026-01-01\", time = 41, node = 8, sequence = 9)`"
        ]
    );
    assert_eq!(
        of(
            "snowflake_spread(epoch = 0, time = 41, node = 8, sequence = 12)",
            "i64"
        ),
        [
            "time, node and sequence have 41 + 8 + 12 = 61 bits, and a key has 59 beside 16 buckets: take 2 off"
        ]
    );
    assert_eq!(
        of("snowflake_spread(buckets = 8, time = 41)", "i64"),
        [
            "beside `time` say `epoch` and `node` and `sequence` too: write `snowflake_spread(buckets = 16, epoch = \
             \"2026-01-01\", time = 41, node = 8, sequence = 10)`"
        ]
    );
    assert_eq!(
        of("uuid_v7_spread, accept = any_version", "Uuid"),
        ["a key of another version has no bucket of scheme `uuid_v7_spread`: take `accept` off"]
    );
    assert_eq!(
        of("uuid_v7_spread, mask = MASK", "Uuid"),
        [
            "keys of scheme `uuid_v7_spread` cannot be masked: take `mask` off, or take one of uuid_v7, \
             uuid_v7_sub_millis, uuid_v7_unguessable"
        ]
    );
}

#[test]
fn an_unknown_scheme_says_nothing_of_its_raw_key() {
    let found = errors(
        expand::key_type,
        "#[ordid(scheme = snowflak)] struct OrderId(i64);",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("unknown scheme `snowflak`; did you mean `snowflake`? (schemes: ")
    );
}

#[test]
fn key_type_after_a_mistake() {
    assert_snapshot(
        "key_type_mistake",
        expand::key_type,
        "#[ordid(prefx = \"ord\")] struct OrderId { id: Uuid }",
    );
}

#[test]
fn entity_without_options() {
    assert_snapshot(
        "entity",
        expand::ordered_key,
        "struct OrderLine { id: OrderLineId, note: String, remark: String }",
    );
}

#[test]
fn entity_with_every_option_of_the_struct() {
    assert_snapshot(
        "entity_options",
        expand::ordered_key,
        r#"
        #[ordid(table = "orders", schema = "shop", rename_all = "camelCase", crate = ordid_core, columns, uncounted)]
        struct Order { order_id: Uuid, #[ordid(key)] row_id: Option<OrderId> }
        "#,
    );
}

#[test]
fn entity_with_every_option_of_a_field() {
    assert_snapshot(
        "entity_fields",
        expand::ordered_key,
        r#"
        struct Order {
            #[ordid(key, column = "order_id")]
            key: OrderId,
            #[ordid(parent)]
            customer: CustomerId,
            #[ordid(parent = Address, deferrable)]
            ship_to: Uuid,
            #[ordid(parent = Self, column = "replaces_id")]
            replaces: Option<OrderId>,
            #[ordid(skip)]
            cache: Vec<u8>,
            r#type: String,
        }
        "#,
    );
}

#[test]
fn entity_with_a_key_of_several_columns() {
    assert_snapshot(
        "entity_composite",
        expand::ordered_key,
        "struct OrderLine { #[ordid(key, parent)] order: OrderId, note: String, #[ordid(key)] number: Option<i32> }",
    );
}

#[test]
fn entity_with_a_version() {
    assert_snapshot(
        "entity_version",
        expand::ordered_key,
        "struct OrderLine { id: OrderLineId, #[ordid(version)] changes: i64, note: String }",
    );
}

#[test]
fn entity_with_columns_that_the_database_fills() {
    assert_snapshot(
        "entity_returning",
        expand::ordered_key,
        r#"
        #[ordid(columns)]
        struct OrderLine {
            id: OrderLineId,
            #[sqlx(try_from = "i64")]
            #[ordid(returning, column = "line_number")]
            number: Assigned<i64>,
            note: String,
            #[ordid(returning)]
            #[diesel(skip_insertion)]
            position: Assigned<i64>,
        }
        "#,
    );
    assert_snapshot(
        "entity_returning_diesel",
        expand::ordered_key,
        r"
        #[diesel(table_name = order_line)]
        #[ordid(diesel)]
        struct OrderLine { id: OrderLineId, #[ordid(returning)] number: Assigned<i64>, note: String }
        ",
    );
    assert_snapshot(
        "entity_returning_sea_orm",
        expand::ordered_key,
        r#"
        #[sea_orm(table_name = "order_line")]
        #[ordid(columns)]
        struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            id: OrderLineId,
            #[ordid(returning)]
            number: Assigned<i64>,
            note: String,
        }
        "#,
    );
}

#[test]
fn a_model_of_sea_orm_has_the_columns_that_sea_orm_counts() {
    let of = |fields: &str| {
        errors(
            expand::ordered_key,
            &format!(
                "#[sea_orm(table_name = \"notes\")] #[ordid(columns)] struct Model {{ #[sea_orm(primary_key, auto_increment = false)] id: NoteId, {fields} }}"
            ),
        )
    };
    let refused =
        ["SeaORM has a column for this field: write `#[sea_orm(ignore)]` in place of `skip`"];
    assert_eq!(of("#[ordid(skip)] slug: String, title: String"), refused);
    assert_eq!(of("#[sqlx(skip)] slug: String, title: String"), refused);
    let none: [&str; 0] = [];
    assert_eq!(of("#[sea_orm(ignore)] slug: String, title: String"), none);
    assert_eq!(of("#[sea_orm(ignore)] #[ordid(skip)] slug: String"), none);
    let plain = "#[ordid(sea_orm(crate = a))] struct Order { id: OrderId }";
    assert_eq!(
        errors(expand::ordered_key, plain),
        [
            "only a model of SeaORM has its adapter: write `#[sea_orm(table_name = \"..\")]`, or take `sea_orm` off"
        ]
    );
}

#[test]
fn a_model_of_sea_orm_has_the_names_of_sea_orm() {
    let found = errors(
        expand::ordered_key,
        r#"
        #[sea_orm(table_name = "notes")]
        #[ordid(table = "note", schema = "shop", rename_all = "camelCase")]
        struct Model {
            #[sea_orm(primary_key, auto_increment = false)]
            #[ordid(column = "note_id")]
            id: NoteId,
            #[ordid(returning, column = "n")]
            number: Assigned<i64>,
        }
        "#,
    );
    let instead = |theirs, own| {
        format!(
            "a model of SeaORM has SeaORM's names: write `#[sea_orm({theirs})]` in place of `{own}`"
        )
    };
    assert_eq!(
        found,
        [
            instead("schema_name = \"shop\"", "schema"),
            instead("table_name = \"note\"", "table"),
            instead("rename_all = \"camelCase\"", "rename_all"),
            instead("column_name = \"note_id\"", "column"),
            instead("column_name = \"n\"", "column"),
        ]
    );
}

/// SQLx's and Diesel's names are of other structs.
#[test]
fn a_model_of_sea_orm_does_not_have_the_names_of_other_libraries() {
    let names = |attribute: &str| {
        let model = format!(
            "#[sea_orm(table_name = \"notes\")] #[sqlx(rename_all = \"camelCase\")] struct Model {{ #[sea_orm(primary_key, auto_increment = false)] {attribute} note_id: NoteId }}"
        );
        expanded(expand::ordered_key, &model)
    };
    for attribute in [
        "",
        "#[sqlx(rename = \"note\")]",
        "#[diesel(column_name = note)]",
    ] {
        let names = names(attribute);
        assert!(names.contains(r#"KEY_COLUMN : & 'static ::ordid::__private::str = "note_id""#));
    }
}

#[test]
fn a_model_of_sea_orm_may_be_of_a_view() {
    let tokens = |options: &str| {
        let model = format!(
            "#[sea_orm(table_name = \"notes\")] {options} struct Model {{ #[sea_orm(primary_key, auto_increment = false)] id: NoteId }}"
        );
        expanded(expand::ordered_key, &model)
    };
    assert!(tokens("#[ordid(uncounted)]").contains("COUNTS_INSERTS"));
    assert!(!tokens("").contains("COUNTS_INSERTS"));
}

#[test]
fn a_scattered_key_is_not_masked() {
    let found = errors(
        expand::key_type,
        "#[ordid(scheme = uuid_v7, mask = MASK, scatter(buckets = 16))] struct OrderId(Uuid);",
    );
    assert_eq!(
        found,
        ["a scattered key shows what `mask` hides: take `mask` or `scatter` off"]
    );
}

#[test]
fn entity_with_generics() {
    assert_snapshot(
        "entity_generics",
        expand::ordered_key,
        r#"
        struct Node<'a, T: Clone = i64, const N: usize = 4>
        where
            T: Into<i64>,
        {
            id: NodeId,
            #[ordid(parent = Node<'a, T, N>)]
            above: Option<NodeId>,
            #[ordid(parent = Tree)]
            tree: TreeId,
            name: &'a str,
            value: T,
            bytes: [u8; N],
        }
        "#,
    );
}

#[test]
fn entity_beside_sqlx() {
    assert_snapshot(
        "entity_sqlx",
        expand::ordered_key,
        r#"
        #[sqlx(rename_all = "SCREAMING_SNAKE_CASE", default)]
        struct Order {
            id: OrderId,
            line_total: i64,
            #[sqlx(rename = "vatRate", try_from = "i32")]
            vat_rate: Rate,
            #[sqlx(rename = "a")]
            #[ordid(column = "b")]
            both: i64,
            #[sqlx(skip)]
            cache: Cache,
            #[sqlx(flatten)]
            #[ordid(skip)]
            address: Address,
            extra: Option<Json<Extra>>,
        }
        "#,
    );
}

#[test]
fn key_type_of_an_adapter_with_something_of_a_type_s_own() {
    assert_snapshot(
        "key_type_diesel",
        expand::key_type,
        "#[ordid(diesel(postgres = uuid, sqlite = unordered(blob)))] struct OrderId(Uuid);",
    );
}

#[test]
fn entity_beside_diesel() {
    assert_snapshot(
        "entity_diesel",
        expand::ordered_key,
        r#"
        #[ordid(diesel)]
        #[diesel(table_name = crate::schema::orders, primary_key(order_id))]
        #[diesel(belongs_to(Customer), check_for_backend(diesel::pg::Pg))]
        struct Order {
            #[diesel(column_name = order_id)]
            key: OrderId,
            #[diesel(column_name = "type_")]
            kind: String,
            #[diesel(skip_insertion, skip_update, serialize_as = i64)]
            #[ordid(skip)]
            sum: i64,
            #[diesel(embed)]
            #[ordid(skip)]
            address: Address,
            #[diesel(select_expression = now())]
            r#type: Option<String>,
        }
        "#,
    );
}

/// Diesel takes the text of a keyword for the raw identifier.
#[test]
fn a_column_of_diesel_may_have_the_name_of_a_keyword() {
    let names = |field: &str| {
        let order = format!(
            "#[ordid(diesel)] #[diesel(table_name = pets)] struct Pet {{ id: PetId, {field} kind: String }}"
        );
        expanded(expand::ordered_key, &order).replace([' ', '\n'], "")
    };
    for (field, name, column) in [
        ("#[diesel(column_name = \"type\")]", "type", "r#type"),
        ("#[diesel(column_name = r#type)]", "type", "r#type"),
        ("#[diesel(column_name = \"type_\")]", "type_", "type_"),
    ] {
        let found = names(field);
        assert!(found.contains(&format!("[\"id\",\"{name}\"]")), "{found}");
        assert!(
            found.contains(&format!("pets::{column}:AsValueString")),
            "{found}"
        );
    }
    let is_key = "#[diesel(primary_key(r#type))] struct Pet { #[diesel(column_name = \"type\")] kind: PetId }";
    assert!(expanded(expand::ordered_key, is_key).contains("KeyField::get(&self.kind)"));
    for wrong in ["\"self\"", "\"two words\"", "\"\"", "pets::kind"] {
        let pet =
            format!("struct Pet {{ id: PetId, #[diesel(column_name = {wrong})] kind: String }}");
        assert_eq!(
            errors(expand::ordered_key, &pet),
            ["expected the name of a column in Diesel's `table!`, as in `column_name = type_`"]
        );
    }
}

#[test]
fn attributes_of_diesel_that_a_unit_of_work_would_not_follow_are_reported() {
    let of = |diesel: &str, field: &str| {
        errors(
            expand::ordered_key,
            &format!(
                "#[diesel(table_name = orders)] {diesel} struct Order {{ id: OrderId, {field} }}"
            ),
        )
    };
    let skipped = [
        "a unit of work would leave the column out of updates, too, where `AsChangeset` writes it: take `skip_insertion` \
         off, or write `#[ordid(returning)]` if the database fills the column, or `#[ordid(skip)]` if no unit of work \
         writes it",
    ];
    let unwritten = [
        "an update of a unit of work would write the column, which `skip_update` does not change: take `skip_update` off, \
         name the columns to write by `update_columns`, and derive `AsChangeset` for a struct without the column",
    ];
    let other_type = [
        "a flush would write the field by its own type, which `serialize_as` does not change: give the field that type, \
         and take `serialize_as` off",
    ];
    for (attribute, expected) in [
        ("skip_insertion", skipped),
        ("skip_update", unwritten),
        ("serialize_as = Text", other_type),
    ] {
        let field = |own: &str, ty: &str| format!("#[diesel({attribute})] {own} note: {ty}");
        let diesel = "#[ordid(diesel)]";
        assert_eq!(of(diesel, &field("", "String")), expected);
        let none: [&str; 0] = [];
        assert_eq!(of("", &field("", "String")), none);
        assert_eq!(of(diesel, &field("#[ordid(skip)]", "String")), none);
        assert_eq!(
            of(diesel, &field("#[ordid(returning)]", "Assigned<i64>")),
            none
        );
    }
    let key = "#[ordid(key)] #[diesel(serialize_as = String)] key: OrderId";
    assert_eq!(of("#[ordid(diesel)]", key), other_type);
    // No update writes a key.
    let key = "#[ordid(key)] #[diesel(skip_update)] key: OrderId";
    let none: [&str; 0] = [];
    assert_eq!(of("#[ordid(diesel)]", key), none);
}

#[test]
fn what_diesel_s_attributes_contradict_is_reported() {
    let found = errors(
        expand::ordered_key,
        r#"
        #[ordid(diesel)]
        #[diesel(primary_key(number))]
        struct Order<T> {
            #[ordid(key)]
            id: OrderId,
            number: T,
            #[diesel(embed)]
            address: Address,
        }
        "#,
    );
    assert_eq!(
        found,
        [
            "the ordered key is `id`, but Diesel's primary key is `number`",
            "its columns are those of a `table!`: name it, `#[diesel(table_name = orders)]`",
            "a struct with parameters has no columns of its own in a `table!`: write one struct per \
             table",
            "a flattened field has no column of its own: list its fields in this struct, or add \
             `#[ordid(skip)]`",
        ]
    );
    let found = errors(
        expand::ordered_key,
        "#[diesel(primary_key(order, line))] struct Line { order: OrderId, line: i32, #[ordid(key)] id: LineId }",
    );
    assert_eq!(
        found,
        ["the ordered key is `id`, but Diesel's primary key is `order`, `line`"]
    );
    let of_two = "#[diesel(primary_key(line, order))] struct Line { order: OrderId, line: i32 }";
    assert_eq!(errors(expand::ordered_key, of_two), [""; 0]);
}

#[test]
fn entity_of_seaorm() {
    assert_snapshot(
        "entity_sea_orm",
        expand::ordered_key,
        r#"
        #[sea_orm(table_name = "order", schema_name = "shop", rename_all = "camelCase")]
        #[ordid(sea_orm(crate = storage::ordid_seaorm))]
        struct Model {
            #[sea_orm(column_name = "total_cents", default_value = -1)]
            line_total: i64,
            #[sea_orm(primary_key, auto_increment = false)]
            order_key: OrderId,
            #[ordid(parent, deferrable)]
            customer: Option<CustomerId>,
            #[ordid(parent = super::shop::ActiveModel)]
            shop: Uuid,
            #[sea_orm(ignore)]
            cache: Cache,
        }
        "#,
    );
    // The copy that `#[sea_orm::model]` makes.
    let copy = r#"#[sea_orm(table_name = "order")] struct ModelEx { id: OrderId }"#;
    assert_eq!(expanded(expand::ordered_key, copy), "");
}

#[test]
fn mistakes_in_a_column_that_the_database_fills_are_reported() {
    let of = |fields: &str| errors(expand::ordered_key, &format!("struct Order {{ {fields} }}"));
    assert_eq!(
        of("#[ordid(key, returning)] id: OrderId"),
        ["the key is made by the client, and the row is found by it: take `returning` off"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(parent, returning)] a: CustomerId"),
        [
            "a foreign key is written by the program, as rows are ordered by it: take `returning` off"
        ]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(version, returning)] a: i64"),
        ["the version is written by the unit of work, which knows it: take `returning` off"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(skip, returning)] a: Assigned<i64>"),
        ["a field with `returning` is a column that a flush reads: take `skip` off"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(returning)] #[sea_orm(ignore)] a: Assigned<i64>"),
        ["a field with `returning` is a column that a flush reads: take `ignore` off"]
    );
    assert_eq!(
        of(r#"id: OrderId, a: i64, #[ordid(returning, column = "a")] b: Assigned<i64>"#),
        ["column `a` is the field `a` already"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(returning = now)] a: Assigned<i64>"),
        ["expected `returning`"]
    );
}

#[test]
fn mistakes_in_the_fields_of_a_parent_s_key_are_reported() {
    let line = |parent: &str| {
        format!("struct Line {{ id: LineId, tenant: TenantId, #[ordid({parent})] issue: IssueId }}")
    };
    let of = |parent: &str| errors(expand::ordered_key, &line(parent));
    for entity in ["Issue", "shop::Issue<Shop>"] {
        let right = line(&format!("parent = {entity}(tenant, issue)"));
        assert_eq!(errors(expand::ordered_key, &right), [""; 0]);
        let expansion = expanded(expand::ordered_key, &right).replace([' ', '\n'], "");
        assert!(
            expansion.contains(&format!("(TenantId,IssueId)>,{entity},>(\"issue\")")),
            "{expansion}"
        );
    }
    assert_eq!(
        of("parent = Issue(issue, issue)"),
        ["`issue` is named twice: name one field for each column of the parent's key"]
    );
    for (few, parent) in [
        ("parent = Issue(issue)", "Issue"),
        ("parent = shop::Issue<Shop>()", "shop::Issue<Shop>"),
    ] {
        assert_eq!(
            of(few),
            [format!(
                "a parent whose key has one column is named without fields, and one whose key has several with all of them: \
                 write `parent = {parent}` or `parent = Issue(tenant, issue)`"
            )]
        );
    }
    for wrong in [
        "parent = Issue(tenant = issue, issue)",
        "parent = \"Issue\"",
    ] {
        assert_eq!(
            of(wrong).first().map(String::as_str),
            Some("expected `parent`, `parent = Customer` or `parent = Issue(tenant, issue)`")
        );
    }
}

/// The compiler checks the length where the types are known, and at one of them.
#[test]
fn a_key_of_several_columns_is_checked_for_its_length() {
    let length = |entity: &str| {
        let tokens = expanded(expand::ordered_key, entity).replace([' ', '\n'], "");
        tokens.contains("check_key_length(&[")
    };
    let fields = "#[ordid(key)] a: A, #[ordid(key)] b: B";
    assert!(length(&format!("struct Pair {{ {fields} }}")));
    assert!(!length(&format!("struct Pair<T> {{ {fields}, t: T }}")));
    assert!(!length("struct One { id: A }"));
    let key = "#[sea_orm(primary_key, auto_increment = false)]";
    let model =
        format!("#[sea_orm(table_name = \"pair\")] struct Model {{ {key} a: A, {key} b: i32 }}");
    assert!(length(&model));
}

#[test]
fn mistakes_in_a_version_are_reported() {
    let of = |fields: &str| errors(expand::ordered_key, &format!("struct Order {{ {fields} }}"));
    assert_eq!(
        of("id: OrderId, #[ordid(version)] a: i32, #[ordid(version)] b: i32"),
        [
            "a row has one version",
            "the first field that is marked `#[ordid(version)]`"
        ]
    );
    assert_eq!(
        of("#[ordid(version)] id: OrderId"),
        ["the key cannot be the version: it stays the same while the row changes"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(version, skip)] a: i32"),
        ["the version has to be a column: take `skip` off"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(version, parent)] a: CustomerId"),
        ["a foreign key cannot be the version"]
    );
    assert_eq!(
        of("id: OrderId, #[ordid(version = 1)] a: i32"),
        ["expected `version`"]
    );
}

#[test]
fn every_mistake_in_a_model_of_seaorm_is_reported_at_once() {
    let of = |attrs: &str, fields: &str| {
        errors(
            expand::ordered_key,
            &format!(r#"#[sea_orm(table_name = "order")] {attrs} struct Model {{ {fields} }}"#),
        )
    };
    let asked = "the key `id` is made by the client, and SeaORM would ask the database for it: write \
                 `#[sea_orm(primary_key, auto_increment = false)]`";
    assert_eq!(
        of(
            "",
            "#[sea_orm(primary_key)] id: Option<OrderId>, #[ordid(key)] uid: OrderId"
        ),
        [
            "the ordered key is `uid`, but SeaORM's primary key is `id`: mark one and the same",
            asked,
            "a primary key cannot be NULL: write the key type without `Option`, and leave the field of \
             the `ActiveModel` `NotSet` while it has no key",
        ]
    );
    // By a part of the key, rows of other items would be found, too.
    assert_eq!(
        of(
            "",
            "#[sea_orm(primary_key, auto_increment = false)] #[ordid(key)] order: OrderId, \
             #[sea_orm(primary_key, auto_increment = false)] #[ordid(key)] item: ItemId, \
             #[sea_orm(primary_key, auto_increment = false)] number: i32"
        ),
        [
            "the ordered key is `order`, `item`, but SeaORM's primary key is `order`, `item`, `number`: \
             mark one and the same"
        ]
    );
    assert_eq!(
        of(
            "",
            "#[sea_orm(primary_key, auto_increment = true)] id: Uuid"
        ),
        ["the key `id` is made by the client: write `auto_increment = false`"]
    );
    // SeaORM knows by the name that such keys are not made by the database.
    assert_eq!(of("", "#[sea_orm(primary_key)] id: uuid::Uuid"), [""; 0]);
    assert_eq!(of("", "#[sea_orm(primary_key)] id: OrderId"), [asked]);
    assert_eq!(
        of("", "id: OrderId"),
        ["no primary key: mark the key `#[sea_orm(primary_key, auto_increment = false)]`"]
    );
    assert_eq!(
        of(
            "",
            "#[sea_orm(primary_key, auto_increment = false)] id: OrderId, \
             #[sea_orm(primary_key, auto_increment = false)] year: i32"
        ),
        [""; 0]
    );
    assert_eq!(
        of("#[sea_orm::model]", "#[sea_orm(primary_key)] id: OrderId"),
        [
            "`OrderedKey` has to see what this makes of the struct: put `#[derive(.., OrderedKey)]` below \
          `#[sea_orm::model]`"
        ]
    );
    assert_eq!(
        of(
            "#[ordid(sea_orm)]",
            "#[sea_orm(primary_key, auto_increment = false)] id: OrderId"
        ),
        ["expected `sea_orm(crate = path::to::ordid_seaorm)`"]
    );
}

#[test]
fn key_type_in_one_column_of_seaorm() {
    assert_snapshot(
        "key_type_sea_orm",
        expand::key_type,
        "#[ordid(sea_orm(crate = storage::ordid_seaorm, unordered(char22)))] struct OrderId(Uuid);",
    );
    let of = |options: &str| {
        errors(
            expand::key_type,
            &format!("#[ordid({options})] struct OrderId(Uuid);"),
        )
    };
    let twice = "one column is for all engines: keep one, or write `engine = column` for each";
    assert_eq!(of("sea_orm(uuid, char22)"), [twice]);
    assert_eq!(of("sea_orm(uuid, unordered(uuid))"), [twice]);
    assert_eq!(
        of("sea_orm(uuid, mysql = binary16)"),
        ["expected `uuid = column` or `uuid = unordered(column)`"]
    );
}

#[test]
fn entity_after_a_mistake() {
    assert_snapshot(
        "entity_mistake",
        expand::ordered_key,
        "#[ordid(tabel = \"orders\")] struct Order<T> { #[ordid(kee)] order_id: OrderId, value: T }",
    );
}

#[test]
fn every_mistake_is_reported_at_once() {
    assert_eq!(
        errors(
            expand::ordered_key,
            r#"
            #[ordid(table = orders, , schema)]
            #[ordid(rename_all = "camel_case" key)]
            #[ordid]
            struct Order {
                #[ordid(key = 1, column = "")]
                a: OrderId,
                #[ordid(parent, parent = Customer)]
                b: CustomerId,
                #[ordid(skip, skip, + 1, column = "x")]
                c: i64,
            }
            "#,
        ),
        [
            "expected the name of an option",
            "expected `,`",
            "expected `#[ordid(table = \"orders\")]`",
            "expected `table = \"orders\"`",
            "expected `schema = \"shop\"`",
            "`key` is an option of an entity's field",
            "expected `key`",
            "`column` is empty",
            "duplicate option `parent`",
            "expected the name of an option",
            "duplicate option `skip`",
            "unknown case `camel_case`; did you mean `camelCase`? (cases: lowercase, snake_case, \
             UPPERCASE, SCREAMING_SNAKE_CASE, kebab-case, camelCase, PascalCase)",
            "a field with `skip` has no column",
        ]
    );
}

/// `FromRow` would read another form than `ordid` writes. The type in `try_from` is the user's, if the field is no key.
#[test]
fn forms_of_sqlx_that_no_flush_writes_are_refused() {
    let found = errors(
        expand::ordered_key,
        r#"
        struct Order {
            #[ordid(key)]
            #[sqlx(rename = "number", json)]
            id: OrderId,
            #[ordid(parent)]
            #[sqlx(try_from = "Uuid")]
            customer: CustomerId,
            #[sqlx(try_from = "i32")]
            rate: Rate,
            #[sqlx(json(nullable))]
            extra: Option<Extra>,
            #[ordid(parent, skip)]
            #[sqlx(json)]
            cache: CustomerId,
            #[ordid(returning)]
            #[sqlx(json)]
            filled: Assigned<Extra>,
        }
        "#,
    );
    let refused = |name| format!("a key is read as its key type writes it: take `{name}` off");
    assert_eq!(found[..2], [refused("json"), refused("try_from")]);
    assert_eq!(
        found[2],
        "a flush would write the field by its own type, which `json` does not change: write \
         `sqlx::types::Json<..>`, and take `json` off"
    );
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(
        errors(
            expand::ordered_key,
            "struct Order { #[sqlx(flatten)] id: OrderId }"
        ),
        ["the key has to be a column: take `flatten` off"]
    );
    let refused = |name| {
        format!(
            "a key type is stored in the column that `#[ordid(sqlx)]` gives it: take `{name}` off"
        )
    };
    assert_eq!(
        errors(
            expand::key_type,
            r#"#[ordid(sqlx)] #[sqlx(transparent, flatten)] struct OrderId(#[sqlx(try_from = "String")] Uuid);"#
        ),
        [refused("flatten"), refused("try_from")]
    );
}

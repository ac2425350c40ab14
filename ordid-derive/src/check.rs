//! The rules. Each mistake is reported at the token to change, with what to write instead.

use std::collections::HashMap;

use quote::ToTokens;
use syn::{Data, DeriveInput, Fields, GenericParam, Ident, Type};

use crate::{
    attr::{Argument, ArgumentValue, ParentAttr, SchemeAttr},
    case::Case,
    ctxt::Ctxt,
    model::{Entity, EntityField, KeyType, is_no_parameter},
    options::{
        DEFAULT_BUCKETS, DEFAULT_SCHEME, Kind, Made, NOT_RAW, Parameter, SCHEMES, Scheme, Way,
    },
    suggest, value,
};

/// Checks a scheme's name and its parameters.
fn scheme(cx: &Ctxt, scheme: &SchemeAttr) {
    let Some(known) = SCHEMES.iter().find(|known| scheme.name == known.name) else {
        // The default first: of names that are as near, the first is suggested.
        let mut known: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
        known.sort_by_key(|name| *name != DEFAULT_SCHEME);
        let name = scheme.name.to_string();
        cx.error(&scheme.name, suggest::unknown("scheme", &name, &known));
        return;
    };
    let mistakes = cx.count();
    for argument in &scheme.arguments {
        match known.parameters.iter().find(|it| argument.name == it.name) {
            Some(parameter) => value(cx, argument, parameter),
            None => unknown_parameter(cx, known, argument),
        }
    }
    if let Made::Snowflake(ways) = known.made
        && cx.count() == mistakes
    {
        snowflake(cx, scheme, ways, buckets(known, scheme));
    }
}

fn unknown_parameter(cx: &Ctxt, known: &Scheme, argument: &Argument) {
    let name = &argument.name;
    let names: Vec<_> = known.parameters.iter().map(|it| it.name).collect();
    let scheme = known.name;
    cx.error(
        name,
        match known.parameters {
            [] => format!("scheme `{scheme}` has no options: write `scheme = {scheme}`"),
            [only] => format!(
                "unknown option `{name}` of scheme `{scheme}`: write `scheme = {scheme}({})`",
                only.usage
            ),
            _ => suggest::unknown("option", &name.to_string(), &names),
        },
    );
}

/// Checks that a parameter's value is one.
fn value(cx: &Ctxt, argument: &Argument, parameter: &Parameter) {
    let expected = match (&parameter.kind, &argument.value) {
        (Kind::Type { .. }, ArgumentValue::Type(ty)) => {
            // What names no type of the user's own; the compiler reports the others.
            if !is_no_parameter(ty) {
                return;
            }
            format!("expected `{}`", parameter.usage)
        }
        (Kind::Word(words), ArgumentValue::Type(ty)) => {
            let word = compact(ty);
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            if known.contains(&word.as_str()) {
                return;
            }
            suggest::unknown("word", &word, &known)
        }
        (Kind::Number(least, most), ArgumentValue::Lit(lit))
            if value::number(lit).is_some_and(|number| (*least..=*most).contains(&number)) =>
        {
            return;
        }
        (Kind::PowerOfTwo(least, most), ArgumentValue::Lit(lit))
            if value::number(lit).is_some_and(|number| {
                (*least..=*most).contains(&number) && number.is_power_of_two()
            }) =>
        {
            return;
        }
        (Kind::Epoch, ArgumentValue::Lit(lit)) if value::epoch(lit).is_some() => return,
        (Kind::Number(least, most), _) => format!(
            "expected a number from {least} to {most}, as in `{}`",
            parameter.usage
        ),
        (Kind::PowerOfTwo(least, most), _) => format!(
            "expected a power of two from {least} to {most}, as in `{}`",
            parameter.usage
        ),
        (Kind::Epoch, _) => format!(
            "expected a day from 1970 on, or milliseconds since then: `{}`",
            parameter.usage
        ),
        (Kind::Type { .. }, _) => {
            format!("expected a type, as in `{}`", parameter.usage)
        }
        (Kind::Word(_), _) => format!("expected `{}`", parameter.usage),
    };
    cx.error(&argument.tokens, expected);
}

/// Returns how many buckets keys are spread over: one where they are not.
pub(crate) fn buckets(known: &Scheme, scheme: &SchemeAttr) -> u64 {
    if known.is_spread() {
        scheme.number("buckets").unwrap_or(DEFAULT_BUCKETS)
    } else {
        1
    }
}

/// Checks that a `snowflake` is laid out in one of the ways, wholly, and in 63 bits.
fn snowflake(cx: &Ctxt, scheme: &SchemeAttr, all_ways: &'static [Way], buckets: u64) {
    let has = |name: &str| scheme.arguments.iter().any(|it| it.name == name);
    // The way of the first parameter that belongs to one alone; an epoch alone changes the default's.
    let way_of = |name: &str| {
        all_ways.iter().find(|way| {
            name != "epoch" && (way.needs.contains(&name) || way.may_have.contains(&name))
        })
    };
    let mut ways = scheme.arguments.iter().filter_map(|argument| {
        let way = way_of(&argument.name.to_string())?;
        Some((argument, way))
    });
    let room = 63 - u64::from(buckets.trailing_zeros());
    let Some((first, way)) = ways.next() else {
        // The default layout takes all the room that 16 buckets leave.
        if let Some(argument) = scheme.arguments.iter().find(|it| it.name == "buckets")
            && buckets > DEFAULT_BUCKETS
        {
            cx.error(
                &argument.tokens,
                format!(
                    "{buckets} buckets leave {room} bits, and time, node and sequence have 59 where nothing else is said: \
                     write `snowflake_spread(buckets = {buckets}, epoch = \"2026-01-01\", time = 41, node = 8, \
                     sequence = {})`",
                    room - 49
                ),
            );
        }
        return;
    };
    let usages = || {
        let usages: Vec<_> = all_ways.iter().map(|way| way.usage).collect();
        format!("write `{}`", usages.join("`, or `"))
    };
    let mut is_one = true;
    for (argument, _) in ways.filter(|(_, other)| !std::ptr::eq(*other, way)) {
        is_one = false;
        cx.error(
            &argument.name,
            format!(
                "`{}` and `{}` say the same in two ways: {}",
                first.name,
                argument.name,
                usages()
            ),
        );
    }
    if !is_one {
        return;
    }
    let missing: Vec<_> = way.needs.iter().filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        let missing: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
        cx.error(
            &first.name,
            format!(
                "beside `{}` say {} too: write `{}`",
                first.name,
                missing.join(" and "),
                way.usage
            ),
        );
        return;
    }
    let bits = ["time", "node", "sequence"].map(|name| scheme.number(name).unwrap_or_default());
    let all: u64 = bits.iter().sum();
    if all > room
        && let Some(last) = scheme.arguments.iter().rfind(|it| {
            ["time", "node", "sequence"]
                .iter()
                .any(|name| it.name == name)
        })
    {
        let [time, node, sequence] = bits;
        let beside = match buckets {
            1 => String::new(),
            _ => format!(" beside {buckets} buckets"),
        };
        cx.error(
            &last.tokens,
            format!(
                "time, node and sequence have {time} + {node} + {sequence} = {all} bits, and a key \
                 has {room}{beside}: take {} off",
                all - room
            ),
        );
    }
}

/// Checks that masked keys are of version 7.
fn mask(cx: &Ctxt, model: &KeyType<'_>) {
    if let Some(mask) = &model.attrs.mask
        && let Some(scheme) = model.known_scheme()
        && !scheme.is_maskable()
    {
        let maskable = SCHEMES.iter().filter(|scheme| scheme.is_maskable());
        let names: Vec<_> = maskable.map(|scheme| scheme.name).collect();
        cx.error(
            mask,
            format!(
                "keys of scheme `{}` cannot be masked: take `mask` off, or take one of {}",
                scheme.name,
                names.join(", ")
            ),
        );
    }
}

/// Checks that there are versions to accept, and that the mask keeps them apart.
fn accept(cx: &Ctxt, model: &KeyType<'_>) {
    let Some(accept) = &model.attrs.accept else {
        return;
    };
    if let Some(scheme) = model.known_scheme()
        && scheme.raw_name != "Uuid"
    {
        cx.error(
            accept,
            format!(
                "keys of scheme `{}` have no version: take `accept` off",
                scheme.name
            ),
        );
    }
    if let Some(scheme) = model.known_scheme()
        && scheme.is_spread()
    {
        cx.error(
            accept,
            format!(
                "a key of another version has no bucket of scheme `{}`: take `accept` off",
                scheme.name
            ),
        );
    }
    if let Some(mask) = &model.attrs.mask {
        cx.error(
            mask,
            "a masked key is of version 4, and so may be a key that is accepted: take `mask` or \
             `accept` off",
        );
    }
}

/// Checks that keys can be numbers, as far as the scheme's name tells; the compiler counts the bits.
fn json(cx: &Ctxt, model: &KeyType<'_>) {
    let Some(json) = &model.attrs.json else {
        return;
    };
    if let Some(scheme) = model.known_scheme()
        && !matches!(scheme.made, Made::Snowflake(_))
    {
        let what = match scheme.raw_name {
            "i64" | "u64" => "may be 2^53 or more, and many readers of JSON round such numbers",
            _ => "are not numbers",
        };
        cx.error(
            json,
            format!(
                "keys of scheme `{}` {what}: take `json` off, or take a `snowflake` of at most 53 \
                 bits, such as `snowflake(epoch = \"2026-01-01\", years = 20, ids_per_second = 1_000)`",
                scheme.name
            ),
        );
    }
    if let Some(prefix) = &model.attrs.prefix {
        cx.error(
            prefix,
            "a number has no prefix: take `prefix` or `json` off",
        );
    }
}

/// Checks that keys with short ids are integers.
fn short(cx: &Ctxt, model: &KeyType<'_>) {
    if let Some(short) = &model.attrs.short
        && let Some(scheme) = model.known_scheme()
        && !scheme.is_integer()
    {
        cx.error(
            short,
            format!(
                "keys of scheme `{}` are not integers and have no short ids: take `short` off, or take a scheme of \
                 integers, such as `snowflake` or `sequence`",
                scheme.name
            ),
        );
    }
}

/// Checks that the bits that a key is spread by are the key's.
fn scatter(cx: &Ctxt, model: &KeyType<'_>) {
    let Some(scatter) = &model.attrs.scatter else {
        return;
    };
    if let Some(mask) = &model.attrs.mask {
        cx.error(
            mask,
            "a scattered key shows what `mask` hides: take `mask` or `scatter` off",
        );
    }
    let Some(scheme) = model.known_scheme() else {
        return;
    };
    let bits = match scheme.raw_name {
        "i64" | "u64" => 64,
        "ObjectId" => 96,
        "PushId" => 120,
        "Key192" => 192,
        _ => 128,
    };
    if let Some((lowest, lit)) = &scatter.lowest_bit
        && lowest + scatter.buckets.ilog2() > bits
    {
        cx.error(
            lit,
            format!(
                "a key of scheme `{}` has {bits} bits, and none from {lowest} on for {} buckets: \
                 write `lowest_bit = {}`, or less",
                scheme.name,
                scatter.buckets,
                bits - scatter.buckets.ilog2()
            ),
        );
    }
}

/// Checks the input of `#[derive(KeyType)]`.
pub(crate) fn key_type(cx: &Ctxt, model: &KeyType<'_>) {
    if let Some(scheme) = &model.attrs.scheme {
        self::scheme(cx, scheme);
    }
    mask(cx, model);
    accept(cx, model);
    json(cx, model);
    short(cx, model);
    scatter(cx, model);
    let input = model.input;
    for name in &model.sqlx_forms {
        cx.error(
            name,
            format!("a key type is stored in the column that `#[ordid(sqlx)]` gives it: take `{name}` off"),
        );
    }
    let raw = model.scheme().raw;
    let fix = format!("write `struct {}({raw});`", input.ident);
    for param in &input.generics.params {
        match param {
            GenericParam::Lifetime(param) => {
                cx.error(
                    param,
                    format!("a key type owns its raw key, without a lifetime: {fix}"),
                );
            }
            GenericParam::Type(_) | GenericParam::Const(_) => cx.error(
                param,
                format!(
                    "a key type cannot be generic; each entity has a key type of its own: {fix}"
                ),
            ),
        }
    }
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            cx.error(
                data.enum_token,
                format!("a key type is a struct, not an enum: {fix}"),
            );
            return;
        }
        Data::Union(data) => {
            cx.error(
                data.union_token,
                format!("a key type is a struct, not a union: {fix}"),
            );
            return;
        }
    };
    for attr in fields.iter().flat_map(|field| &field.attrs) {
        if attr.path().is_ident("ordid") {
            cx.error(
                attr,
                "the options of a key type belong on the struct, not on its field",
            );
        }
    }
    match fields {
        Fields::Unnamed(fields) => {
            match fields.unnamed.first() {
                None => cx.error(&input.ident, format!("a key type holds its raw key: {fix}")),
                Some(field) if input.generics.params.is_empty() => {
                    if let Some(scheme) = model.known_scheme() {
                        raw_key(cx, &field.ty, input, scheme);
                    }
                }
                Some(_) => {}
            }
            for field in fields.unnamed.iter().skip(1) {
                cx.error(
                    &field.ty,
                    format!("a key type has one field, its raw key, and nothing beside: {fix}"),
                );
            }
        }
        Fields::Named(fields) => {
            cx.error(
                fields,
                format!("a key type is a tuple struct, without field names: {fix}"),
            );
        }
        Fields::Unit => cx.error(&input.ident, format!("a key type holds its raw key: {fix}")),
    }
}

/// Reports field types that are not the scheme's raw key by their names; the compiler reports the
/// others.
fn raw_key(cx: &Ctxt, ty: &Type, input: &DeriveInput, scheme: &Scheme) {
    let may_be_raw = match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let is_other = SCHEMES.iter().any(|other| {
                // `crate::String` may be anything, and so may `crate::Uuid`.
                let text = compact(ty);
                text == other.raw || text == other.raw_name
            });
            last.ident == scheme.raw_name
                || !(is_other
                    || path.path.segments.len() == 1
                        && NOT_RAW.iter().any(|name| last.ident == name))
        }),
        Type::Group(_) | Type::Macro(_) | Type::Paren(_) => true,
        _ => false,
    };
    if !may_be_raw {
        cx.error(
            ty,
            format!(
                "`{}` is not the raw key of scheme `{}`: write `struct {}({});`",
                compact(ty),
                scheme.name,
                input.ident,
                scheme.raw
            ),
        );
    }
}

/// Returns a type's tokens as they are mostly written.
pub(crate) fn compact(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    text.replace(" :: ", "::")
        .replace(" < ", "<")
        .replace(" >", ">")
        .replace("& ", "&")
}

/// Checks the input of `#[derive(OrderedKey)]`.
pub(crate) fn entity(cx: &Ctxt, model: &Entity<'_>) {
    entity_options(cx, model);
    let instead = match &model.input.data {
        Data::Struct(data) => match data.fields {
            Fields::Named(_) => None,
            Fields::Unnamed(_) => Some((
                model.input.ident.to_token_stream(),
                "not for a tuple struct: name the fields, as their columns are",
            )),
            Fields::Unit => Some((
                model.input.ident.to_token_stream(),
                "not for a unit struct: write a field for each column",
            )),
        },
        Data::Enum(data) => Some((
            data.enum_token.to_token_stream(),
            "not for an enum: write one struct per table",
        )),
        Data::Union(data) => Some((
            data.union_token.to_token_stream(),
            "not for a union: write a struct with a field for each column",
        )),
    };
    if let Some((tokens, instead)) = instead {
        cx.error(
            tokens,
            format!("OrderedKey can only be derived for a struct with named fields, {instead}"),
        );
        return;
    }
    if let Some(sea_orm) = model.sea_orm() {
        if let Some(late) = &sea_orm.late_model {
            // What it will make of the struct is not known here.
            cx.error(
                late,
                "`OrderedKey` has to see what this makes of the struct: put `#[derive(.., \
                 OrderedKey)]` below `#[sea_orm::model]`",
            );
            return;
        }
        self::sea_orm(cx, model);
        sea_orm_names(cx, model);
    }
    keys(cx, model);
    version(cx, model);
    returning(cx, model);
    diesel(cx, model);
    fields(cx, model);
    columns(cx, model);
}

/// Checks that SeaORM's primary key is the ordered key, and made by the client.
fn sea_orm(cx: &Ctxt, model: &Entity<'_>) {
    if model.primary_keys().next().is_none() {
        if !model.is_damaged {
            cx.error(
                &model.input.ident,
                "no primary key: mark the key `#[sea_orm(primary_key, auto_increment = false)]`",
            );
        }
        return;
    }
    // Rows are found by the marked fields. By a part of SeaORM's key, an update would find other rows, too.
    let theirs: Vec<_> = model.primary_keys().map(|(field, _)| field.ident).collect();
    let marked = model.fields.iter().filter(|it| it.attrs.key.is_some());
    let own: Vec<_> = marked.clone().map(|it| it.ident).collect();
    if let Some(first) = marked.clone().find_map(|it| it.attrs.key.as_ref())
        && !are_same(&own, &theirs)
    {
        cx.error(
            first,
            format!(
                "the ordered key is `{}`, but SeaORM's primary key is `{}`: mark one and the same",
                list(&own),
                list(&theirs)
            ),
        );
    }
    for (key, primary) in model.primary_keys() {
        sea_orm_key(cx, key, primary);
    }
}

/// Refuses names that SeaORM does not know: statements are written with its own.
fn sea_orm_names(cx: &Ctxt, model: &Entity<'_>) {
    let attrs = &model.attrs;
    let of_struct = [
        ("schema", "schema_name", &attrs.schema),
        ("table", "table_name", &attrs.table),
        ("rename_all", "rename_all", &attrs.rename_all),
    ];
    let of_fields = model.fields.iter();
    let of_fields = of_fields.map(|it| ("column", "column_name", &it.attrs.column));
    for (own, theirs, name) in of_struct.into_iter().chain(of_fields) {
        if let Some(name) = name {
            let text = name.value();
            cx.error(
                name,
                format!(
                    "a model of SeaORM has SeaORM's names: write `#[sea_orm({theirs} = {text:?})]` in place of `{own}`"
                ),
            );
        }
    }
}

/// Checks that a column of SeaORM's primary key is made by the client.
fn sea_orm_key(cx: &Ctxt, key: &EntityField<'_>, primary: &Ident) {
    let ty = compact(key.ty()).replace(' ', "");
    match &key.attrs.sea_orm_auto_increment {
        Some(value) if !value.value => {}
        Some(value) => cx.error(
            value,
            format!("the key `{}` is made by the client: write `auto_increment = false`", key.ident),
        ),
        // SeaORM's own exceptions, by the name of the type.
        None if ["String", "Uuid"].iter().any(|suffix| ty.ends_with(suffix)) => {}
        None => cx.error(
            primary,
            format!(
                "the key `{}` is made by the client, and SeaORM would ask the database for it: write \
                 `#[sea_orm(primary_key, auto_increment = false)]`",
                key.ident
            ),
        ),
    }
    if ty.starts_with("Option<") {
        cx.error(
            key.ty(),
            "a primary key cannot be NULL: write the key type without `Option`, and leave the field \
             of the `ActiveModel` `NotSet` while it has no key",
        );
    }
}

fn entity_options(cx: &Ctxt, model: &Entity<'_>) {
    if let Some(name) = &model.attrs.rename_all
        && Case::by_name(&name.value()).is_none()
    {
        cx.error(name, suggest::unknown("case", &name.value(), Case::NAMES));
    }
    if let Some(table) = &model.attrs.table
        && model.attrs.schema.is_none()
        && let Some((schema, name)) = table.value().split_once('.')
    {
        cx.error(
            table,
            format!(
                "the schema is an option of its own: write `schema = {schema:?}, table = {name:?}`"
            ),
        );
    }
    if let Some(krate) = &model.attrs.sea_orm_crate
        && model.sea_orm().is_none()
    {
        cx.error(
            krate,
            "only a model of SeaORM has its adapter: write `#[sea_orm(table_name = \"..\")]`, or take `sea_orm` off",
        );
    }
}

/// Checks what is forwarded to Diesel's adapter.
fn diesel(cx: &Ctxt, model: &Entity<'_>) {
    let Some(diesel) = &model.attrs.diesel else {
        return;
    };
    if model.attrs.diesel_table.is_none() {
        cx.error(
            &diesel.name,
            "its columns are those of a `table!`: name it, `#[diesel(table_name = orders)]`",
        );
    }
    if !model.input.generics.params.is_empty() {
        cx.error(
            &diesel.name,
            "a struct with parameters has no columns of its own in a `table!`: write one struct per \
             table",
        );
    }
    for field in &model.fields {
        diesel_writes(cx, model, field);
    }
}

/// Refuses what Diesel's derives follow where they write a column, and a unit of work would not.
fn diesel_writes(cx: &Ctxt, model: &Entity<'_>, field: &EntityField<'_>) {
    let attrs = &field.attrs;
    if attrs.returning.is_some() || attrs.skip.is_some() || attrs.sqlx_skip.is_some() {
        return;
    }
    // Another error says this of a key or a version.
    let is_needed = model.is_key(field) || attrs.version.is_some();
    if let Some(skip) = &attrs.diesel_skip
        && !is_needed
    {
        cx.error(
            skip,
            "a unit of work would leave the column out of updates, too, where `AsChangeset` writes it: take \
             `skip_insertion` off, or write `#[ordid(returning)]` if the database fills the column, or `#[ordid(skip)]` if \
             no unit of work writes it",
        );
    }
    for other in &attrs.diesel_writes {
        if other == "serialize_as" {
            cx.error(
                other,
                "a flush would write the field by its own type, which `serialize_as` does not change: give the field that \
                 type, and take `serialize_as` off",
            );
        } else if !is_needed {
            cx.error(
                other,
                "an update of a unit of work would write the column, which `skip_update` does not change: take \
                 `skip_update` off, name the columns to write by `update_columns`, and derive `AsChangeset` for a struct \
                 without the column",
            );
        }
    }
}

fn keys(cx: &Ctxt, model: &Entity<'_>) {
    let keys = model.keys();
    if let Some(key) = keys.get(MAX_KEYS) {
        cx.error(key.ident, "a key has four columns at most");
    }
    let primary_key = &model.attrs.diesel_primary_key;
    match &keys[..] {
        // Of a model of SeaORM this was said already.
        [] if model.is_damaged || model.sea_orm().is_some() => {}
        [] => cx.error(
            &model.input.ident,
            "no key field: mark one with `#[ordid(key)]` or name it `id`",
        ),
        keys => {
            let own: Vec<_> = keys.iter().map(|key| key.diesel_column()).collect();
            let theirs: Vec<_> = primary_key.iter().collect();
            if !theirs.is_empty() && !are_same(&own, &theirs) {
                cx.error(
                    keys[0].attrs.key.as_ref(),
                    format!(
                        "the ordered key is `{}`, but Diesel's primary key is `{}`",
                        list(&own),
                        list(&theirs)
                    ),
                );
            }
        }
    }
}

/// The most columns of a key.
const MAX_KEYS: usize = 4;

/// Returns whether these are the same names, in any order.
fn are_same(own: &[&Ident], theirs: &[&Ident]) -> bool {
    own.len() == theirs.len() && own.iter().all(|it| theirs.contains(it))
}

fn list(names: &[&Ident]) -> String {
    let names = names.iter().map(ToString::to_string);
    names.collect::<Vec<_>>().join("`, `")
}

/// Checks that one column at most is the version, and nothing else.
fn version(cx: &Ctxt, model: &Entity<'_>) {
    let marked = |field: &EntityField<'_>| field.attrs.version.clone();
    let mut versions = model.fields.iter().filter_map(marked);
    let first = versions.next();
    for other in versions {
        cx.error(other, "a row has one version");
        cx.error(&first, "the first field that is marked `#[ordid(version)]`");
    }
    for field in &model.fields {
        let Some(version) = &field.attrs.version else {
            continue;
        };
        if model.is_key(field) {
            cx.error(
                version,
                "the key cannot be the version: it stays the same while the row changes",
            );
        } else if let Some(skip) = field.skip() {
            cx.error(skip, "the version has to be a column: take `skip` off");
        } else if field.attrs.parent.is_some() {
            cx.error(version, "a foreign key cannot be the version");
        }
    }
}

/// Checks that a field which the database fills is a column, and not one that the unit of work has to know before.
fn returning(cx: &Ctxt, model: &Entity<'_>) {
    for field in &model.fields {
        let attrs = &field.attrs;
        let Some(returning) = &attrs.returning else {
            continue;
        };
        if model.is_key(field) {
            cx.error(
                returning,
                "the key is made by the client, and the row is found by it: take `returning` off",
            );
        } else if attrs.parent.is_some() {
            cx.error(
                returning,
                "a foreign key is written by the program, as rows are ordered by it: take `returning` off",
            );
        } else if attrs.version.is_some() {
            cx.error(
                returning,
                "the version is written by the unit of work, which knows it: take `returning` off",
            );
        } else if let Some(skip) = attrs.skip.as_ref().or(attrs.sea_orm_ignore.as_ref()) {
            cx.error(
                skip,
                format!(
                    "a field with `returning` is a column that a flush reads: take `{skip}` off"
                ),
            );
        }
    }
}

fn fields(cx: &Ctxt, model: &Entity<'_>) {
    for field in &model.fields {
        let attrs = &field.attrs;
        if let Some(deferrable) = &attrs.deferrable
            && attrs.parent.is_none()
        {
            cx.error(
                deferrable,
                "`deferrable` is said of a foreign key: write `#[ordid(parent, deferrable)]`",
            );
        }
        if model.is_key(field) {
            if let Some(skip) = field.skip() {
                cx.error(skip, "the key has to be a column: take `skip` off");
            }
            // In a key of several columns, one may be another entity's key.
            if let Some(parent) = &attrs.parent
                && parent.entity.is_none()
                && model.keys().len() == 1
            {
                cx.error(
                    &parent.name,
                    "the key's type tells this entity, not its parent: name it, \
                     `parent = Customer`",
                );
            }
        } else if let Some(skip) = field.skip()
            && attrs.returning.is_none()
        {
            let column = attrs.column.as_ref().map(ToTokens::to_token_stream);
            let parent = attrs
                .parent
                .as_ref()
                .map(|parent| parent.name.to_token_stream());
            for tokens in column.into_iter().chain(parent) {
                cx.error(tokens, format!("a field with `{skip}` has no column"));
            }
            // The adapter counts a model's columns as SeaORM does.
            if model.sea_orm().is_some() && attrs.sea_orm_ignore.is_none() {
                cx.error(
                    skip,
                    format!(
                        "SeaORM has a column for this field: write `#[sea_orm(ignore)]` in place of `{skip}`"
                    ),
                );
            }
        }
        if let Some(parent) = &attrs.parent {
            parent_fields(cx, model, field, parent);
        }
        if let Some(other) = &attrs.sqlx_other_type
            && field.skip().is_none()
        {
            if model.is_key(field) || attrs.parent.is_some() {
                cx.error(
                    other,
                    format!("a key is read as its key type writes it: take `{other}` off"),
                );
            } else if other == "json" && attrs.returning.is_none() {
                cx.error(
                    other,
                    "a flush would write the field by its own type, which `json` does not change: \
                     write `sqlx::types::Json<..>`, and take `json` off",
                );
            }
        }
        if let Some(flatten) = &attrs.sqlx_flatten
            && model.is_key(field)
        {
            cx.error(flatten, "the key has to be a column: take `flatten` off");
        } else if let Some(flatten) = attrs.sqlx_flatten.as_ref().or(attrs.diesel_embed.as_ref())
            && field.skip().is_none()
        {
            cx.error(
                flatten,
                "a flattened field has no column of its own: list its fields in this struct, or \
                 add `#[ordid(skip)]`",
            );
        }
    }
}

/// Checks the fields of `parent = Issue(tenant, issue)`.
fn parent_fields(cx: &Ctxt, model: &Entity<'_>, field: &EntityField<'_>, parent: &ParentAttr) {
    for (place, name) in parent.fields.iter().enumerate() {
        if parent.fields[..place].contains(name) {
            cx.error(
                name,
                format!(
                    "`{name}` is named twice: name one field for each column of the parent's key"
                ),
            );
        }
        if !model.columns().any(|column| column.ident == name) {
            cx.error(name, format!("no column is of a field `{name}`"));
        }
    }
    if !parent.fields.is_empty() && !parent.fields.contains(field.ident) {
        cx.error(
            &parent.name,
            format!(
                "the field `{}` is no part of the parent's key here: write this at one of the fields that are",
                field.ident
            ),
        );
    }
}

fn columns(cx: &Ctxt, model: &Entity<'_>) {
    let mut seen = HashMap::new();
    let is_column =
        |field: &&EntityField<'_>| field.attrs.returning.is_some() || field.skip().is_none();
    let fields = model.fields.iter().filter(is_column);
    for field in fields
        .filter(|field| field.attrs.sqlx_flatten.is_none() && field.attrs.diesel_embed.is_none())
    {
        if let Some(first) = seen.insert(field.column.as_str(), field.ident) {
            cx.error(
                field.column_tokens(),
                format!("column `{}` is the field `{first}` already", field.column),
            );
        }
    }
}

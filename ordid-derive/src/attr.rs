//! Parsing: `#[ordid(...)]`, and what `#[sqlx(...)]`, `#[diesel(...)]` and `#[sea_orm(...)]` say of tables
//! and columns.
//!
//! A mistake in one option does not hide the next: the parser goes on after the comma.

mod entity;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Attribute, Ident, Lit, LitStr, Meta as SynMeta, Path, Token, Type,
    ext::IdentExt,
    parenthesized,
    parse::{ParseStream, Parser},
    parse_quote_spanned,
    spanned::Spanned as _,
    token::Paren,
};

use crate::{
    ctxt::Ctxt,
    options::{KEY_TYPE, PLACES, Place, adapter_crate},
    suggest, value,
};

pub(crate) use self::entity::{EntityAttrs, FieldAttrs, ParentAttr, SeaOrmModel};

/// One option: `name`, `name = value` or `name(options)`.
struct Meta {
    name: Ident,
    value: Value,
}

enum Value {
    None,
    /// An equals sign with nothing behind it.
    Missing,
    Lit(Lit),
    /// A type or path, which an identifier is too.
    Type(Type),
    List(TokenStream, Vec<Meta>),
    /// `name = path::to::value(options)`.
    Call(Path, TokenStream, Vec<Meta>),
}

impl Meta {
    /// Returns the tokens to underline where the value is wrong.
    fn wrong_tokens(&self) -> TokenStream {
        match &self.value {
            Value::None | Value::Missing => self.name.to_token_stream(),
            Value::Lit(lit) => lit.to_token_stream(),
            Value::Type(ty) => ty.to_token_stream(),
            Value::List(tokens, _) => tokens.clone(),
            Value::Call(name, tokens, _) => [name.to_token_stream(), tokens.clone()]
                .into_iter()
                .collect(),
        }
    }

    fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn is_alone(&self) -> bool {
        matches!(self.value, Value::None)
    }

    fn text(&self) -> Option<&LitStr> {
        match &self.value {
            Value::Lit(Lit::Str(text)) => Some(text),
            _ => None,
        }
    }

    fn ty(&self) -> Option<&Type> {
        match &self.value {
            Value::Type(ty) => Some(ty),
            _ => None,
        }
    }

    /// Returns the value as a path without generic arguments.
    fn path(&self) -> Option<&Path> {
        match self.ty()? {
            Type::Path(ty) if ty.qself.is_none() => Some(&ty.path).filter(|path| {
                path.segments
                    .iter()
                    .all(|segment| segment.arguments.is_none())
            }),
            _ => None,
        }
    }

    fn ident(&self) -> Option<&Ident> {
        self.path()?.get_ident()
    }
}

/// Parses options up to the end.
fn metas(cx: &Ctxt, input: ParseStream<'_>) -> syn::Result<Vec<Meta>> {
    let mut metas = Vec::new();
    while !input.is_empty() {
        match meta(cx, input) {
            Ok(meta) => metas.push(meta),
            Err(error) => {
                cx.push(error);
                skip_to_comma(input)?;
            }
        }
        if !input.is_empty() && input.parse::<Token![,]>().is_err() {
            cx.push(input.error("expected `,`"));
            if !input.peek(Ident::peek_any) {
                skip_to_comma(input)?;
                input.parse::<Option<Token![,]>>()?;
            }
        }
    }
    Ok(metas)
}

fn meta(cx: &Ctxt, input: ParseStream<'_>) -> syn::Result<Meta> {
    if !input.peek(Ident::peek_any) {
        return Err(input.error("expected the name of an option"));
    }
    let name = Ident::parse_any(input)?;
    let value = if input.peek(Paren) {
        let (tokens, metas) = list(cx, input)?;
        Value::List(tokens, metas)
    } else if input.parse::<Option<Token![=]>>()?.is_some() {
        if input.is_empty() || input.peek(Token![,]) {
            Value::Missing
        } else if input.peek(Lit) {
            Value::Lit(input.parse()?)
        } else if is_call(input) {
            let path = Path::parse_mod_style(input)?;
            let (tokens, metas) = list(cx, input)?;
            Value::Call(path, tokens, metas)
        } else {
            match ungrouped(input.parse()?) {
                // A path with generic arguments.
                Type::Path(ty) if ty.qself.is_none() && input.peek(Paren) => {
                    let (tokens, metas) = list(cx, input)?;
                    Value::Call(ty.path, tokens, metas)
                }
                ty => Value::Type(ty),
            }
        }
    } else {
        Value::None
    };
    Ok(Meta { name, value })
}

/// Returns whether a path with options in parentheses follows. As a type it would be one with the bounds of `Fn`.
fn is_call(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    Path::parse_mod_style(&ahead).is_ok() && ahead.peek(Paren)
}

/// Parses options in parentheses, and returns their tokens too.
fn list(cx: &Ctxt, input: ParseStream<'_>) -> syn::Result<(TokenStream, Vec<Meta>)> {
    let tokens = input.fork().parse::<TokenTree>()?.into_token_stream();
    let inner;
    parenthesized!(inner in input);
    Ok((tokens, metas(cx, &inner)?))
}

/// Takes off the invisible group around a type that came in through a `macro_rules!` fragment.
fn ungrouped(ty: Type) -> Type {
    match ty {
        Type::Group(group) => ungrouped(*group.elem),
        other => other,
    }
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Returns the options of all `#[ordid(...)]` among the attributes.
fn ordid(cx: &Ctxt, attrs: &[Attribute], place: &Place) -> Vec<Meta> {
    let mut found = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("ordid")) {
        match &attr.meta {
            SynMeta::List(list) => {
                match (|input: ParseStream<'_>| metas(cx, input)).parse2(list.tokens.clone()) {
                    Ok(metas) => found.extend(metas),
                    Err(error) => cx.push(error),
                }
            }
            other => cx.error(other, format!("expected `{}`", place.example)),
        }
    }
    found
}

/// Reads options into their places, and reports what does not fit there.
struct Reader<'a> {
    cx: &'a Ctxt,
    place: &'a Place,
}

impl Reader<'_> {
    /// Reports an option that this place does not have.
    fn unknown(&self, name: &Ident) {
        let text = name.to_string();
        let elsewhere = PLACES
            .iter()
            .filter(|place| !std::ptr::eq(**place, self.place))
            .find(|place| place.options.iter().any(|option| option.name == text));
        let names: Vec<_> = self
            .place
            .options
            .iter()
            .map(|option| option.name)
            .collect();
        self.cx.error(
            name,
            match elsewhere {
                Some(place) => format!("`{text}` is an option of {}", place.name),
                None => suggest::unknown("option", &text, &names),
            },
        );
    }

    /// Reports a value of another form than the option takes.
    fn wrong(&self, meta: &Meta) {
        let option = self
            .place
            .options
            .iter()
            .find(|option| meta.name == option.name);
        let usage = option.map_or("", |option| option.usage);
        self.cx
            .error(meta.wrong_tokens(), format!("expected `{usage}`"));
    }

    /// Keeps the value, unless it is wrong or the option was given before.
    fn once<T>(&self, slot: &mut Option<T>, meta: &Meta, value: Option<T>) {
        match value {
            None => self.wrong(meta),
            Some(_) if slot.is_some() => {
                self.cx
                    .error(&meta.name, format!("duplicate option `{}`", meta.name));
            }
            Some(_) => *slot = value,
        }
    }

    /// As [`once`](Self::once), for texts that have to say something.
    fn text(&self, slot: &mut Option<LitStr>, meta: &Meta) {
        if let Some(text) = meta.text()
            && text.value().trim().is_empty()
        {
            self.cx.error(text, format!("`{}` is empty", meta.name));
            return;
        }
        self.once(slot, meta, meta.text().cloned());
    }
}

/// The options of a key type.
#[derive(Default)]
pub(crate) struct KeyTypeAttrs {
    /// `any_version`: the only word.
    pub(crate) accept: Option<Ident>,
    /// `number`: the only word.
    pub(crate) json: Option<Ident>,
    pub(crate) krate: Option<Path>,
    pub(crate) scheme: Option<SchemeAttr>,
    /// A static `UuidMask`.
    pub(crate) mask: Option<Path>,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) scatter: Option<ScatterAttr>,
    /// A static `Sqids`.
    pub(crate) short: Option<Path>,
    pub(crate) adapters: Vec<Adapter>,
}

/// `uuid_v7`, or `snowflake(layout = Sonyflake)`.
#[derive(Clone)]
pub(crate) struct SchemeAttr {
    pub(crate) name: Ident,
    pub(crate) arguments: Vec<Argument>,
}

/// `layout = Sonyflake`, `time = 41`.
#[derive(Clone)]
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) value: ArgumentValue,
    /// What is underlined where the value is wrong.
    pub(crate) tokens: TokenStream,
}

#[derive(Clone)]
pub(crate) enum ArgumentValue {
    Type(Box<Type>),
    Lit(Lit),
    /// No parameter is written so.
    Other,
}

impl SchemeAttr {
    fn read(cx: &Ctxt, meta: &Meta) -> Option<Self> {
        let (name, metas) = match &meta.value {
            Value::Type(_) => (meta.ident()?.clone(), &[][..]),
            Value::Call(name, _, metas) => (name.get_ident()?.clone(), &metas[..]),
            _ => return None,
        };
        let mut arguments: Vec<Argument> = Vec::new();
        for meta in metas {
            if arguments.iter().any(|argument| argument.name == meta.name) {
                cx.error(&meta.name, format!("duplicate option `{}`", meta.name));
                continue;
            }
            arguments.push(Argument {
                name: meta.name.clone(),
                value: match &meta.value {
                    Value::Type(ty) => ArgumentValue::Type(Box::new(ty.clone())),
                    Value::Lit(lit) => ArgumentValue::Lit(lit.clone()),
                    _ => ArgumentValue::Other,
                },
                tokens: meta.wrong_tokens(),
            });
        }
        Some(Self { name, arguments })
    }

    fn lit(&self, name: &str) -> Option<&Lit> {
        let found = self.arguments.iter().find(|it| it.name == name)?;
        match &found.value {
            ArgumentValue::Lit(lit) => Some(lit),
            _ => None,
        }
    }

    /// Returns a parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        value::number(self.lit(name)?)
    }

    /// Returns a parameter that is a time, in milliseconds since 1970.
    pub(crate) fn epoch(&self, name: &str) -> Option<i64> {
        value::epoch(self.lit(name)?)
    }

    /// Returns a parameter that is a type or a word.
    pub(crate) fn ty(&self, name: &str) -> Option<&Type> {
        let found = self.arguments.iter().find(|it| it.name == name)?;
        match &found.value {
            ArgumentValue::Type(ty) => Some(ty),
            _ => None,
        }
    }
}

/// `scatter(buckets = 16, lowest_bit = 80)`.
#[derive(Clone)]
pub(crate) struct ScatterAttr {
    pub(crate) buckets: u16,
    pub(crate) lowest_bit: Option<(u32, Lit)>,
}

impl ScatterAttr {
    /// Reads the rule; where a value is wrong, one that holds for any key.
    fn read(cx: &Ctxt, meta: &Meta) -> Option<Self> {
        let Value::List(_, metas) = &meta.value else {
            return None;
        };
        let mut buckets = None;
        let mut lowest_bit = None;
        let mut is_damaged = false;
        for meta in metas {
            let (slot, most) = match () {
                () if meta.is("buckets") => (&mut buckets, u64::from(u16::MAX)),
                // Of the longest keys, which have 192.
                () if meta.is("lowest_bit") => (&mut lowest_bit, 191),
                () => {
                    let name = meta.name.to_string();
                    let known = ["buckets", "lowest_bit"];
                    is_damaged = true;
                    cx.error(&meta.name, suggest::unknown("option", &name, &known));
                    continue;
                }
            };
            let least = u64::from(meta.is("buckets"));
            if slot.is_some() {
                cx.error(&meta.name, format!("duplicate option `{}`", meta.name));
            } else if let Value::Lit(lit) = &meta.value
                && let Some(number) = value::number(lit).filter(|it| (least..=most).contains(it))
            {
                *slot = Some((number, lit.clone()));
            } else {
                is_damaged = true;
                cx.error(
                    meta.wrong_tokens(),
                    format!(
                        "expected `{} = ` and a number from {least} to {most}",
                        meta.name
                    ),
                );
            }
        }
        let Some((count, lit)) = buckets else {
            return is_damaged.then_some(Self {
                buckets: 1,
                lowest_bit: None,
            });
        };
        if lowest_bit.is_some() && !count.is_power_of_two() {
            cx.error(
                lit,
                format!(
                    "reversed bits make a power of two of buckets: write `buckets = {}`",
                    count.next_power_of_two().min(32_768)
                ),
            );
            lowest_bit = None;
        }
        Some(Self {
            buckets: u16::try_from(count).unwrap_or(u16::MAX),
            lowest_bit: lowest_bit
                .and_then(|(lowest, lit)| Some((u32::try_from(lowest).ok()?, lit))),
        })
    }
}

/// An adapter to which a key type is forwarded: `sqlx(...)`, or `adapter = path::to::adapter(...)`.
pub(crate) struct Adapter {
    /// The word, where it has one.
    pub(crate) word: Option<Ident>,
    /// Its crate.
    pub(crate) path: Path,
    /// The columns that the user named. If there are none, the adapter chooses.
    pub(crate) columns: Vec<ColumnAttr>,
}

/// `mysql = binary16`, or `mysql = unordered(binary16)`, or either without an engine.
pub(crate) struct ColumnAttr {
    pub(crate) engine: Option<Ident>,
    pub(crate) unordered: Option<Ident>,
    pub(crate) column: Ident,
    /// The last token's.
    pub(crate) end: Span,
}

impl ColumnAttr {
    /// Reads `binary16` or `unordered(binary16)`.
    fn read_alone(meta: &Meta) -> Option<Self> {
        match &meta.value {
            Value::None => Some(Self::ordered(None, &meta.name)),
            Value::List(tokens, metas) => Self::unordered(None, &meta.name, tokens, metas),
            _ => None,
        }
    }

    /// Reads `mysql = binary16` or `mysql = unordered(binary16)`.
    fn read(meta: &Meta) -> Option<Self> {
        let engine = Some(&meta.name);
        match &meta.value {
            Value::Type(_) => Some(Self::ordered(engine, meta.ident()?)),
            Value::Call(path, tokens, metas) => {
                Self::unordered(engine, path.get_ident()?, tokens, metas)
            }
            _ => None,
        }
    }

    fn ordered(engine: Option<&Ident>, column: &Ident) -> Self {
        Self {
            engine: engine.cloned(),
            unordered: None,
            column: column.clone(),
            end: column.span(),
        }
    }

    fn unordered(
        engine: Option<&Ident>,
        word: &Ident,
        tokens: &TokenStream,
        metas: &[Meta],
    ) -> Option<Self> {
        match metas {
            [column] if column.is_alone() && word == "unordered" => Some(Self {
                unordered: Some(word.clone()),
                end: tokens.span(),
                ..Self::ordered(engine, &column.name)
            }),
            _ => None,
        }
    }
}

impl KeyTypeAttrs {
    /// Keeps an adapter, unless it was given before.
    fn adapter(&mut self, cx: &Ctxt, adapter: Adapter) {
        let text = adapter.path.to_token_stream().to_string();
        let is_same = |other: &Adapter| match (&other.word, &adapter.word) {
            (None, None) => other.path.to_token_stream().to_string() == text,
            (other, word) => other == word,
        };
        match (self.adapters.iter().any(is_same), &adapter.word) {
            (false, _) => self.adapters.push(adapter),
            (true, Some(word)) => cx.error(word, format!("duplicate option `{word}`")),
            (true, None) => {
                let text = text.replace(' ', "");
                cx.error(&adapter.path, format!("duplicate adapter `{text}`"));
            }
        }
    }

    pub(crate) fn read(cx: &Ctxt, attrs: &[Attribute]) -> Self {
        let reader = Reader {
            cx,
            place: &KEY_TYPE,
        };
        let mut read = Self::default();
        for meta in &ordid(cx, attrs, reader.place) {
            let path = adapter_path(&meta.name);
            if path.is_some() || meta.is("adapter") {
                match Adapter::read(cx, meta, path) {
                    Some(adapter) => read.adapter(cx, adapter),
                    None => reader.wrong(meta),
                }
            } else if meta.is("accept") {
                let word = meta.ident().filter(|word| *word == "any_version");
                reader.once(&mut read.accept, meta, word.cloned());
            } else if meta.is("crate") {
                reader.once(&mut read.krate, meta, meta.path().cloned());
            } else if meta.is("json") {
                let word = meta.ident().filter(|word| *word == "number");
                reader.once(&mut read.json, meta, word.cloned());
            } else if meta.is("mask") {
                reader.once(&mut read.mask, meta, meta.path().cloned());
            } else if meta.is("prefix") {
                // Empty is a prefix by TypeID's rules: the bare suffix.
                reader.once(&mut read.prefix, meta, meta.text().cloned());
            } else if meta.is("scatter") {
                reader.once(&mut read.scatter, meta, ScatterAttr::read(cx, meta));
            } else if meta.is("short") {
                reader.once(&mut read.short, meta, meta.path().cloned());
            } else if meta.is("scheme") {
                reader.once(&mut read.scheme, meta, SchemeAttr::read(cx, meta));
            } else {
                reader.unknown(&meta.name);
            }
        }
        read
    }
}

/// Returns the crate of an adapter's word, located at the word.
pub(crate) fn adapter_path(word: &Ident) -> Option<Path> {
    let name = Ident::new(adapter_crate(&word.to_string())?, word.span());
    Some(parse_quote_spanned!(word.span()=> ::#name))
}

impl Adapter {
    /// Reads `sqlx`, `sqlx(columns)` or `sqlx(crate = path, columns)`, whose path is given here, and `adapter = path` or
    /// `adapter = path(columns)`.
    fn read(cx: &Ctxt, meta: &Meta, of_word: Option<Path>) -> Option<Self> {
        let word = of_word.is_some().then(|| meta.name.clone());
        let (mut path, metas) = match (of_word, &meta.value) {
            (Some(path), Value::None) => (path, &[][..]),
            (Some(path), Value::List(_, metas)) if !metas.is_empty() => (path, &metas[..]),
            (None, Value::Type(_)) => (meta.path()?.clone(), &[][..]),
            (None, Value::Call(path, _, metas)) if !metas.is_empty() => (path.clone(), &metas[..]),
            _ => return None,
        };
        let (crates, columns): (Vec<&Meta>, Vec<_>) =
            metas.iter().partition(|meta| meta.is("crate"));
        for (position, krate) in crates.into_iter().enumerate() {
            let Some(given) = krate.path() else {
                let usual = path.segments.last().map(|last| last.ident.to_string());
                let usual = usual.unwrap_or_default();
                cx.error(
                    krate.wrong_tokens(),
                    format!("expected `crate = path::to::{usual}`"),
                );
                continue;
            };
            if word.is_none() {
                let message = "the adapter's path says where it is: write it in place of this one";
                cx.error(&krate.name, message);
            } else if position > 0 {
                cx.error(&krate.name, "duplicate option `crate`");
            }
            path = given.clone();
        }
        Some(Self {
            word,
            path,
            columns: columns_of(cx, &columns),
        })
    }
}

/// Reads an adapter's columns: one for each engine, or one for all.
fn columns_of(cx: &Ctxt, metas: &[&Meta]) -> Vec<ColumnAttr> {
    let has_engines = metas
        .iter()
        .any(|meta| ColumnAttr::read_alone(meta).is_none());
    let mut columns: Vec<ColumnAttr> = Vec::new();
    for meta in metas {
        let name = &meta.name;
        let alone = ColumnAttr::read_alone(meta).filter(|_| !has_engines);
        let Some(column) = alone.or_else(|| ColumnAttr::read(meta)) else {
            let usage = format!("expected `{name} = column` or `{name} = unordered(column)`");
            cx.error(meta.wrong_tokens(), usage);
            continue;
        };
        match &column.engine {
            None if !columns.is_empty() => cx.error(
                name,
                "one column is for all engines: keep one, or write `engine = column` for each",
            ),
            Some(engine) if columns.iter().any(|it| it.engine.as_ref() == Some(engine)) => {
                cx.error(engine, format!("duplicate engine `{engine}`"));
            }
            _ => columns.push(column),
        }
    }
    columns
}

/// Returns the options of another library's attribute. What cannot be read is left to that library to
/// report.
fn foreign(name: &str, attrs: &[Attribute]) -> Vec<Meta> {
    let ignored = Ctxt::default();
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident(name))
        .filter_map(|attr| {
            attr.parse_args_with(|input: ParseStream<'_>| metas(&ignored, input))
                .ok()
        })
        .flatten()
        .collect()
}

/// Returns the names of the options by which SQLx's derives store or read a value in another form than its own.
pub(crate) fn sqlx_forms(attrs: &[Attribute]) -> Vec<Ident> {
    let metas = foreign("sqlx", attrs).into_iter();
    let forms = metas.filter(|meta| ["json", "try_from", "flatten"].iter().any(|it| meta.is(it)));
    forms.map(|meta| meta.name).collect()
}

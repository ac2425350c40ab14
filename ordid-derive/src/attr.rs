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
    spanned::Spanned as _,
    token::Paren,
};

use crate::{
    ctxt::Ctxt,
    options::{ADAPTERS, AdapterKind, KEY_TYPE, PLACES, Place},
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
    /// `name = value(options)`.
    Call(Ident, TokenStream, Vec<Meta>),
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
        } else if input.peek(Ident::peek_any) && input.peek2(Paren) {
            let name = Ident::parse_any(input)?;
            let (tokens, metas) = list(cx, input)?;
            Value::Call(name, tokens, metas)
        } else {
            Value::Type(ungrouped(input.parse()?))
        }
    } else {
        Value::None
    };
    Ok(Meta { name, value })
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
    pub(crate) krate: Option<Path>,
    pub(crate) scheme: Option<SchemeAttr>,
    /// A static `UuidMask`.
    pub(crate) mask: Option<Path>,
    pub(crate) prefix: Option<LitStr>,
    pub(crate) scatter: Option<ScatterAttr>,
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
            Value::Call(name, _, metas) => (name.clone(), &metas[..]),
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

/// An adapter to which a key type is forwarded.
pub(crate) struct Adapter {
    pub(crate) kind: &'static AdapterKind,
    pub(crate) name: Ident,
    pub(crate) krate: Option<Path>,
    /// `engine = column`, or the one column for all engines under the name of the macro; without
    /// any, the adapter chooses.
    pub(crate) pairs: Vec<(Ident, ColumnAttr)>,
}

/// `binary16`, or `unordered(binary16)`.
pub(crate) struct ColumnAttr {
    pub(crate) tokens: TokenStream,
    /// The last token's.
    pub(crate) end: Span,
}

impl ColumnAttr {
    /// Reads what stands alone: `binary16`, or `unordered(binary16)`.
    fn read_alone(meta: &Meta) -> Option<Self> {
        match &meta.value {
            Value::None => Some(Self {
                tokens: meta.name.to_token_stream(),
                end: meta.name.span(),
            }),
            Value::List(tokens, metas) if meta.is("unordered") => match &metas[..] {
                [column] if column.is_alone() => Some(Self {
                    tokens: [meta.name.to_token_stream(), tokens.clone()]
                        .into_iter()
                        .collect(),
                    end: tokens.span(),
                }),
                _ => None,
            },
            _ => None,
        }
    }

    fn read(meta: &Meta) -> Option<Self> {
        if let Some(column) = meta.ident() {
            return Some(Self {
                tokens: column.to_token_stream(),
                end: column.span(),
            });
        }
        match &meta.value {
            Value::Call(name, tokens, metas) if name == "unordered" => match &metas[..] {
                [column] if column.is_alone() => Some(Self {
                    tokens: [name.to_token_stream(), tokens.clone()]
                        .into_iter()
                        .collect(),
                    end: tokens.span(),
                }),
                _ => None,
            },
            _ => None,
        }
    }
}

impl KeyTypeAttrs {
    pub(crate) fn read(cx: &Ctxt, attrs: &[Attribute]) -> Self {
        let reader = Reader {
            cx,
            place: &KEY_TYPE,
        };
        let mut read = Self::default();
        for meta in &ordid(cx, attrs, reader.place) {
            if let Some(kind) = ADAPTERS.iter().find(|kind| meta.is(kind.name)) {
                let mut slot = None;
                reader.once(&mut slot, meta, Adapter::read(cx, kind, meta));
                if read
                    .adapters
                    .iter()
                    .any(|adapter| std::ptr::eq(adapter.kind, kind))
                {
                    cx.error(&meta.name, format!("duplicate option `{}`", meta.name));
                } else {
                    read.adapters.extend(slot);
                }
            } else if meta.is("crate") {
                reader.once(&mut read.krate, meta, meta.path().cloned());
            } else if meta.is("mask") {
                reader.once(&mut read.mask, meta, meta.path().cloned());
            } else if meta.is("prefix") {
                // Empty is a prefix by TypeID's rules: the bare suffix.
                reader.once(&mut read.prefix, meta, meta.text().cloned());
            } else if meta.is("scatter") {
                reader.once(&mut read.scatter, meta, ScatterAttr::read(cx, meta));
            } else if meta.is("scheme") {
                reader.once(&mut read.scheme, meta, SchemeAttr::read(cx, meta));
            } else {
                reader.unknown(&meta.name);
            }
        }
        read
    }
}

impl Adapter {
    fn read(cx: &Ctxt, kind: &'static AdapterKind, meta: &Meta) -> Option<Self> {
        let mut read = Self {
            kind,
            name: meta.name.clone(),
            krate: None,
            pairs: Vec::new(),
        };
        let metas = match &meta.value {
            Value::None => return Some(read),
            Value::List(_, metas) if !metas.is_empty() => metas,
            _ => return None,
        };
        for meta in metas {
            let duplicate = |cx: &Ctxt| {
                cx.error(&meta.name, format!("duplicate engine `{}`", meta.name));
            };
            if meta.is("crate") {
                match meta.path() {
                    None => cx.error(
                        meta.wrong_tokens(),
                        format!("expected `crate = path::to::{}`", kind.krate),
                    ),
                    Some(_) if read.krate.is_some() => {
                        cx.error(&meta.name, "duplicate option `crate`");
                    }
                    Some(path) => read.krate = Some(path.clone()),
                }
            } else if kind.engines.is_empty() {
                match ColumnAttr::read_alone(meta) {
                    None => cx.error(
                        meta.wrong_tokens(),
                        format!("expected a column, as in `{}`", kind.usage),
                    ),
                    Some(_) if !read.pairs.is_empty() => cx.error(
                        &meta.name,
                        format!(
                            "one column is for all databases: keep one, `{}`",
                            kind.usage
                        ),
                    ),
                    Some(column) => {
                        let name = Ident::new("column", meta.name.span());
                        read.pairs.push((name, column));
                    }
                }
            } else if !kind.engines.iter().any(|engine| meta.is(engine)) {
                cx.error(
                    &meta.name,
                    suggest::unknown("engine", &meta.name.to_string(), kind.engines),
                );
            } else if read.pairs.iter().any(|(engine, _)| *engine == meta.name) {
                duplicate(cx);
            } else if let Some(column) = ColumnAttr::read(meta) {
                read.pairs.push((meta.name.clone(), column));
            } else {
                cx.error(
                    meta.wrong_tokens(),
                    format!("expected `{} = column`, as in `{}`", meta.name, kind.usage),
                );
            }
        }
        Some(read)
    }
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

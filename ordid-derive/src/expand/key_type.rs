//! The impls of `#[derive(KeyType)]`.

use proc_macro2::{Group, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Ident, Type, ext::IdentExt, spanned::Spanned};

use super::{Private, located};
use crate::{
    attr::{Adapter, ColumnAttr},
    check,
    model::KeyType,
    options::{Kind, Made, Parameter},
};

/// Expands a model without mistakes.
pub(super) fn expand(model: &KeyType<'_>, raw: &Type) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let ident = &model.input.ident;
    let (scheme_check, scheme) = checked_scheme(model, private);
    let prefix_check = model.attrs.prefix.as_ref().map(|prefix| {
        let private = private.at(prefix.span());
        quote_spanned!(prefix.span()=> const _: () = #private::check_prefix(#prefix);)
    });
    let json_check = model.attrs.json.as_ref().map(|json| {
        let private = private.at(json.span());
        quote_spanned!(json.span()=> const _: () = #private::check_json_number::<#ident>();)
    });
    let key_type = key_type(model, private, raw, &scheme);
    let scattered = scattered(model, private);
    let masked = masked(model);
    let short = short(model);
    let std_impls = std_impls(model, private, raw, &scheme);
    let forwards = forwards(model, private, &scheme);
    quote! {
        #prefix_check
        #scheme_check
        #json_check
        #key_type
        #std_impls
        #scattered
        #masked
        #short
        #private::key_type_interop! { #ident }
        #forwards
    }
}

/// Returns the scheme's type, with its parameters. Where they are wrong, it is as good as any.
pub(super) fn scheme(model: &KeyType<'_>, private: &Private<'_>) -> TokenStream {
    let scheme = model.scheme();
    // Located at the type that was written: what it lacks is told there.
    let span = scheme_span(model);
    let private = private.at(span);
    let name = Ident::new(scheme.type_name, span);
    let parameter = model.type_parameter();
    match (&scheme.made, parameter) {
        (Made::Snowflake(_), _) => {
            let layout = layout(model, &private, span);
            let buckets = buckets(model).map(|buckets| quote_spanned!(span=> #buckets,));
            quote_spanned!(span=> #private::scheme::#name<#buckets #layout>)
        }
        (Made::Spread, _) => {
            let buckets = buckets(model);
            quote_spanned!(span=> #private::scheme::#name<#buckets>)
        }
        (
            Made::Wrapped {
                module, wrapper, ..
            },
            Some((parameter, written)),
        ) => {
            let [module, wrapper] = [module, wrapper].map(|name| Ident::new(name, span));
            let argument = argument(&private, parameter, written);
            quote_spanned!(span=>
                #private::scheme::#module::#wrapper<#private::scheme::#name, #argument>
            )
        }
        (_, Some((parameter, written))) => {
            let argument = argument(&private, parameter, written);
            quote_spanned!(span=> #argument)
        }
        (_, None) => quote_spanned!(span=> #private::scheme::#name),
    }
}

/// Returns where the scheme is located: at the type that it is made with, where one is written.
fn scheme_span(model: &KeyType<'_>) -> Span {
    model
        .type_parameter()
        .map_or_else(Span::call_site, |(_, written)| written.span())
}

/// Returns a parameter's type: what its name alone stands for, or itself.
fn argument(private: &TokenStream, parameter: &Parameter, written: &Type) -> TokenStream {
    let last = match written {
        Type::Path(path) if path.qself.is_none() && path.path.segments.len() == 1 => {
            path.path.segments.first()
        }
        _ => None,
    };
    let Some(last) = last else {
        return written.to_token_stream();
    };
    let span = written.span();
    match &parameter.kind {
        Kind::Type { module, .. } if is_preset(parameter, written) => {
            let module = Ident::new(module, span);
            quote_spanned!(span=> #private::scheme::#module::#written)
        }
        Kind::Word(words) => {
            let found = words.iter().find(|(word, _)| last.ident == word);
            let path = found.map_or(words[0].1, |(_, path)| path);
            let path = path.iter().map(|name| Ident::new(name, span));
            quote_spanned!(span=> #private::scheme #(::#path)*)
        }
        _ => written.to_token_stream(),
    }
}

/// Returns whether a parameter's type is one of ordid's own, by its name alone.
fn is_preset(parameter: &Parameter, written: &Type) -> bool {
    match (&parameter.kind, written) {
        (Kind::Type { presets, .. }, Type::Path(path)) if path.qself.is_none() => {
            path.path.segments.len() == 1
                && presets
                    .iter()
                    .any(|name| path.path.segments[0].ident == name)
        }
        _ => false,
    }
}

/// Returns the number of buckets of a scheme that spreads its keys.
fn buckets(model: &KeyType<'_>) -> Option<Literal> {
    let scheme = model.scheme();
    let written = model.attrs.scheme.as_ref()?;
    let buckets = check::buckets(scheme, written);
    scheme.is_spread().then(|| Literal::u64_unsuffixed(buckets))
}

/// Returns the layout of a `snowflake`, which may stand behind a bucket.
fn layout(model: &KeyType<'_>, private: &TokenStream, span: Span) -> TokenStream {
    let written = model.attrs.scheme.as_ref();
    let number = |name: &str| {
        let number = written?.number(name)?;
        Some(Literal::u64_unsuffixed(number))
    };
    let epoch = written
        .and_then(|written| written.epoch("epoch"))
        .map(Literal::i64_unsuffixed);
    let bits = ["time", "node", "sequence"].map(number);
    if let Some([epoch, years, ids, nodes]) = need(model) {
        let compact = quote_spanned!(span=> #private::scheme::compact);
        return quote_spanned!(span=>
            #private::scheme::Compact<#compact::Needs<#epoch, #years, #ids, #nodes>>
        );
    }
    let snowflake = quote_spanned!(span=> #private::scheme::snowflake);
    let layout = match (model.type_parameter(), bits) {
        (Some((parameter, written)), _) => {
            let layout = argument(private, parameter, written);
            if is_preset(parameter, written) {
                layout
            } else {
                quote_spanned!(span=> <#layout as #private::OwnLayout>::Layout)
            }
        }
        (None, [Some(time), Some(node), Some(sequence)]) => {
            let unit = number("unit").unwrap_or_else(|| Literal::u64_unsuffixed(1));
            quote_spanned!(span=> #snowflake::Bits<#time, #node, #sequence, #unit>)
        }
        (None, _) if model.scheme().is_spread() => {
            quote_spanned!(span=> #private::scheme::snowflake_spread::Rest)
        }
        (None, _) => quote_spanned!(span=> #snowflake::Twitter),
    };
    match epoch {
        Some(epoch) => quote_spanned!(span=> #snowflake::Since<#layout, #epoch>),
        None => layout,
    }
}

/// Returns what a `snowflake` is needed for: from when, for how many years, for how many ids a second
/// and for how many nodes.
fn need(model: &KeyType<'_>) -> Option<[Literal; 4]> {
    let written = model.attrs.scheme.as_ref()?;
    if !matches!(model.scheme().made, Made::Snowflake(_)) {
        return None;
    }
    let epoch = Literal::i64_unsuffixed(written.epoch("epoch")?);
    let [years, ids] = [written.number("years")?, written.number("ids_per_second")?];
    let nodes = written.number("nodes").unwrap_or(1);
    let [years, ids, nodes] = [years, ids, nodes].map(Literal::u64_unsuffixed);
    Some([epoch, years, ids, nodes])
}

/// Returns what only the compiler can check of the scheme's parameters, and the scheme's type.
fn checked_scheme(
    model: &KeyType<'_>,
    private: &Private<'_>,
) -> (Option<TokenStream>, TokenStream) {
    let scheme = scheme(model, private);
    if let Some([epoch, years, ids, nodes]) = need(model) {
        let span = model
            .attrs
            .scheme
            .as_ref()
            .map_or_else(Span::call_site, |it| it.name.span());
        let private = private.at(span);
        let check = match buckets(model) {
            None => quote_spanned!(span=> check_need(#epoch, #years, #ids, #nodes)),
            Some(buckets) => {
                quote_spanned!(span=> check_need_beside(#buckets, #epoch, #years, #ids, #nodes))
            }
        };
        let check = quote_spanned!(span=> const _: () = #private::#check;);
        return (Some(check), scheme);
    }
    let (Made::Wrapped { check, .. }, Some((parameter, written))) =
        (&model.scheme().made, model.type_parameter())
    else {
        return (None, scheme);
    };
    let span = written.span();
    let private = private.at(span);
    let check = Ident::new(check, span);
    let argument = argument(&private, parameter, written);
    let check = quote_spanned!(span=> #private::#check::<#argument>());
    if is_preset(parameter, written) {
        return (
            Some(quote_spanned!(span=> const _: #private::bool = #check;)),
            scheme,
        );
    }
    (
        Some(quote_spanned!(span=> const __IS_CHECKED: #private::bool = #check;)),
        quote_spanned! {span=>
            <#private::Checked<__IS_CHECKED> as #private::CheckedScheme<#scheme>>::Scheme
        },
    )
}

/// The rule by which keys are spread.
pub(super) fn scattered(model: &KeyType<'_>, private: &Private<'_>) -> Option<TokenStream> {
    let scatter = model.attrs.scatter.as_ref()?;
    let ident = &model.input.ident;
    let buckets = scatter.buckets;
    let rule = match &scatter.lowest_bit {
        None => quote!(by_hash(#buckets)),
        Some((lowest, _)) => quote!(by_reversed_bits(#buckets, #lowest)),
    };
    Some(quote! {
        #[automatically_derived]
        impl #private::ScatteredKey for #ident {
            const SCATTER: #private::Scatter = #private::Scatter::#rule;
        }
    })
}

/// The mask of keys that leave the house.
fn masked(model: &KeyType<'_>) -> Option<TokenStream> {
    let mask = model.attrs.mask.as_ref()?;
    let ident = &model.input.ident;
    // Located at the mask: a scheme that has none is told there, and so is another type.
    let span = mask.span();
    let private = Private(model.attrs.krate.as_ref()).at(span);
    let impl_ = quote!(impl);
    Some(quote_spanned! {span=>
        #[automatically_derived]
        #impl_ #private::MaskedKey for #ident {
            fn uuid_mask() -> &'static #private::UuidMask {
                &#mask
            }
        }
    })
}

/// The short ids of integer keys.
pub(super) fn short(model: &KeyType<'_>) -> Option<TokenStream> {
    let sqids = model.attrs.short.as_ref()?;
    let ident = &model.input.ident;
    // Errors point at the settings, as those about a mask do.
    let span = sqids.span();
    let private = Private(model.attrs.krate.as_ref()).at(span);
    Some(quote_spanned!(span=> #private::short_key! { #ident, #sqids }))
}

fn key_type(
    model: &KeyType<'_>,
    private: &Private<'_>,
    raw: &Type,
    scheme: &TokenStream,
) -> TokenStream {
    let ident = &model.input.ident;
    let name = ident.unraw().to_string();
    let prefix = match &model.attrs.prefix {
        Some(prefix) => quote!(#private::Some(#prefix)),
        None => quote!(#private::None),
    };
    // The raw key is named by the scheme and the field is converted, so that a field of another
    // type is one error and not five.
    let raw_of = raw_of(model, private, raw, scheme);
    let outside = outside(model, scheme);
    let json = model
        .attrs
        .json
        .as_ref()
        .map(|_| quote!(const IS_JSON_NUMBER: #private::bool = true;));
    // At one place with the scheme, so that what its type lacks is told there.
    let span = scheme_span(model);
    let private = private.at(span);
    let of_any_raw = match model.attrs.accept {
        None => quote_spanned!(span=> #private::from_raw(__raw)),
        Some(_) => quote_spanned!(span=> #private::Ok(Self(#raw_of::from_raw(__raw)))),
    };
    // The impl itself is derived code: the compiler is not to offer a change of it.
    let impl_ = quote!(impl);
    quote_spanned! {span=>
        #[automatically_derived]
        #impl_ #private::KeyType for #ident {
            type Raw = <#scheme as #private::Scheme>::Raw;
            type Scheme = #scheme;

            const NAME: &'static #private::str = #name;
            const PREFIX: #private::Option<&'static #private::str> = #prefix;

            #[inline]
            fn from_generated(__generated: #private::Generated<#scheme>) -> Self {
                Self(#raw_of::from_raw(#private::Generated::into_raw(__generated)))
            }

            #[inline]
            fn to_raw(self) -> <#scheme as #private::Scheme>::Raw {
                #raw_of::into_raw(self.0)
            }

            #[inline]
            fn from_raw(
                __raw: <#scheme as #private::Scheme>::Raw,
            ) -> #private::Result<Self, #private::Error> {
                #of_any_raw
            }

            #json
            #outside
        }

        #[automatically_derived]
        #impl_ #private::TypedKey for #ident {}
    }
}

/// Writes the items of `KeyType` that a mask changes.
fn outside(model: &KeyType<'_>, scheme: &TokenStream) -> Option<TokenStream> {
    let mask = model.attrs.mask.as_ref()?;
    // The impl of `MaskedKey` has the same span.
    let span = mask.span();
    let private = Private(model.attrs.krate.as_ref()).at(span);
    Some(quote_spanned! {span=>
        const IS_MASKED: #private::bool = true;

        #[inline]
        fn to_outside(self) -> <#scheme as #private::Scheme>::Raw {
            #private::MaskedKey::masked(self)
        }

        #[inline]
        fn from_outside(
            __outside: <#scheme as #private::Scheme>::Raw,
        ) -> #private::Result<Self, #private::Error> {
            #private::MaskedKey::from_masked(&__outside)
        }

        #[inline]
        fn __cursor_seal(self, __text: &#private::str) -> #private::Option<#private::u64> {
            #private::Option::Some(#private::MaskedKey::__seal(self, __text))
        }
    })
}

/// Returns `<Raw as RawOf<Scheme>>`, located at the field's type.
fn raw_of(
    model: &KeyType<'_>,
    private: &Private<'_>,
    raw: &Type,
    scheme: &TokenStream,
) -> TokenStream {
    let private = private.at(raw.span());
    // Every `snowflake` has the same raw key: a wrong layout is no matter of the field.
    let any = quote_spanned!(raw.span()=> #private::scheme::Snowflake);
    let scheme = match model.scheme().made {
        Made::Snowflake(_) => &any,
        _ => scheme,
    };
    quote_spanned!(raw.span()=> <#raw as #private::RawOf<#scheme>>)
}

/// The traits of the standard library.
fn std_impls(
    model: &KeyType<'_>,
    private: &Private<'_>,
    raw: &Type,
    scheme: &TokenStream,
) -> TokenStream {
    let raw_of = raw_of(model, private, raw, scheme);
    let ident = &model.input.ident;
    let of_raw = std_impls_by_raw(private, ident);
    let span = scheme_span(model);
    let private = private.at(span);
    let impl_ = quote!(impl);
    quote_spanned! {span=>
        #of_raw

        #[automatically_derived]
        #impl_ #private::TryFrom<#raw> for #ident {
            type Error = #private::Error;

            #[inline]
            fn try_from(__raw: #raw) -> #private::Result<Self, #private::Error> {
                #private::KeyType::from_raw(#raw_of::into_raw(__raw))
            }
        }

        #[automatically_derived]
        #impl_ #private::From<#ident> for #raw {
            #[inline]
            fn from(__key: #ident) -> Self {
                __key.0
            }
        }
    }
}

/// The traits that ask nothing but `KeyType` and `Copy`.
pub(super) fn std_impls_by_raw(private: &Private<'_>, ident: &Ident) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl #private::Clone for #ident {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }

        #[automatically_derived]
        impl #private::Copy for #ident {}

        #[automatically_derived]
        impl #private::PartialEq for #ident {
            #[inline]
            fn eq(&self, __other: &Self) -> #private::bool {
                #private::eq(*self, *__other)
            }
        }

        #[automatically_derived]
        impl #private::Eq for #ident {}

        #[automatically_derived]
        impl #private::PartialOrd for #ident {
            #[inline]
            fn partial_cmp(&self, __other: &Self) -> #private::Option<#private::Ordering> {
                #private::Some(#private::cmp(*self, *__other))
            }
        }

        #[automatically_derived]
        impl #private::Ord for #ident {
            #[inline]
            fn cmp(&self, __other: &Self) -> #private::Ordering {
                #private::cmp(*self, *__other)
            }
        }

        #[automatically_derived]
        impl #private::Hash for #ident {
            #[inline]
            fn hash<__H: #private::Hasher>(&self, __state: &mut __H) {
                #private::hash(*self, __state);
            }
        }

        #[automatically_derived]
        impl #private::Debug for #ident {
            #[inline]
            fn fmt(&self, __f: &mut #private::Formatter<'_>) -> #private::FmtResult {
                #private::fmt_debug(*self, __f)
            }
        }

        #[automatically_derived]
        impl #private::Display for #ident {
            #[inline]
            fn fmt(&self, __f: &mut #private::Formatter<'_>) -> #private::FmtResult {
                #private::fmt_display(*self, __f)
            }
        }

        // Code that names the type calls this in the place of the standard library's, which goes through a formatter. Both
        // give the same text.
        #[automatically_derived]
        #[allow(dead_code, unreachable_pub, clippy::inherent_to_string_shadow_display)]
        impl #ident {
            /// Returns the text of the key.
            #[inline]
            #[must_use]
            pub fn to_string(&self) -> #private::String {
                #private::to_string(*self)
            }
        }

        #[automatically_derived]
        impl #private::FromStr for #ident {
            type Err = #private::Error;

            #[inline]
            fn from_str(__text: &#private::str) -> #private::Result<Self, #private::Error> {
                #private::parse(__text)
            }
        }
    }
}

/// Calls the macro `engine` of each adapter: once for the key type, and then for each column.
pub(super) fn forwards(
    model: &KeyType<'_>,
    private: &Private<'_>,
    scheme: &TokenStream,
) -> TokenStream {
    let adapters = model.attrs.adapters.iter();
    adapters
        .map(|adapter| forward(model, private, adapter, scheme))
        .collect()
}

fn forward(
    model: &KeyType<'_>,
    private: &Private<'_>,
    adapter: &Adapter,
    scheme: &TokenStream,
) -> TokenStream {
    let ident = &model.input.ident;
    let path = adapter.path.to_token_stream();
    let end = path.clone().into_iter().last();
    let end = end.map_or_else(Span::call_site, |token| token.span());
    let key = call(&path, end, end, quote!(key: #ident, #scheme));
    if adapter.columns.is_empty() {
        // The name of the raw key, since a macro sees no types.
        let raw = Ident::new(model.scheme().raw_name, end);
        let all = call(&path, end, end, quote!(all: #ident, #scheme, #raw));
        return quote!(#key #all);
    }
    let columns = adapter.columns.iter().map(|column| {
        // Every error underlines the column, with its engine.
        let engine = match &column.engine {
            Some(engine) => engine.to_token_stream(),
            None => quote!(_),
        };
        let stored = stored(private, adapter, column);
        let first = column.engine.as_ref().or(column.unordered.as_ref());
        let start = first.unwrap_or(&column.column).span();
        call(
            &located(&adapter.path, start),
            start,
            column.end,
            quote!(#engine: #ident, #scheme, #stored),
        )
    });
    quote!(#key #(#columns)*)
}

/// Returns the column's type, which the adapter knows by its name.
fn stored(private: &Private<'_>, adapter: &Adapter, column: &ColumnAttr) -> TokenStream {
    let name = &column.column;
    let span = name.span();
    let path = located(&adapter.path, span);
    let mut engine = match &column.engine {
        Some(engine) => engine.clone(),
        None => Ident::new("any", span),
    };
    engine.set_span(span.resolved_at(engine.span()));
    let stored = quote_spanned!(span=> #path::engine::#engine::#name);
    match &column.unordered {
        Some(word) => {
            let private = private.at(word.span());
            quote_spanned!(word.span()=> #private::Unordered<#stored>)
        }
        None => stored,
    }
}

/// Returns `path::engine! { arguments }`, located from the one token to the other.
fn call(path: &TokenStream, start: Span, end: Span, arguments: TokenStream) -> TokenStream {
    let mut braces = Group::new(proc_macro2::Delimiter::Brace, arguments);
    braces.set_span(end);
    let braces = braces.into_token_stream();
    quote_spanned!(start=> #path::engine! #braces)
}

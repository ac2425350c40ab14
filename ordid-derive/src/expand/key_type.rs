//! The impls of `#[derive(KeyType)]`.

use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Ident, Type, ext::IdentExt, spanned::Spanned};

use super::{Private, located};
use crate::{attr::Adapter, model::KeyType};

/// Expands a model without mistakes.
pub(super) fn expand(model: &KeyType<'_>, raw: &Type) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let ident = &model.input.ident;
    let scheme = scheme(model, private);
    let prefix_check = model.attrs.prefix.as_ref().map(|prefix| {
        let private = private.at(prefix.span());
        quote_spanned!(prefix.span()=> const _: () = #private::check_prefix(#prefix);)
    });
    let key_type = key_type(model, private, raw, &scheme);
    let std_impls = std_impls(model, private, raw, &scheme);
    let forwards = model
        .adapters()
        .map(|adapter| forward(model, adapter, &scheme));
    quote! {
        #prefix_check
        #key_type
        #std_impls
        #private::key_type_interop! { #ident }
        #(#forwards)*
    }
}

/// Returns the scheme's type, with the type that it is generic over.
pub(super) fn scheme(model: &KeyType<'_>, private: &Private<'_>) -> TokenStream {
    let scheme = model.scheme();
    let name = format_ident!("{}", scheme.type_name);
    let Some(parameter) = &scheme.parameter else {
        return quote!(#private::scheme::#name);
    };
    let module = format_ident!("{}", parameter.module);
    let argument = match model.parameter() {
        None => {
            let default = format_ident!("{}", parameter.presets[0]);
            quote!(#private::scheme::#module::#default)
        }
        Some(written) => {
            let text = written.to_token_stream().to_string();
            if parameter.presets.contains(&text.as_str()) {
                let private = private.at(written.span());
                quote_spanned!(written.span()=> #private::scheme::#module::#written)
            } else {
                written.to_token_stream()
            }
        }
    };
    // Located at the type that was written: what it lacks is told there.
    let span = model
        .parameter()
        .map_or_else(Span::call_site, Spanned::span);
    let private = private.at(span);
    let name = Ident::new(&name.to_string(), span);
    quote_spanned!(span=> #private::scheme::#name<#argument>)
}

/// Returns where the scheme is located: at the type that it is generic over, where one is written.
fn scheme_span(model: &KeyType<'_>) -> Span {
    model
        .parameter()
        .map_or_else(Span::call_site, Spanned::span)
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
    let raw_of = raw_of(private, raw, scheme);
    // At one place with the scheme, so that what its type lacks is told there.
    let span = scheme_span(model);
    let private = private.at(span);
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

            fn from_raw(
                __raw: <#scheme as #private::Scheme>::Raw,
            ) -> #private::Result<Self, #private::Error> {
                #private::from_raw(__raw)
            }
        }

        #[automatically_derived]
        #impl_ #private::TypedKey for #ident {}
    }
}

/// Returns `<Raw as RawOf<Scheme>>`, located at the field's type.
fn raw_of(private: &Private<'_>, raw: &Type, scheme: &TokenStream) -> TokenStream {
    let private = private.at(raw.span());
    quote_spanned!(raw.span()=> <#raw as #private::RawOf<#scheme>>)
}

/// The traits of the standard library.
fn std_impls(
    model: &KeyType<'_>,
    private: &Private<'_>,
    raw: &Type,
    scheme: &TokenStream,
) -> TokenStream {
    let raw_of = raw_of(private, raw, scheme);
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
            fn fmt(&self, __f: &mut #private::Formatter<'_>) -> #private::FmtResult {
                #private::fmt_debug(*self, __f)
            }
        }

        #[automatically_derived]
        impl #private::Display for #ident {
            fn fmt(&self, __f: &mut #private::Formatter<'_>) -> #private::FmtResult {
                #private::fmt_display(*self, __f)
            }
        }

        #[automatically_derived]
        impl #private::FromStr for #ident {
            type Err = #private::Error;

            fn from_str(__text: &#private::str) -> #private::Result<Self, #private::Error> {
                #private::parse(__text)
            }
        }
    }
}

/// Calls the adapter's macro for each pair, so that every error underlines the pair.
///
/// Where the adapter chooses, it is told of a raw key that is no UUID: a macro sees no types.
pub(super) fn forward(model: &KeyType<'_>, adapter: &Adapter, scheme: &TokenStream) -> TokenStream {
    let ident = &model.input.ident;
    if adapter.pairs.is_empty() {
        let span = adapter.name.span();
        let raw = match model.scheme().raw_name {
            "Uuid" => TokenStream::new(),
            other => {
                let raw = Ident::new(other, span);
                quote!(, #raw)
            }
        };
        let all = Ident::new("all", span);
        return call(adapter, &all, span, quote!(#ident, #scheme #raw));
    }
    adapter
        .pairs
        .iter()
        .map(|(engine, column)| {
            let tokens = &column.tokens;
            call(
                adapter,
                engine,
                column.end,
                quote!(#ident, #scheme, #tokens),
            )
        })
        .collect()
}

/// Returns `adapter::engine::name! { arguments }`, located from the name to the last token.
fn call(adapter: &Adapter, name: &Ident, end: Span, arguments: TokenStream) -> TokenStream {
    let span = name.span();
    let krate = match &adapter.krate {
        Some(path) => located(path, span),
        None => {
            let krate = Ident::new(adapter.kind.krate, span);
            quote_spanned!(span=> ::#krate)
        }
    };
    let mut braces = Group::new(proc_macro2::Delimiter::Brace, arguments);
    braces.set_span(end);
    let braces = braces.into_token_stream();
    quote_spanned!(span=> #krate::engine::#name! #braces)
}

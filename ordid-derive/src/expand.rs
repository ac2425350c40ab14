//! Expansion: from the checked model to tokens.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{DeriveInput, Path};

use crate::{check, ctxt::Ctxt, model};

mod fallback;
mod key_type;
mod ordered_key;
mod sea_orm;

/// Expands `#[derive(KeyType)]`.
pub(crate) fn key_type(input: &DeriveInput) -> TokenStream {
    let cx = Ctxt::default();
    let model = model::KeyType::new(&cx, input);
    check::key_type(&cx, &model);
    let impls = match (cx.finish(), model.field()) {
        (None, Some(field)) => key_type::expand(&model, &field.ty),
        (errors, _) => {
            let stub = fallback::key_type(&model);
            quote!(#errors #stub)
        }
    };
    wrapped(impls)
}

/// Expands `#[derive(OrderedKey)]`.
pub(crate) fn ordered_key(input: &DeriveInput) -> TokenStream {
    // `#[sea_orm::model]` copies the derives of a `Model` to the `ModelEx` that it makes.
    let is_sea_orm = input.attrs.iter().any(|it| it.path().is_ident("sea_orm"));
    if is_sea_orm && input.ident.to_string().ends_with("Ex") {
        return TokenStream::new();
    }
    let cx = Ctxt::default();
    let model = model::Entity::new(&cx, input);
    check::entity(&cx, &model);
    let impls = match (cx.finish(), model.key()) {
        (None, Some(key)) if model.sea_orm().is_some() => sea_orm::expand(&model, key),
        (None, Some(key)) => ordered_key::expand(&model, key),
        (errors, _) => {
            let stub = fallback::ordered_key(&model);
            quote!(#errors #stub)
        }
    };
    wrapped(impls)
}

/// Keeps what is derived out of the user's namespace. Derived code names the struct and its fields, also those that are
/// deprecated: the user could not take the warning away.
fn wrapped(impls: TokenStream) -> TokenStream {
    quote! {
        #[allow(deprecated)]
        const _: () = {
            #impls
        };
    }
}

/// Where derived code finds everything that it names: `::ordid::__private`, or inside the path that
/// the user gave.
struct Private<'a>(Option<&'a Path>);

impl Private<'_> {
    /// Returns the path, located at a token of the user: an error underlines that token.
    fn at(&self, span: Span) -> TokenStream {
        match self.0 {
            None => quote_spanned!(span=> ::ordid::__private),
            Some(path) => {
                let path = located(path, span);
                quote_spanned!(span=> #path::__private)
            }
        }
    }
}

impl ToTokens for Private<'_> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        tokens.extend(match self.0 {
            None => quote!(::ordid::__private),
            Some(path) => quote!(#path::__private),
        });
    }
}

/// Returns the path's tokens, located at the span, with the meaning that they had.
fn located(path: &Path, span: Span) -> TokenStream {
    path.to_token_stream()
        .into_iter()
        .map(|mut token| {
            token.set_span(span.resolved_at(token.span()));
            token
        })
        .collect()
}

//! The impls of `#[derive(OrderedKey)]`.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    GenericParam, Generics, Ident, Type, WhereClause, parse_quote, punctuated::Punctuated,
    spanned::Spanned,
};

use super::{Private, located};
use crate::{
    attr::ParentAttr,
    model::{Entity, EntityField},
};

/// Expands a model without mistakes.
pub(super) fn expand(model: &Entity<'_>, key: &EntityField<'_>) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let ordered_key = ordered_key(model, key, private);
    let fields = fields(model, key, private);
    let columns = columns(model, private, &quote!(Self));
    let forwards = forward(model);
    quote! {
        #ordered_key
        #fields
        #columns
        #forwards
    }
}

/// Calls the macro of Diesel's adapter with the table and the paths of its columns, each located at the
/// field's type.
pub(super) fn forward(model: &Entity<'_>) -> Option<TokenStream> {
    let adapter = model.attrs.diesel.as_ref()?;
    let table = model.attrs.diesel_table.as_ref()?;
    let ident = &model.input.ident;
    if !model.input.generics.params.is_empty() {
        return None;
    }
    let span = adapter.name.span();
    let krate = located(&adapter.krate, span);
    let columns = model.columns().map(|field| {
        let (ty, mut column) = (field.ty(), field.diesel_column().clone());
        let span = ty.span();
        column.set_span(span.resolved_at(column.span()));
        let table = located(table, span);
        // Of a key type that somebody else's parent shares, nothing is known.
        let tells = |parent: &ParentAttr| parent.entity.is_none();
        let how = match model.is_key(field) || field.attrs.parent.as_ref().is_some_and(tells) {
            true => quote_spanned!(span=> AsKey),
            false => quote_spanned!(span=> AsValue),
        };
        quote_spanned!(span=> #table::#column: #how #ty)
    });
    Some(quote_spanned!(span=> #krate::entity! { #ident, #table::table #(, #columns)* }))
}

fn ordered_key(model: &Entity<'_>, key: &EntityField<'_>, private: &Private<'_>) -> TokenStream {
    let ident = &model.input.ident;
    let (impl_generics, type_generics, where_clause) = model.input.generics.split_for_impl();
    let names = names(model, private);
    let (key_ident, key_type) = (key.ident, key.ty());
    let parents = model.parents().map(|(field, parent)| {
        let made = parent_field(private, field, parent);
        match &field.attrs.deferrable {
            Some(_) => quote!(#made.parent.deferrable()),
            None => quote!(#made.parent),
        }
    });
    let shown: Vec<_> = model
        .parents()
        .enumerate()
        .map(|(position, (field, parent))| {
            let ident = field.ident;
            let made = parent_field(private, field, parent);
            quote!((#made.show)(&self.#ident, #position, __visit);)
        })
        .collect();
    let visit = if shown.is_empty() {
        quote!(_)
    } else {
        quote!(__visit)
    };
    let span = key_type.span().resolved_at(Span::call_site());
    let at_key = &private.at(span);
    let key_fns = quote_spanned! {span=>
        fn key(&self) -> #at_key::Option<#at_key::KeyOf<Self>> {
            #at_key::KeyField::get(&self.#key_ident)
        }

        fn assign_key(&mut self, __key: #at_key::KeyOf<Self>) {
            #at_key::KeyField::set(&mut self.#key_ident, __key);
        }
    };
    let parents_fn = quote! {
        fn parents(&self, #visit: &mut dyn #private::FnMut(#private::usize, #private::KeyBytes)) {
            #(#shown)*
        }
    };
    let uncounted = model
        .attrs
        .uncounted
        .is_some()
        .then(|| quote!(const COUNTS_INSERTS: #private::bool = false;));
    let bound = key_bound(model, private, key_type);
    let where_clause = with_bounds(where_clause, bound.as_ref());
    quote! {
        #[allow(trivial_bounds)]
        #[automatically_derived]
        impl #impl_generics #private::OrderedKey for #ident #type_generics #where_clause {
            type Field = #key_type;

            #names
            const PARENTS: &'static [#private::Parent] = &[#(#parents),*];
            #uncounted

            #key_fns

            #parents_fn
        }
    }
}

/// The names of the table, the key and the columns.
pub(super) fn names(model: &Entity<'_>, private: &Private<'_>) -> TokenStream {
    let table = model.table();
    let schema = match model.schema() {
        Some(schema) => quote!(#private::Some(#schema)),
        None => quote!(#private::None),
    };
    let key = model
        .key()
        .map(|key| key.column.as_str())
        .unwrap_or_default();
    let columns = model.columns().map(|field| &field.column);
    quote! {
        const SCHEMA: #private::Option<&'static #private::str> = #schema;
        const TABLE: &'static #private::str = #table;
        const KEY_COLUMN: &'static #private::str = #key;
        const COLUMNS: &'static [&'static #private::str] = &[#(#columns),*];
    }
}

/// Writes a constant for each column, under the name of its field, where they are wanted.
pub(super) fn columns(
    model: &Entity<'_>,
    private: &Private<'_>,
    entity: &TokenStream,
) -> Option<TokenStream> {
    model.attrs.columns.as_ref()?;
    let ident = &model.input.ident;
    let (impl_generics, type_generics, where_clause) = model.input.generics.split_for_impl();
    let constants = model.columns().enumerate().map(|(position, field)| {
        let (name, vis) = (field.ident, &field.field.vis);
        let doc = format!("The column `{}`.", field.column);
        quote! {
            #[doc = #doc]
            #vis const #name: #private::ColumnOf<#entity> = #private::ColumnOf::at(#position);
        }
    });
    Some(quote! {
        #[allow(dead_code, non_upper_case_globals)]
        #[automatically_derived]
        impl #impl_generics #ident #type_generics #where_clause {
            #(#constants)*
        }
    })
}

/// Demands that the key field can hold a key. Where it cannot, that is said here and nowhere else:
/// inside, it is taken for granted.
///
/// Not of a type that a parameter is part of: of it the compiler would then know no more than this.
fn key_bound(model: &Entity<'_>, private: &Private<'_>, ty: &Type) -> Option<TokenStream> {
    let parameters = model
        .input
        .generics
        .params
        .iter()
        .map(|parameter| match parameter {
            GenericParam::Type(parameter) => &parameter.ident,
            GenericParam::Const(parameter) => &parameter.ident,
            GenericParam::Lifetime(parameter) => &parameter.lifetime.ident,
        });
    let parameters: HashSet<_> = parameters.collect();
    if mentions(ty.to_token_stream(), &parameters) {
        return None;
    }
    let span = ty.span();
    let private = private.at(span);
    Some(quote_spanned!(span=> #ty: #private::KeyField))
}

/// Returns whether one of these names is among the tokens.
fn mentions(tokens: TokenStream, names: &HashSet<&Ident>) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(name) => names.contains(&name),
        TokenTree::Group(group) => mentions(group.stream(), names),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Returns what a parent field is, located at its type, which has to tell the parent.
pub(super) fn parent_field(
    private: &Private<'_>,
    field: &EntityField<'_>,
    parent: &ParentAttr,
) -> TokenStream {
    let (column, ty) = (&field.column, field.ty());
    let span = ty.span();
    let private = private.at(span);
    match &parent.entity {
        None => quote_spanned!(span=> #private::by_key::<#ty>(#column)),
        Some(entity) => quote_spanned!(span=> #private::by_entity::<#ty, #entity>(#column)),
    }
}

fn fields(model: &Entity<'_>, key: &EntityField<'_>, private: &Private<'_>) -> TokenStream {
    let mut seen = HashSet::new();
    let bounds: Punctuated<TokenStream, syn::Token![+]> = model
        .columns()
        .map(EntityField::ty)
        .filter(|ty| seen.insert(ty.to_token_stream().to_string()))
        .map(|ty| sink_of(private, ty))
        .collect();
    let puts = model.columns().map(|field| {
        let (ident, ty) = (field.ident, field.ty());
        quote!(#private::Sink::<#ty>::put(__sink, &self.#ident);)
    });
    let key_type = key.ty();
    // Located as the functions of the key are.
    let span = key_type.span().resolved_at(Span::call_site());
    let at_key = private.at(span);
    let write_key = quote_spanned! {span=>
        fn write_key(__key: #at_key::KeyOf<Self>, __sink: &mut __S) {
            #at_key::Sink::<#key_type>::put(__sink, &#at_key::KeyField::with(__key));
        }
    };
    let ident = &model.input.ident;
    let (_, type_generics, where_clause) = model.input.generics.split_for_impl();
    let generics = with_sink(&model.input.generics, private);
    let sink = quote!(__S: #bounds);
    let bound = key_bound(model, private, key_type);
    let where_clause = with_bounds(where_clause, bound.iter().chain([&sink]));
    quote! {
        // The bounds are located at the fields' types: to Clippy, the user wrote them.
        #[allow(clippy::absolute_paths, trivial_bounds)]
        #[automatically_derived]
        impl #generics #private::Fields<__S> for #ident #type_generics #where_clause {
            fn write(&self, __sink: &mut __S) {
                #(#puts)*
            }

            #write_key
        }
    }
}

/// Returns `Sink<Type>`, located at the field's type from its first token to its last.
fn sink_of(private: &Private<'_>, ty: &Type) -> TokenStream {
    let first = ty.span();
    let last = ty
        .to_token_stream()
        .into_iter()
        .last()
        .map_or(first, |it| it.span());
    let private = private.at(first);
    let close = quote_spanned!(last=> >);
    quote_spanned!(first=> #private::Sink<#ty #close)
}

/// Returns the parameters of the struct, and the sink's after them.
pub(super) fn with_sink(generics: &Generics, private: &Private<'_>) -> TokenStream {
    let mut generics = generics.clone();
    generics.params.push(parse_quote!(__S: ?#private::Sized));
    let (impl_generics, ..) = generics.split_for_impl();
    impl_generics.into_token_stream()
}

fn with_bounds<'b>(
    where_clause: Option<&WhereClause>,
    bounds: impl IntoIterator<Item = &'b TokenStream>,
) -> TokenStream {
    let bounds = bounds.into_iter();
    let predicates = where_clause
        .map(|clause| clause.predicates.iter())
        .into_iter()
        .flatten();
    quote!(where #(#predicates,)* #(#bounds,)*)
}

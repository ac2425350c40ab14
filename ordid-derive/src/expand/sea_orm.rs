//! What `#[derive(OrderedKey)]` makes of a SeaORM model: one call of the adapter's macro, which
//! implements the traits for its `ActiveModel`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;

use super::{
    Private, located,
    ordered_key::{Demand, columns, key_length, names, parents, returned, uncounted, version},
};
use crate::{
    attr::adapter_path,
    model::{Entity, EntityField},
};

/// Expands a model without mistakes.
pub(super) fn expand(model: &Entity<'_>, key: &EntityField<'_>) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let word = format_ident!("sea_orm");
    let given = model.attrs.sea_orm_crate.clone();
    let krate = given.or_else(|| adapter_path(&word));
    let keys = model.keys();
    let key_length = key_length(model, private);
    let keys = match &keys[..] {
        [_, _, ..] => {
            let idents = keys.iter().map(|key| key.ident);
            let types = keys.iter().map(|key| key.ty());
            let names = keys.iter().map(|key| &key.column);
            let places = (0..keys.len()).map(syn::Index::from);
            let bounds = keys.iter().enumerate().map(|(place, key)| {
                let ty = key.ty();
                let span = ty.span();
                let private = private.at(span);
                let bound = Demand::of_part(place).bound(&private, span);
                quote_spanned!(span=> #private::Option<#ty>: #bound)
            });
            quote!(keys #(#idents: #types = #names at #places),* where { #(#bounds),* };)
        }
        _ => {
            let (key, key_type) = (key.ident, key.ty());
            let span = key_type.span();
            let krate = krate.as_ref().map(|krate| located(krate, span));
            let bound = quote_spanned!(span=> #key_type: #krate::engine::InModel);
            quote!(#key: #key_type where { #bound };)
        }
    };
    let names = names(model, private);
    let uncounted = uncounted(model, private);
    let parents = parents(model, private, |field, parent, shows| {
        let fields = match &parent.fields[..] {
            [] => std::slice::from_ref(field.ident),
            fields => fields,
        };
        let shown: Vec<_> = (0..fields.len())
            .map(|it| format_ident!("__part_{it}"))
            .collect();
        let shows = match &shown[..] {
            [shown] => shows(quote!(#shown)),
            _ => shows(quote!(&#private::KeyFields((#(*#shown),*)))),
        };
        // A column of an `ActiveModel` that is `NotSet` has no value.
        quote! {
            if let (#(#private::Option::Some(#shown),)*) =
                (#(#krate::engine::set(&self.#fields),)*)
            {
                #shows
            }
        }
    });
    let columns = columns(model, private, &quote!(ActiveModel));
    let known = version(
        model,
        private,
        |ident, _| quote!(#krate::engine::version_number(&self.#ident)),
    );
    let versioned = model.version().map(|(position, field)| {
        let (ident, ty) = (field.ident, field.ty());
        quote!(version #position #ident: #ty;)
    });
    // A column of an `ActiveModel` that is `NotSet` has no cell.
    let cells = returned(
        model,
        private,
        |ident, _| quote!(#krate::engine::cell(&self.#ident)),
    );
    let types: Vec<_> = model.returning().map(EntityField::ty).collect();
    let read = (!types.is_empty()).then(|| quote!(returning #(#types),*;));
    quote! {
        #krate::engine::entity! {
            { #names }
            { #known #parents #uncounted #cells }
            #keys
            #versioned
            #read
        }
        #columns
        #key_length
    }
}

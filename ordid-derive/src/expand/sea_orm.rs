//! What `#[derive(OrderedKey)]` makes of a SeaORM model: one call of the adapter's macro, which
//! implements the traits for its `ActiveModel`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    Private,
    ordered_key::{names, parent_field},
};
use crate::{
    model::{Entity, EntityField},
    options::SEA_ORM_CRATE,
};

/// Expands a model without mistakes.
pub(super) fn expand(model: &Entity<'_>, key: &EntityField<'_>) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let krate = match &model.attrs.sea_orm_crate {
        Some(path) => quote!(#path),
        None => {
            let krate = quote::format_ident!("{SEA_ORM_CRATE}");
            quote!(::#krate)
        }
    };
    let (key, key_type) = (key.ident, key.ty());
    let names = names(model, private);
    let parents = model
        .parents()
        .enumerate()
        .map(|(position, (field, parent))| {
            let ident = field.ident;
            let made = parent_field(private, field, parent);
            let parent = match &field.attrs.deferrable {
                Some(_) => quote!(#made.parent.deferrable()),
                None => quote!(#made.parent),
            };
            quote!(#position #ident { #parent } { #made })
        });
    quote! {
        #krate::engine::entity! {
            { #names }
            #key: #key_type;
            #(#parents)*
        }
    }
}

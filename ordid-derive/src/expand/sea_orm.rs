//! What `#[derive(OrderedKey)]` makes of a SeaORM model: one call of the adapter's macro, which
//! implements the traits for its `ActiveModel`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{
    Private,
    ordered_key::{columns, names, parent_field},
};
use crate::{
    attr::adapter_path,
    model::{Entity, EntityField},
};

/// Expands a model without mistakes.
pub(super) fn expand(model: &Entity<'_>, key: &EntityField<'_>) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let word = quote::format_ident!("sea_orm");
    let given = model.attrs.sea_orm_crate.clone();
    let krate = given.or_else(|| adapter_path(&word));
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
    let columns = columns(model, private, &quote!(ActiveModel));
    quote! {
        #krate::engine::entity! {
            { #names }
            #key: #key_type;
            #(#parents)*
        }
        #columns
    }
}

//! After a mistake: impls that let the rest of the program pass, so that the mistake's own message
//! stands alone.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Data, Type};

use super::{
    Private,
    key_type::{forwards, scattered, scheme, short, std_impls_by_raw},
    ordered_key::{forward as forward_entity, names, with_sink},
};
use crate::model::{Entity, KeyType};

/// Returns stubs of what `#[derive(KeyType)]` derives.
pub(super) fn key_type(model: &KeyType<'_>) -> TokenStream {
    // `KeyType` asks for `Copy` and `'static`: without them, a stub would be a mistake of its own.
    if !model.input.generics.params.is_empty() || !is_copy(&model.input.data) {
        return TokenStream::new();
    }
    let private = &Private(model.attrs.krate.as_ref());
    let ident = &model.input.ident;
    let name = ident.to_string();
    let scheme = scheme(model, private);
    let raw_name = format_ident!("{}", model.scheme().raw_name);
    let raw = quote!(#private::#raw_name);
    let std_impls = std_impls_by_raw(private, ident);
    let scattered = scattered(model, private);
    let masked = (model.attrs.mask.is_some() && model.scheme().is_maskable()).then(|| {
        quote! {
            impl #private::MaskedKey for #ident {
                fn uuid_mask() -> &'static #private::UuidMask {
                    loop {}
                }
            }
        }
    });
    let short = model.scheme().is_integer().then(|| short(model));
    let forwards = forwards(model, private, &scheme);
    quote! {
        impl #private::KeyType for #ident {
            type Raw = #raw;
            type Scheme = #scheme;

            const NAME: &'static #private::str = #name;
            const PREFIX: #private::Option<&'static #private::str> = #private::None;

            fn from_generated(_: #private::Generated<#scheme>) -> Self {
                loop {}
            }

            fn to_raw(self) -> #raw {
                loop {}
            }

            fn from_raw(_: #raw) -> #private::Result<Self, #private::Error> {
                loop {}
            }
        }

        impl #private::TypedKey for #ident {}

        #std_impls

        #scattered

        #masked

        #short

        impl #private::TryFrom<#raw> for #ident {
            type Error = #private::Error;

            fn try_from(_: #raw) -> #private::Result<Self, #private::Error> {
                loop {}
            }
        }

        impl #private::From<#ident> for #raw {
            fn from(_: #ident) -> Self {
                loop {}
            }
        }

        #private::key_type_interop! { #ident }

        #forwards
    }
}

/// Returns whether the fields' types are `Copy` by their names.
fn is_copy(data: &Data) -> bool {
    const COPY: &[&str] = &[
        "bool", "char", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
        "u128", "usize", "f32", "f64", "Uuid", "ObjectId", "PushId", "Key192",
    ];
    let is_copy = |ty: &Type| match ty {
        Type::Path(path) => path
            .path
            .segments
            .last()
            .is_some_and(|last| COPY.iter().any(|name| last.ident == name)),
        _ => false,
    };
    match data {
        Data::Struct(data) => data.fields.iter().all(|field| is_copy(&field.ty)),
        Data::Enum(data) => data
            .variants
            .iter()
            .flat_map(|variant| &variant.fields)
            .all(|field| is_copy(&field.ty)),
        Data::Union(data) => data.fields.named.iter().all(|field| is_copy(&field.ty)),
    }
}

/// Returns stubs of what `#[derive(OrderedKey)]` derives, for every sink.
pub(super) fn ordered_key(model: &Entity<'_>) -> TokenStream {
    let private = &Private(model.attrs.krate.as_ref());
    let ident = &model.target();
    let (impl_generics, type_generics, where_clause) = model.input.generics.split_for_impl();
    let with_sink = with_sink(&model.input.generics, private);
    let names = names(model, private);
    let forwards = forward_entity(model);
    let field = match model.key() {
        Some(key) => key.ty().to_token_stream(),
        None => quote!(#private::Uuid),
    };
    quote! {
        impl #impl_generics #private::OrderedKey for #ident #type_generics #where_clause {
            type Field = #field;

            #names
            const PARENTS: &'static [#private::Parent] = &[];

            fn key(&self) -> #private::Option<#private::KeyOf<Self>> {
                loop {}
            }

            fn assign_key(&mut self, _: #private::KeyOf<Self>) {
                loop {}
            }

            fn parents(&self, _: &mut dyn #private::FnMut(#private::usize, #private::KeyBytes)) {
                loop {}
            }
        }

        impl #with_sink #private::Fields<__S> for #ident #type_generics #where_clause {
            fn write(&self, _: &mut __S) {
                loop {}
            }

            fn write_key(_: #private::KeyOf<Self>, _: &mut __S) {
                loop {}
            }
        }

        #forwards
    }
}

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
    let mut key = Key::of(model, key, private);
    key.bounds.extend(assigned_bounds(model, private));
    let key = &key;
    let ordered_key = ordered_key(model, key, private);
    let fields = fields(model, key, private);
    let columns = columns(model, private, &quote!(Self));
    let key_length = key_length(model, private);
    let forwards = forward(model);
    quote! {
        #ordered_key
        #fields
        #columns
        #key_length
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
    // A column whose name could not be read has an error already, and the field's name would be another column.
    let is_known = |field: &&EntityField<'_>| !field.attrs.is_column_unknown;
    let columns = model.columns().filter(is_known).map(|field| {
        let (ty, mut column) = (field.ty(), field.diesel_column().clone());
        let span = ty.span();
        column.set_span(span.resolved_at(column.span()));
        let table = located(table, span);
        // Of a key type that somebody else's parent shares, nothing is known.
        let tells = |parent: &ParentAttr| parent.entity.is_none();
        // The derive does not know the column types of a key that has several columns either.
        let is_key = model.is_key(field) && model.keys().len() == 1;
        let how = match is_key || field.attrs.parent.as_ref().is_some_and(tells) {
            true => quote_spanned!(span=> AsKey),
            false => quote_spanned!(span=> AsValue),
        };
        quote_spanned!(span=> #table::#column: #how #ty)
    });
    let returned = model.returning().filter(is_known).map(|field| {
        let (ty, mut column) = (field.ty(), field.diesel_column().clone());
        let span = ty.span();
        column.set_span(span.resolved_at(column.span()));
        let table = located(table, span);
        quote_spanned!(span=> #table::#column: #ty)
    });
    Some(quote_spanned! {span=>
        #krate::entity! { #ident, #table::table #(, #columns)* #(; #returned)* }
    })
}

/// The key of an entity: one field, or several as one.
pub(super) struct Key {
    /// The type of the key field, such as `OrderId`.
    ty: TokenStream,
    /// The functions of `OrderedKey` that are about it.
    functions: TokenStream,
    /// The function of `Fields` that writes it.
    write: TokenStream,
    /// The bounds that the fields' types have to meet.
    bounds: Vec<TokenStream>,
}

/// The bound that the type of a key field has to meet.
#[derive(Clone, Copy)]
pub(super) enum Demand {
    Key,
    Part,
    /// That of the first part, in the order of whose column rows are.
    LeadingPart,
}

impl Demand {
    /// Returns the bound of a part of a key.
    pub(super) fn of_part(place: usize) -> Self {
        match place {
            0 => Self::LeadingPart,
            _ => Self::Part,
        }
    }

    /// Returns the trait, located at the field's type.
    pub(super) fn bound(self, private: &TokenStream, span: Span) -> TokenStream {
        match self {
            Self::Key => quote_spanned!(span=> #private::KeyField),
            Self::Part => quote_spanned!(span=> #private::PartField),
            Self::LeadingPart => quote_spanned!(span=> #private::LeadingField),
        }
    }
}

impl Key {
    fn of(model: &Entity<'_>, first: &EntityField<'_>, private: &Private<'_>) -> Self {
        let keys = model.keys();
        match &keys[..] {
            [_, _, ..] => Self::of_several(model, &keys, private),
            _ => Self::of_one(model, first, private),
        }
    }

    fn of_one(model: &Entity<'_>, key: &EntityField<'_>, private: &Private<'_>) -> Self {
        let (ident, ty) = (key.ident, key.ty());
        let span = ty.span().resolved_at(Span::call_site());
        let at_key = &private.at(span);
        Self {
            ty: ty.to_token_stream(),
            functions: quote_spanned! {span=>
                fn key(&self) -> #at_key::Option<#at_key::KeyOf<Self>> {
                    #at_key::KeyField::get(&self.#ident)
                }

                fn assign_key(&mut self, __key: #at_key::KeyOf<Self>) {
                    #at_key::KeyField::set(&mut self.#ident, __key);
                }
            },
            write: quote_spanned! {span=>
                fn write_key(__key: #at_key::KeyOf<Self>, __sink: &mut __S) {
                    #at_key::Sink::<#ty>::put(__sink, &#at_key::KeyField::with(__key));
                }
            },
            bounds: key_bound(model, private, ty, Demand::Key)
                .into_iter()
                .collect(),
        }
    }

    fn of_several(model: &Entity<'_>, keys: &[&EntityField<'_>], private: &Private<'_>) -> Self {
        let idents: Vec<_> = keys.iter().map(|key| key.ident).collect();
        let types: Vec<_> = keys.iter().map(|key| key.ty()).collect();
        let places: Vec<_> = (0..keys.len()).map(syn::Index::from).collect();
        let names = keys.iter().map(|key| &key.column);
        let bounds = types
            .iter()
            .enumerate()
            .filter_map(|(place, ty)| key_bound(model, private, ty, Demand::of_part(place)));
        Self {
            ty: quote!(#private::KeyFields<(#(#types),*)>),
            functions: quote! {
                const KEY_COLUMNS: &'static [&'static #private::str] = &[#(#names),*];

                fn key(&self) -> #private::Option<#private::KeyOf<Self>> {
                    #private::KeyField::get(&#private::KeyFields((#(self.#idents),*)))
                }

                fn assign_key(&mut self, __key: #private::KeyOf<Self>) {
                    let __fields = <Self::Field as #private::KeyField>::with(__key);
                    #(self.#idents = __fields.0.#places;)*
                }

                fn key_fields(&self) -> #private::Option<Self::Field> {
                    #private::Some(#private::KeyFields((#(self.#idents),*)))
                }
            },
            write: quote! {
                fn write_key(__key: #private::KeyOf<Self>, __sink: &mut __S) {
                    let __fields: <Self as #private::OrderedKey>::Field =
                        #private::KeyField::with(__key);
                    #(#private::Sink::<#types>::put(__sink, &__fields.0.#places);)*
                }
            },
            bounds: bounds.collect(),
        }
    }
}

fn ordered_key(model: &Entity<'_>, key: &Key, private: &Private<'_>) -> TokenStream {
    let ident = &model.input.ident;
    let (impl_generics, type_generics, where_clause) = model.input.generics.split_for_impl();
    let names = names(model, private);
    let Key {
        ty: key_type,
        functions: key_fns,
        bounds,
        ..
    } = key;
    let parents = parents(model, private, |field, parent, shows| {
        let shown = match &parent.fields[..] {
            [] => {
                let ident = field.ident;
                quote!(self.#ident)
            }
            fields => quote!(#private::KeyFields((#(self.#fields),*))),
        };
        shows(quote!(&#shown))
    });
    let uncounted = uncounted(model, private);
    let version = version(
        model,
        private,
        |ident, ty| quote!(#private::Some(<#ty as #private::Version>::to_number(&self.#ident))),
    );
    let returned = returned(
        model,
        private,
        |ident, _| quote!(#private::AssignedField::cell(&self.#ident)),
    );
    let where_clause = with_bounds(where_clause, bounds);
    quote! {
        #[allow(trivial_bounds)]
        #[automatically_derived]
        impl #impl_generics #private::OrderedKey for #ident #type_generics #where_clause {
            type Field = #key_type;

            #names
            #parents
            #uncounted

            #key_fns

            #version

            #returned
        }
    }
}

/// Writes the items of [`OrderedKey`] for the parents. `visit` writes the code for one parent: its last argument turns an
/// expression for the parent's key into the call that shows this key.
pub(super) fn parents(
    model: &Entity<'_>,
    private: &Private<'_>,
    visit: impl Fn(&EntityField<'_>, &ParentAttr, &dyn Fn(TokenStream) -> TokenStream) -> TokenStream,
) -> TokenStream {
    let (mut parents, mut visits) = (Vec::new(), Vec::new());
    for (position, (field, parent)) in model.parents().enumerate() {
        let made = parent_field(model, private, field, parent);
        parents.push(match &field.attrs.deferrable {
            Some(_) => quote!(#made.parent.deferrable()),
            None => quote!(#made.parent),
        });
        visits.push(visit(
            field,
            parent,
            &|key| quote!((#made.show)(#key, #position, __visit);),
        ));
    }
    let argument = match visits.is_empty() {
        true => quote!(_),
        false => quote!(__visit),
    };
    quote! {
        const PARENTS: &'static [#private::Parent] = &[#(#parents),*];

        fn parents(&self, #argument: &mut dyn #private::FnMut(#private::usize, #private::KeyBytes)) {
            #(#visits)*
        }
    }
}

/// Demands that a field which the database fills can take a value, as [`key_bound`] does of the key.
fn assigned_bounds(model: &Entity<'_>, private: &Private<'_>) -> Vec<TokenStream> {
    let bounds = model.returning().map(|field| {
        let ty = field.ty();
        let span = ty.span();
        let private = private.at(span);
        quote_spanned!(span=> #ty: #private::AssignedField)
    });
    bounds.collect()
}

/// Writes the items of [`OrderedKey`] for the columns that the database fills, if there are some. `cell` writes the
/// expression that returns the cell of one column.
pub(super) fn returned(
    model: &Entity<'_>,
    private: &Private<'_>,
    cell: impl Fn(&Ident, &Type) -> TokenStream,
) -> Option<TokenStream> {
    model.returning().next()?;
    let names = model.returning().map(|field| &field.column);
    let visits = model.returning().enumerate().map(|(position, field)| {
        let cell = cell(field.ident, field.ty());
        quote!(__visit(#position, #cell);)
    });
    Some(quote! {
        const RETURNING: &'static [&'static #private::str] = &[#(#names),*];

        fn returned(
            &self,
            __visit: &mut dyn #private::FnMut(#private::usize, &dyn #private::Cell),
        ) {
            #(#visits)*
        }
    })
}

/// Writes what [`OrderedKey`] has of a table that may leave rows out.
pub(super) fn uncounted(model: &Entity<'_>, private: &Private<'_>) -> Option<TokenStream> {
    model.attrs.uncounted.as_ref()?;
    Some(quote!(const COUNTS_INSERTS: #private::bool = false;))
}

/// Writes what [`OrderedKey`] has of the row's version, where it has one. `number` writes what returns its number.
pub(super) fn version(
    model: &Entity<'_>,
    private: &Private<'_>,
    number: impl FnOnce(&Ident, &Type) -> TokenStream,
) -> Option<TokenStream> {
    let (position, field) = model.version()?;
    let ty = field.ty();
    let number = number(field.ident, ty);
    let span = ty.span().resolved_at(Span::call_site());
    let private = private.at(span);
    Some(quote_spanned! {span=>
        const VERSION: #private::Option<#private::usize> = #private::Some(#position);
        const VERSION_READS_CLOCK: #private::bool = <#ty as #private::Version>::READS_CLOCK;

        fn version(&self) -> #private::Option<#private::i128> {
            #number
        }

        fn version_text(__number: #private::i128) -> #private::String {
            <#ty as #private::Version>::to_text(&<#ty as #private::Version>::from_number(__number))
        }
    })
}

/// Writes what [`Fields`] has of the row's version, where it has one.
fn versioned_fields(model: &Entity<'_>, private: &Private<'_>) -> Option<TokenStream> {
    let (_, version) = model.version()?;
    let (version_ident, version_type) = (version.ident, version.ty());
    let puts = model.columns().map(|field| {
        let (ident, ty) = (field.ident, field.ty());
        match field.attrs.version {
            Some(_) => quote! {
                #private::Sink::<#ty>::put(__sink, &#private::Version::next(&self.#ident));
            },
            None => quote!(#private::Sink::<#ty>::put(__sink, &self.#ident);),
        }
    });
    let span = version_type.span().resolved_at(Span::call_site());
    let at_version = private.at(span);
    let write_version = quote_spanned! {span=>
        fn write_version(__number: #at_version::i128, __sink: &mut __S) {
            let __version = <#version_type as #at_version::Version>::from_number(__number);
            #at_version::Sink::<#version_type>::put(__sink, &__version);
        }
    };
    Some(quote! {
        fn write_update(&self, __sink: &mut __S) {
            #(#puts)*
            #private::Sink::<#version_type>::put(__sink, &self.#version_ident);
        }

        #write_version
    })
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
    let written = model.columns().enumerate();
    let written = written.filter(|(_, field)| field.attrs.returning.is_none());
    let constants = written.map(|(position, field)| {
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
fn key_bound(
    model: &Entity<'_>,
    private: &Private<'_>,
    ty: &Type,
    demand: Demand,
) -> Option<TokenStream> {
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
    let bound = demand.bound(&private.at(span), span);
    Some(quote_spanned!(span=> #ty: #bound))
}

/// Checks how many bytes a key of several columns has, at the type of its first field. Without this, only `cargo build`
/// reports a key that is too long, in the code of `ordid-core`. The lengths of type parameters are not known here.
pub(super) fn key_length(model: &Entity<'_>, private: &Private<'_>) -> Option<TokenStream> {
    let keys = model.keys();
    if keys.len() < 2 || !model.input.generics.params.is_empty() {
        return None;
    }
    let types = keys.iter().map(|key| key.ty());
    let span = keys[0].ty().span();
    let at_key = private.at(span);
    Some(quote_spanned! {span=>
        // Located at the field's type: to Clippy, the user wrote it.
        #[allow(clippy::absolute_paths)]
        const _: () = {
            // A type that is no part of a key is reported elsewhere, and has no bytes here.
            #[allow(unused_imports)]
            use #at_key::NoPart as _;
            #at_key::check_key_length(&[#(#private::PartOf::<#types>::BYTES),*]);
        };
    })
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
    model: &Entity<'_>,
    private: &Private<'_>,
    field: &EntityField<'_>,
    parent: &ParentAttr,
) -> TokenStream {
    let (column, ty) = (&field.column, field.ty());
    let span = ty.span();
    let private = private.at(span);
    match &parent.entity {
        None => quote_spanned!(span=> #private::by_key::<#ty>(#column)),
        Some(entity) if !parent.fields.is_empty() => {
            let named = |name| model.columns().find(|column| column.ident == name);
            let types = parent.fields.iter().filter_map(named).map(EntityField::ty);
            quote_spanned! {span=>
                #private::by_fields::<#ty, #private::KeyFields<(#(#types),*,)>, #entity>(#column)
            }
        }
        Some(entity) => quote_spanned!(span=> #private::by_entity::<#ty, #entity>(#column)),
    }
}

fn fields(model: &Entity<'_>, key: &Key, private: &Private<'_>) -> TokenStream {
    let mut seen = HashSet::new();
    let bounds: Punctuated<TokenStream, syn::Token![+]> = model
        .columns()
        .map(EntityField::ty)
        .filter(|ty| seen.insert(ty.to_token_stream().to_string()))
        .map(|ty| sink_of(private, ty))
        .collect();
    let mut seen = HashSet::new();
    let mut reads = Vec::new();
    let mut expects = Vec::new();
    for ty in model.returning().map(EntityField::ty) {
        let span = ty.span();
        let private = private.at(span);
        let value = quote_spanned!(span=> <#ty as #private::AssignedField>::Value);
        if seen.insert(ty.to_token_stream().to_string()) {
            reads.push(quote_spanned!(span=> __S: #private::Reads<#value>));
        }
        expects.push(quote!(#private::Reads::<#value>::expect(__sink);));
    }
    let returned = (!expects.is_empty()).then(|| {
        quote! {
            fn expect_returned(__sink: &mut __S) {
                #(#expects)*
            }
        }
    });
    let puts = model.columns().map(|field| {
        let (ident, ty) = (field.ident, field.ty());
        quote!(#private::Sink::<#ty>::put(__sink, &self.#ident);)
    });
    let write_key = &key.write;
    let ident = &model.input.ident;
    let (_, type_generics, where_clause) = model.input.generics.split_for_impl();
    let generics = with_sink(&model.input.generics, private);
    let sink = quote!(__S: #bounds);
    let versioned = versioned_fields(model, private);
    let where_clause = with_bounds(where_clause, key.bounds.iter().chain([&sink]).chain(&reads));
    quote! {
        // The bounds are located at the fields' types: to Clippy, the user wrote them.
        #[allow(clippy::absolute_paths, trivial_bounds)]
        #[automatically_derived]
        impl #generics #private::Fields<__S> for #ident #type_generics #where_clause {
            fn write(&self, __sink: &mut __S) {
                #(#puts)*
            }

            #write_key

            #versioned

            #returned
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

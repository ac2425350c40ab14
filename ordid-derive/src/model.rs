//! The typed form of an item: what was written, and what follows from it.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Data, DeriveInput, Field, Fields, Ident, LitStr, Type, ext::IdentExt};

use crate::{
    attr::{self, EntityAttrs, FieldAttrs, KeyTypeAttrs, ParentAttr, SeaOrmModel},
    case::Case,
    ctxt::Ctxt,
    options::{DEFAULT_SCHEME, Kind, NOT_RAW, Parameter, SCHEMES, Scheme},
};

/// The input of `#[derive(KeyType)]`.
pub(crate) struct KeyType<'a> {
    pub(crate) input: &'a DeriveInput,
    pub(crate) attrs: KeyTypeAttrs,
    /// The options by which SQLx would store it in another form.
    pub(crate) sqlx_forms: Vec<Ident>,
}

impl<'a> KeyType<'a> {
    pub(crate) fn new(cx: &Ctxt, input: &'a DeriveInput) -> Self {
        let mut sqlx_forms = attr::sqlx_forms(&input.attrs);
        if let Data::Struct(data) = &input.data {
            let of_fields = data.fields.iter();
            sqlx_forms.extend(of_fields.flat_map(|field| attr::sqlx_forms(&field.attrs)));
        }
        Self {
            input,
            attrs: KeyTypeAttrs::read(cx, &input.attrs),
            sqlx_forms,
        }
    }

    /// Returns the scheme that is written, or the default; `None` where the one written is not
    /// known.
    pub(crate) fn known_scheme(&self) -> Option<&'static Scheme> {
        match &self.attrs.scheme {
            Some(written) => SCHEMES.iter().find(|scheme| written.name == scheme.name),
            None => SCHEMES.iter().find(|scheme| scheme.name == DEFAULT_SCHEME),
        }
    }

    /// As [`known_scheme`](Self::known_scheme), and the default where the one written is not known.
    pub(crate) fn scheme(&self) -> &'static Scheme {
        let default = || SCHEMES.iter().find(|scheme| scheme.name == DEFAULT_SCHEME);
        self.known_scheme().or_else(default).unwrap_or(&SCHEMES[0])
    }

    /// Returns the parameter that is a type or a word, with what was written, if it was and may be
    /// right.
    pub(crate) fn type_parameter(&self) -> Option<(&'static Parameter, &Type)> {
        let scheme = self.scheme();
        let written = self.attrs.scheme.as_ref()?;
        let is_type = |it: &&Parameter| matches!(it.kind, Kind::Type { .. } | Kind::Word(_));
        let parameter = scheme.parameters.iter().find(is_type)?;
        let ty = written
            .ty(parameter.name)
            .filter(|ty| !is_no_parameter(ty))?;
        Some((parameter, ty))
    }

    /// Returns the field that holds the raw key, if the struct has the right shape.
    pub(crate) fn field(&self) -> Option<&'a Field> {
        match &self.input.data {
            Data::Struct(data) if self.input.generics.params.is_empty() => match &data.fields {
                Fields::Unnamed(fields) if fields.unnamed.len() == 1 => fields.unnamed.first(),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns whether a type is none that can be a parameter, by its name alone.
pub(crate) fn is_no_parameter(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path
            .path
            .get_ident()
            .is_some_and(|ident| NOT_RAW.iter().any(|name| ident == name)),
        Type::Group(_) | Type::Macro(_) | Type::Paren(_) => false,
        _ => true,
    }
}

/// The input of `#[derive(OrderedKey)]`.
pub(crate) struct Entity<'a> {
    pub(crate) input: &'a DeriveInput,
    pub(crate) attrs: EntityAttrs,
    /// Empty unless the item is a struct with named fields.
    pub(crate) fields: Vec<EntityField<'a>>,
    /// Whether a field has options that could not be read: one of them may be its key.
    pub(crate) is_damaged: bool,
}

/// A field of an entity.
pub(crate) struct EntityField<'a> {
    pub(crate) field: &'a Field,
    pub(crate) ident: &'a Ident,
    pub(crate) attrs: FieldAttrs,
    /// The column's name.
    pub(crate) column: String,
    /// Whether it is one of a model of SeaORM.
    is_sea_orm: bool,
}

impl<'a> Entity<'a> {
    pub(crate) fn new(cx: &Ctxt, input: &'a DeriveInput) -> Self {
        let attrs = EntityAttrs::read(cx, &input.attrs);
        let case = match &attrs.sea_orm {
            Some(model) => {
                let name = model.rename_all.as_ref();
                name.and_then(|name| Case::by_sea_orm_name(&name.value()))
            }
            None => {
                let own = [&attrs.rename_all, &attrs.sqlx_rename_all];
                let mut names = own.into_iter().flatten();
                names.find_map(|name| Case::by_name(&name.value()))
            }
        };
        let is_sea_orm = attrs.sea_orm.is_some();
        let mistakes = cx.count();
        let fields = match &input.data {
            Data::Struct(data) => match &data.fields {
                Fields::Named(fields) => fields
                    .named
                    .iter()
                    .filter_map(|field| Some((field, field.ident.as_ref()?)))
                    .map(|(field, ident)| {
                        let attrs = FieldAttrs::read(cx, &field.attrs);
                        let column = match is_sea_orm {
                            true => sea_orm_column(&attrs, ident, case),
                            false => column(&attrs, ident, case),
                        };
                        EntityField {
                            field,
                            ident,
                            attrs,
                            column,
                            is_sea_orm,
                        }
                    })
                    .collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        Self {
            input,
            attrs,
            fields,
            is_damaged: cx.count() > mistakes,
        }
    }

    /// Returns the first key field.
    pub(crate) fn key(&self) -> Option<&EntityField<'a>> {
        self.keys().into_iter().next()
    }

    /// Returns the key fields: those that are marked, or else the primary key of SeaORM or Diesel where one is written,
    /// or else the one named `id`.
    pub(crate) fn keys(&self) -> Vec<&EntityField<'a>> {
        let of = |is_key: &dyn Fn(&EntityField<'a>) -> bool| -> Vec<_> {
            self.fields.iter().filter(|field| is_key(field)).collect()
        };
        let marked = of(&|field| field.attrs.key.is_some());
        if !marked.is_empty() {
            return marked;
        }
        let primary = of(&|field| field.attrs.sea_orm_primary_key.is_some());
        if self.sea_orm().is_some() && !primary.is_empty() {
            return primary;
        }
        match &self.attrs.diesel_primary_key[..] {
            [] => of(&|field| field.ident == "id"),
            keys => of(&|field| keys.contains(field.diesel_column())),
        }
    }

    /// Returns what SeaORM knows, where the struct is one of its models.
    pub(crate) fn sea_orm(&self) -> Option<&SeaOrmModel> {
        self.attrs.sea_orm.as_ref()
    }

    /// Returns SeaORM's primary key, with its `primary_key`.
    pub(crate) fn primary_keys(&self) -> impl Iterator<Item = (&EntityField<'a>, &Ident)> {
        self.fields
            .iter()
            .filter_map(|field| Some((field, field.attrs.sea_orm_primary_key.as_ref()?)))
    }

    /// Returns the type that gets the impls: SeaORM writes its `ActiveModel`s.
    pub(crate) fn target(&self) -> Ident {
        match self.sea_orm() {
            Some(_) => Ident::new("ActiveModel", Span::call_site()),
            None => self.input.ident.clone(),
        }
    }

    /// Returns whether a field is a key field.
    pub(crate) fn is_key(&self, field: &EntityField<'a>) -> bool {
        self.keys().into_iter().any(|key| std::ptr::eq(key, field))
    }

    /// Returns the fields that are columns which the program writes. Those that the database fills are among them in a
    /// model of SeaORM, whose columns are counted as SeaORM counts them.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &EntityField<'a>> {
        let is_counted = |field: &&EntityField<'a>| match field.attrs.returning {
            Some(_) => self.sea_orm().is_some(),
            None => field.skip().is_none(),
        };
        self.fields.iter().filter(is_counted)
    }

    /// Returns the fields that are columns which the database fills.
    pub(crate) fn returning(&self) -> impl Iterator<Item = &EntityField<'a>> {
        let fields = self.fields.iter();
        fields.filter(|field| field.attrs.returning.is_some())
    }

    /// Returns the columns that are foreign keys.
    pub(crate) fn parents(&self) -> impl Iterator<Item = (&EntityField<'a>, &ParentAttr)> {
        self.columns()
            .filter_map(|field| Some((field, field.attrs.parent.as_ref()?)))
    }

    /// Returns the column with the row's version, and its position.
    pub(crate) fn version(&self) -> Option<(usize, &EntityField<'a>)> {
        let mut columns = self.columns().enumerate();
        columns.find(|(_, field)| field.attrs.version.is_some())
    }

    /// Returns the table's schema.
    pub(crate) fn schema(&self) -> Option<&LitStr> {
        match self.sea_orm() {
            Some(model) => model.schema.as_ref(),
            None => self.attrs.schema.as_ref(),
        }
    }

    /// Returns the table's name.
    pub(crate) fn table(&self) -> String {
        let by_sea_orm = self.sea_orm().map(|it| &it.table);
        match by_sea_orm.or(self.attrs.table.as_ref()) {
            Some(table) => table.value(),
            None => match self.diesel_table_name() {
                Some(table) => table.unraw().to_string(),
                None => Case::Snake.apply(&self.input.ident.unraw().to_string()),
            },
        }
    }

    /// Returns the name of Diesel's `table!`.
    fn diesel_table_name(&self) -> Option<&Ident> {
        let last = self.attrs.diesel_table.as_ref()?.segments.last()?;
        Some(&last.ident)
    }
}

fn column(attrs: &FieldAttrs, ident: &Ident, case: Option<Case>) -> String {
    if let Some(name) = attrs.column_name(false) {
        return name.value();
    }
    if let Some(name) = &attrs.diesel_column {
        return name.unraw().to_string();
    }
    let name = ident.unraw().to_string();
    case.map_or(name.clone(), |case| case.apply(&name))
}

/// Returns the name that SeaORM's `DeriveEntityModel` gives a column: that of the field's variant of `Column` in a case,
/// in snake_case by default.
fn sea_orm_column(attrs: &FieldAttrs, ident: &Ident, case: Option<Case>) -> String {
    if let Some(name) = attrs.column_name(true) {
        return name.value();
    }
    let name = ident.unraw().to_string();
    let variant = Case::Pascal.apply(&name);
    if let Some(case) = case {
        return case.apply(&variant);
    }
    // SeaORM notes the column itself where its variant does not tell the name, as with `line_2`.
    match &attrs.sea_orm_enum_name {
        Some(variant) if Case::Snake.apply(&Case::Pascal.apply(&name)) == name => {
            Case::Snake.apply(&variant.value())
        }
        _ => Case::Snake.apply(&name),
    }
}

impl EntityField<'_> {
    pub(crate) fn ty(&self) -> &Type {
        &self.field.ty
    }

    /// Returns the `skip` that takes the field out of the columns.
    pub(crate) fn skip(&self) -> Option<&Ident> {
        let attrs = &self.attrs;
        let own = [&attrs.skip, &attrs.sqlx_skip];
        let mut skips = own
            .into_iter()
            .chain([&attrs.diesel_skip, &attrs.sea_orm_ignore]);
        skips.find_map(Option::as_ref)
    }

    /// Returns the column's name in Diesel's `table!`.
    pub(crate) fn diesel_column(&self) -> &Ident {
        self.attrs.diesel_column.as_ref().unwrap_or(self.ident)
    }

    /// Returns the tokens that gave the column its name.
    pub(crate) fn column_tokens(&self) -> &dyn ToTokens {
        match self.attrs.column_name(self.is_sea_orm) {
            Some(name) => name,
            None if self.is_sea_orm => self.ident,
            None => self.diesel_column(),
        }
    }
}

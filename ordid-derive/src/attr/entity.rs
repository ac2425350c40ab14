//! The options of entities and their fields.

use syn::{Attribute, Ident, Lit, LitBool, LitStr, Path, Type, TypePath};

use super::{Meta, Reader, Value, adapter_path, foreign, ordid};
use crate::{
    check,
    ctxt::Ctxt,
    options::{ENTITY, FIELD},
};

/// The options of an entity's struct.
#[derive(Default)]
pub(crate) struct EntityAttrs {
    pub(crate) krate: Option<Path>,
    pub(crate) rename_all: Option<LitStr>,
    pub(crate) schema: Option<LitStr>,
    pub(crate) table: Option<LitStr>,
    pub(crate) uncounted: Option<Ident>,
    /// A constant for each column is wanted.
    pub(crate) columns: Option<Ident>,
    /// Forwarded to Diesel's adapter.
    pub(crate) diesel: Option<EntityAdapter>,
    /// Diesel's own.
    pub(crate) diesel_table: Option<Path>,
    pub(crate) diesel_primary_key: Vec<Ident>,
    /// Where `ordid-seaorm` is.
    pub(crate) sea_orm_crate: Option<Path>,
    /// What SeaORM knows, of one of its models.
    pub(crate) sea_orm: Option<SeaOrmModel>,
    /// SQLx's own.
    pub(crate) sqlx_rename_all: Option<LitStr>,
}

/// `#[sea_orm(table_name = "orders", schema_name = "shop")]`, and a `#[sea_orm::model]` that comes
/// after the derive.
pub(crate) struct SeaOrmModel {
    pub(crate) table: LitStr,
    pub(crate) schema: Option<LitStr>,
    pub(crate) rename_all: Option<LitStr>,
    pub(crate) late_model: Option<Path>,
}

impl SeaOrmModel {
    fn read(attrs: &[Attribute]) -> Option<Self> {
        let metas = foreign("sea_orm", attrs);
        let text = |name| metas.iter().find(|meta| meta.is(name))?.text().cloned();
        let late_model = attrs.iter().map(Attribute::path).find(|path| {
            let names: Vec<_> = path
                .segments
                .iter()
                .map(|it| it.ident.to_string())
                .collect();
            matches!(&names[..], [.., krate, name]
                if krate == "sea_orm" && (name == "model" || name == "compact_model"))
        });
        Some(Self {
            table: text("table_name")?,
            schema: text("schema_name"),
            rename_all: text("rename_all"),
            late_model: late_model.cloned(),
        })
    }
}

/// An adapter to which an entity is forwarded: `diesel`, or `diesel(crate = path)`.
pub(crate) struct EntityAdapter {
    pub(crate) name: Ident,
    pub(crate) krate: Path,
}

impl EntityAdapter {
    fn read(meta: &Meta) -> Option<Self> {
        let krate = match &meta.value {
            Value::None => adapter_path(&meta.name)?,
            Value::List(_, metas) => match &metas[..] {
                [krate] if krate.is("crate") => krate.path()?.clone(),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self {
            name: meta.name.clone(),
            krate,
        })
    }
}

impl EntityAttrs {
    pub(crate) fn read(cx: &Ctxt, attrs: &[Attribute]) -> Self {
        let reader = Reader { cx, place: &ENTITY };
        let mut read = Self::default();
        for meta in &ordid(cx, attrs, reader.place) {
            if meta.is("columns") {
                let flag = meta.is_alone().then(|| meta.name.clone());
                reader.once(&mut read.columns, meta, flag);
            } else if meta.is("crate") {
                reader.once(&mut read.krate, meta, meta.path().cloned());
            } else if meta.is("diesel") {
                reader.once(&mut read.diesel, meta, EntityAdapter::read(meta));
            } else if meta.is("rename_all") {
                reader.once(&mut read.rename_all, meta, meta.text().cloned());
            } else if meta.is("schema") {
                reader.text(&mut read.schema, meta);
            } else if meta.is("sea_orm") {
                let path = match &meta.value {
                    Value::List(_, metas) => match &metas[..] {
                        [only] if only.is("crate") => only.path().cloned(),
                        _ => None,
                    },
                    _ => None,
                };
                reader.once(&mut read.sea_orm_crate, meta, path);
            } else if meta.is("table") {
                reader.text(&mut read.table, meta);
            } else if meta.is("uncounted") {
                let flag = meta.is_alone().then(|| meta.name.clone());
                reader.once(&mut read.uncounted, meta, flag);
            } else {
                reader.unknown(&meta.name);
            }
        }
        for meta in foreign("diesel", attrs) {
            if meta.is("table_name") {
                read.diesel_table = meta.path().cloned();
            } else if let Value::List(_, names) = &meta.value
                && meta.is("primary_key")
            {
                read.diesel_primary_key = names.iter().map(|it| it.name.clone()).collect();
            }
        }
        read.sea_orm = SeaOrmModel::read(attrs);
        let sqlx = foreign("sqlx", attrs);
        read.sqlx_rename_all = sqlx
            .iter()
            .find(|meta| meta.is("rename_all"))
            .and_then(|meta| meta.text().cloned());
        read
    }
}

/// Returns the raw identifier of this name, located at the text. Diesel writes one for a keyword.
fn raw(name: &LitStr) -> Option<Ident> {
    let raw = LitStr::new(&format!("r#{}", name.value()), name.span());
    raw.parse().ok()
}

/// The options of an entity's field.
#[derive(Default)]
pub(crate) struct FieldAttrs {
    pub(crate) column: Option<LitStr>,
    /// The parent's constraint was declared so.
    pub(crate) deferrable: Option<Ident>,
    /// The column's name in Diesel's `table!`.
    pub(crate) diesel_column: Option<Ident>,
    /// Whether that name could not be read.
    pub(crate) is_column_unknown: bool,
    pub(crate) diesel_embed: Option<Ident>,
    pub(crate) diesel_skip: Option<Ident>,
    /// `serialize_as` or `skip_update`: Diesel's derives write the field otherwise.
    pub(crate) diesel_writes: Vec<Ident>,
    pub(crate) key: Option<Ident>,
    pub(crate) parent: Option<ParentAttr>,
    /// The database fills the column, and a flush reads it.
    pub(crate) returning: Option<Ident>,
    pub(crate) skip: Option<Ident>,
    pub(crate) sqlx_flatten: Option<Ident>,
    /// `json` or `try_from`: the field is read as another type than its own.
    pub(crate) sqlx_other_type: Option<Ident>,
    pub(crate) sqlx_rename: Option<LitStr>,
    pub(crate) sqlx_skip: Option<Ident>,
    pub(crate) version: Option<Ident>,
    pub(crate) sea_orm_auto_increment: Option<LitBool>,
    pub(crate) sea_orm_column: Option<LitStr>,
    /// The column's variant of SeaORM's `Column`.
    pub(crate) sea_orm_enum_name: Option<LitStr>,
    pub(crate) sea_orm_primary_key: Option<Ident>,
    pub(crate) sea_orm_ignore: Option<Ident>,
}

/// `parent`, `parent = Customer`, or `parent = Issue(tenant, issue)`.
#[derive(Clone)]
pub(crate) struct ParentAttr {
    pub(crate) name: Ident,
    /// `None` if the key type tells the entity.
    pub(crate) entity: Option<Type>,
    /// The fields that together hold the parent's key, where it has several columns and they are named.
    pub(crate) fields: Vec<Ident>,
}

impl FieldAttrs {
    pub(crate) fn read(cx: &Ctxt, attrs: &[Attribute]) -> Self {
        let reader = Reader { cx, place: &FIELD };
        let mut read = Self::default();
        for meta in &ordid(cx, attrs, reader.place) {
            let flag = || meta.is_alone().then(|| meta.name.clone());
            if meta.is("column") {
                reader.text(&mut read.column, meta);
            } else if meta.is("deferrable") {
                reader.once(&mut read.deferrable, meta, flag());
            } else if meta.is("key") {
                reader.once(&mut read.key, meta, flag());
            } else if meta.is("returning") {
                reader.once(&mut read.returning, meta, flag());
            } else if meta.is("skip") {
                reader.once(&mut read.skip, meta, flag());
            } else if meta.is("version") {
                reader.once(&mut read.version, meta, flag());
            } else if meta.is("parent") {
                read.parent(&reader, meta);
            } else {
                reader.unknown(&meta.name);
            }
        }
        for meta in foreign("diesel", attrs) {
            if meta.is("column_name") {
                read.diesel_column = match &meta.value {
                    Value::Lit(Lit::Str(name)) => name.parse().ok().or_else(|| raw(name)),
                    _ => meta.ident().cloned(),
                };
                if read.diesel_column.is_none() {
                    read.is_column_unknown = true;
                    // The field's own name would be another column.
                    cx.error(
                        meta.wrong_tokens(),
                        "expected the name of a column in Diesel's `table!`, as in `column_name = type_`",
                    );
                }
            } else if meta.is("skip_insertion") {
                read.diesel_skip = Some(meta.name);
            } else if meta.is("serialize_as") || meta.is("skip_update") {
                read.diesel_writes.push(meta.name);
            } else if meta.is("embed") {
                read.diesel_embed = Some(meta.name);
            }
        }
        for meta in foreign("sea_orm", attrs) {
            if meta.is("auto_increment")
                && let Value::Lit(Lit::Bool(value)) = &meta.value
            {
                read.sea_orm_auto_increment = Some(value.clone());
            } else if meta.is("column_name") {
                read.sea_orm_column = meta.text().cloned();
            } else if meta.is("enum_name") {
                read.sea_orm_enum_name = meta.text().cloned();
            } else if meta.is("primary_key") {
                read.sea_orm_primary_key = Some(meta.name);
            } else if meta.is("ignore") {
                read.sea_orm_ignore = Some(meta.name);
            }
        }
        for meta in foreign("sqlx", attrs) {
            if meta.is("rename") {
                read.sqlx_rename = meta.text().cloned();
            } else if meta.is("skip") {
                read.sqlx_skip = Some(meta.name);
            } else if meta.is("flatten") {
                read.sqlx_flatten = Some(meta.name);
            } else if meta.is("json") || meta.is("try_from") {
                read.sqlx_other_type = Some(meta.name);
            }
        }
        read
    }

    /// Returns the name that the column was given.
    pub(crate) fn column_name(&self, is_sea_orm: bool) -> Option<&LitStr> {
        match is_sea_orm {
            true => self.sea_orm_column.as_ref(),
            false => self.column.as_ref().or(self.sqlx_rename.as_ref()),
        }
    }

    fn parent(&mut self, reader: &Reader<'_>, meta: &Meta) {
        let mut fields = Vec::new();
        let entity = match &meta.value {
            Value::None => Some(None),
            Value::Type(Type::Path(path)) => Some(Some(Type::Path(path.clone()))),
            Value::Call(path, _, metas) if metas.iter().all(Meta::is_alone) => {
                fields.extend(metas.iter().map(|meta| meta.name.clone()));
                let (qself, path) = (None, path.clone());
                let entity = Type::Path(TypePath { qself, path });
                if fields.len() < 2 {
                    fields.clear();
                    reader.cx.error(
                        meta.wrong_tokens(),
                        format!(
                            "a parent whose key has one column is named without fields, and one whose key has several with \
                             all of them: write `parent = {}` or `parent = Issue(tenant, issue)`",
                            check::compact(&entity)
                        ),
                    );
                }
                Some(Some(entity))
            }
            _ => None,
        };
        let parent = entity.map(|entity| ParentAttr {
            name: meta.name.clone(),
            entity,
            fields,
        });
        reader.once(&mut self.parent, meta, parent);
    }
}

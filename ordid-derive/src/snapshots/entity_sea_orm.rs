// #[sea_orm(table_name = "order", schema_name = "shop", rename_all = "camelCase")]
// #[ordid(sea_orm(crate = storage::ordid_seaorm))]
// struct Model {
// #[sea_orm(column_name = "total_cents", default_value = -1)]
// line_total: i64,
// #[sea_orm(primary_key, auto_increment = false)]
// order_key: OrderId,
// #[ordid(parent, deferrable)]
// customer: Option<CustomerId>,
// #[ordid(parent = super::shop::ActiveModel)]
// shop: Uuid,
// #[sea_orm(ignore)]
// cache: Cache,
// }

const _: () = {
    storage::ordid_seaorm::engine::entity! {
        { const SCHEMA : ::ordid::__private::Option < & 'static ::ordid::__private::str >
        = ::ordid::__private::Some("shop"); const TABLE : & 'static
        ::ordid::__private::str = "order"; const KEY_COLUMN : & 'static
        ::ordid::__private::str = "orderKey"; const COLUMNS : & 'static [& 'static
        ::ordid::__private::str] = & ["total_cents", "orderKey", "customer", "shop"]; }
        order_key : OrderId; 0usize customer { ::ordid::__private::by_key:: < Option <
        CustomerId > > ("customer").parent.deferrable() } { ::ordid::__private::by_key::
        < Option < CustomerId > > ("customer") } 1usize shop {
        ::ordid::__private::by_entity:: < Uuid, super::shop::ActiveModel > ("shop")
        .parent } { ::ordid::__private::by_entity:: < Uuid, super::shop::ActiveModel >
        ("shop") }
    }
};

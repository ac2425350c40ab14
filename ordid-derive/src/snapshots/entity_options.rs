// #[ordid(table = "orders", schema = "shop", rename_all = "camelCase", crate = ordid_core)]
// struct Order { order_id: Uuid, #[ordid(key)] row_id: Option<OrderId> }

const _: () = {
    #[automatically_derived]
    impl ordid_core::__private::OrderedKey for Order {
        type Field = Option<OrderId>;
        const SCHEMA: ordid_core::__private::Option<
            &'static ordid_core::__private::str,
        > = ordid_core::__private::Some("shop");
        const TABLE: &'static ordid_core::__private::str = "orders";
        const KEY_COLUMN: &'static ordid_core::__private::str = "rowId";
        const COLUMNS: &'static [&'static ordid_core::__private::str] = &[
            "orderId",
            "rowId",
        ];
        const PARENTS: &'static [ordid_core::__private::Parent] = { &[] };
        fn key(
            &self,
        ) -> ordid_core::__private::Option<ordid_core::__private::KeyOf<Self>> {
            ordid_core::__private::KeyField::get(&self.row_id)
        }
        fn assign_key(&mut self, __key: ordid_core::__private::KeyOf<Self>) {
            ordid_core::__private::KeyField::set(&mut self.row_id, __key);
        }
        fn parents(
            &self,
            _: &mut dyn ordid_core::__private::FnMut(
                ordid_core::__private::usize,
                ordid_core::__private::KeyBytes,
            ),
        ) {}
    }
    #[allow(clippy::absolute_paths)]
    #[automatically_derived]
    impl<__S: ?ordid_core::__private::Sized> ordid_core::__private::Fields<__S> for Order
    where
        __S: ordid_core::__private::Sink<Uuid>
            + ordid_core::__private::Sink<Option<OrderId>>,
    {
        fn write(&self, __sink: &mut __S) {
            ordid_core::__private::Sink::<Uuid>::put(__sink, &self.order_id);
            ordid_core::__private::Sink::<Option<OrderId>>::put(__sink, &self.row_id);
        }
        fn write_key(__key: ordid_core::__private::KeyOf<Self>, __sink: &mut __S) {
            ordid_core::__private::Sink::<
                Option<OrderId>,
            >::put(__sink, &ordid_core::__private::KeyField::with(__key));
        }
    }
};

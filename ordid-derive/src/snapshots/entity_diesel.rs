// #[ordid(diesel)]
// #[diesel(table_name = crate::schema::orders, primary_key(order_id))]
// #[diesel(belongs_to(Customer), check_for_backend(diesel::pg::Pg))]
// struct Order {
// #[diesel(column_name = order_id)]
// key: OrderId,
// #[diesel(column_name = "type_")]
// kind: String,
// #[diesel(skip_insertion)]
// sum: i64,
// #[diesel(embed)]
// #[ordid(skip)]
// address: Address,
// #[diesel(select_expression = now())]
// r#type: Option<String>,
// }

const _: () = {
    #[allow(trivial_bounds)]
    #[automatically_derived]
    impl ::ordid::__private::OrderedKey for Order
    where
        OrderId: ::ordid::__private::KeyField,
    {
        type Field = OrderId;
        const SCHEMA: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        const TABLE: &'static ::ordid::__private::str = "orders";
        const KEY_COLUMN: &'static ::ordid::__private::str = "order_id";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "order_id",
            "type_",
            "type",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = &[];
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            ::ordid::__private::KeyField::get(&self.key)
        }
        fn assign_key(&mut self, __key: ::ordid::__private::KeyOf<Self>) {
            ::ordid::__private::KeyField::set(&mut self.key, __key);
        }
        fn parents(
            &self,
            _: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {}
    }
    #[allow(clippy::absolute_paths, trivial_bounds)]
    #[automatically_derived]
    impl<__S: ?::ordid::__private::Sized> ::ordid::__private::Fields<__S> for Order
    where
        OrderId: ::ordid::__private::KeyField,
        __S: ::ordid::__private::Sink<OrderId> + ::ordid::__private::Sink<String>
            + ::ordid::__private::Sink<Option<String>>,
    {
        fn write(&self, __sink: &mut __S) {
            ::ordid::__private::Sink::<OrderId>::put(__sink, &self.key);
            ::ordid::__private::Sink::<String>::put(__sink, &self.kind);
            ::ordid::__private::Sink::<Option<String>>::put(__sink, &self.r#type);
        }
        fn write_key(__key: ::ordid::__private::KeyOf<Self>, __sink: &mut __S) {
            ::ordid::__private::Sink::<
                OrderId,
            >::put(__sink, &::ordid::__private::KeyField::with(__key));
        }
    }
    ::ordid_diesel::entity! {
        Order, crate ::schema::orders::table, crate ::schema::orders::order_id : AsKey
        OrderId, crate ::schema::orders::type_ : AsValue String, crate
        ::schema::orders::r#type : AsValue Option < String >
    }
};

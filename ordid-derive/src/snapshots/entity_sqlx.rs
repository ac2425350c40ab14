// #[sqlx(rename_all = "SCREAMING_SNAKE_CASE", default)]
// struct Order {
// id: OrderId,
// line_total: i64,
// #[sqlx(rename = "vatRate", try_from = "i32")]
// vat_rate: Rate,
// #[sqlx(rename = "a")]
// #[ordid(column = "b")]
// both: i64,
// #[sqlx(skip)]
// cache: Cache,
// #[sqlx(flatten)]
// #[ordid(skip)]
// address: Address,
// #[sqlx(json(nullable))]
// extra: Option<Extra>,
// }

const _: () = {
    #[automatically_derived]
    impl ::ordid::__private::OrderedKey for Order {
        type Field = OrderId;
        const SCHEMA: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        const TABLE: &'static ::ordid::__private::str = "order";
        const KEY_COLUMN: &'static ::ordid::__private::str = "ID";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "ID",
            "LINE_TOTAL",
            "vatRate",
            "b",
            "EXTRA",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = { &[] };
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            ::ordid::__private::KeyField::get(&self.id)
        }
        fn assign_key(&mut self, __key: ::ordid::__private::KeyOf<Self>) {
            ::ordid::__private::KeyField::set(&mut self.id, __key);
        }
        fn parents(
            &self,
            _: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {}
    }
    #[allow(clippy::absolute_paths)]
    #[automatically_derived]
    impl<__S: ?::ordid::__private::Sized> ::ordid::__private::Fields<__S> for Order
    where
        __S: ::ordid::__private::Sink<OrderId> + ::ordid::__private::Sink<i64>
            + ::ordid::__private::Sink<Rate> + ::ordid::__private::Sink<Option<Extra>>,
    {
        fn write(&self, __sink: &mut __S) {
            ::ordid::__private::Sink::<OrderId>::put(__sink, &self.id);
            ::ordid::__private::Sink::<i64>::put(__sink, &self.line_total);
            ::ordid::__private::Sink::<Rate>::put(__sink, &self.vat_rate);
            ::ordid::__private::Sink::<i64>::put(__sink, &self.both);
            ::ordid::__private::Sink::<Option<Extra>>::put(__sink, &self.extra);
        }
        fn write_key(__key: ::ordid::__private::KeyOf<Self>, __sink: &mut __S) {
            ::ordid::__private::Sink::<
                OrderId,
            >::put(__sink, &::ordid::__private::KeyField::with(__key));
        }
    }
};

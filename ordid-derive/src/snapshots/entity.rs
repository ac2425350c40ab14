// struct OrderLine { id: OrderLineId, note: String, remark: String }

#[allow(deprecated)]
const _: () = {
    #[allow(trivial_bounds)]
    #[automatically_derived]
    impl ::ordid::__private::OrderedKey for OrderLine
    where
        OrderLineId: ::ordid::__private::KeyField,
    {
        type Field = OrderLineId;
        const SCHEMA: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        const TABLE: &'static ::ordid::__private::str = "order_line";
        const KEY_COLUMN: &'static ::ordid::__private::str = "id";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "id",
            "note",
            "remark",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = &[];
        fn parents(
            &self,
            _: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {}
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            ::ordid::__private::KeyField::get(&self.id)
        }
        fn assign_key(&mut self, __key: ::ordid::__private::KeyOf<Self>) {
            ::ordid::__private::KeyField::set(&mut self.id, __key);
        }
    }
    #[allow(clippy::absolute_paths, trivial_bounds)]
    #[automatically_derived]
    impl<__S: ?::ordid::__private::Sized> ::ordid::__private::Fields<__S> for OrderLine
    where
        OrderLineId: ::ordid::__private::KeyField,
        __S: ::ordid::__private::Sink<OrderLineId> + ::ordid::__private::Sink<String>,
    {
        fn write(&self, __sink: &mut __S) {
            ::ordid::__private::Sink::<OrderLineId>::put(__sink, &self.id);
            ::ordid::__private::Sink::<String>::put(__sink, &self.note);
            ::ordid::__private::Sink::<String>::put(__sink, &self.remark);
        }
        fn write_key(__key: ::ordid::__private::KeyOf<Self>, __sink: &mut __S) {
            ::ordid::__private::Sink::<
                OrderLineId,
            >::put(__sink, &::ordid::__private::KeyField::with(__key));
        }
    }
};

// #[ordid(tabel = "orders")] struct Order<T> { #[ordid(kee)] order_id: OrderId, value: T }

const _: () = {
    ::core::compile_error! {
        "unknown option `tabel`; did you mean `table`? (options: crate, diesel, rename_all, schema, sea_orm, table)"
    }
    ::core::compile_error! {
        "unknown option `kee`; did you mean `key`? (options: column, deferrable, key, parent, skip)"
    }
    impl<T> ::ordid::__private::OrderedKey for Order<T> {
        type Field = ::ordid::__private::Uuid;
        const SCHEMA: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        const TABLE: &'static ::ordid::__private::str = "order";
        const KEY_COLUMN: &'static ::ordid::__private::str = "";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "order_id",
            "value",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = &[];
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            loop {}
        }
        fn assign_key(&mut self, _: ::ordid::__private::KeyOf<Self>) {
            loop {}
        }
        fn parents(
            &self,
            _: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {
            loop {}
        }
    }
    impl<T, __S: ?::ordid::__private::Sized> ::ordid::__private::Fields<__S>
    for Order<T> {
        fn write(&self, _: &mut __S) {
            loop {}
        }
        fn write_key(_: ::ordid::__private::KeyOf<Self>, _: &mut __S) {
            loop {}
        }
    }
};

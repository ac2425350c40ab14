// struct Order {
// #[ordid(key, column = "order_id")]
// key: OrderId,
// #[ordid(parent)]
// customer: CustomerId,
// #[ordid(parent = Address, deferrable)]
// ship_to: Uuid,
// #[ordid(parent = Self, column = "replaces_id")]
// replaces: Option<OrderId>,
// #[ordid(skip)]
// cache: Vec<u8>,
// r#type: String,
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
        const TABLE: &'static ::ordid::__private::str = "order";
        const KEY_COLUMN: &'static ::ordid::__private::str = "order_id";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "order_id",
            "customer",
            "ship_to",
            "replaces_id",
            "type",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = &[
            ::ordid::__private::by_key::<CustomerId>("customer").parent,
            ::ordid::__private::by_entity::<Uuid, Address>("ship_to")
                .parent
                .deferrable(),
            ::ordid::__private::by_entity::<Option<OrderId>, Self>("replaces_id").parent,
        ];
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            ::ordid::__private::KeyField::get(&self.key)
        }
        fn assign_key(&mut self, __key: ::ordid::__private::KeyOf<Self>) {
            ::ordid::__private::KeyField::set(&mut self.key, __key);
        }
        fn parents(
            &self,
            __visit: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {
            (::ordid::__private::by_key::<CustomerId>("customer")
                .show)(&self.customer, 0usize, __visit);
            (::ordid::__private::by_entity::<Uuid, Address>("ship_to")
                .show)(&self.ship_to, 1usize, __visit);
            (::ordid::__private::by_entity::<Option<OrderId>, Self>("replaces_id")
                .show)(&self.replaces, 2usize, __visit);
        }
    }
    #[allow(clippy::absolute_paths, trivial_bounds)]
    #[automatically_derived]
    impl<__S: ?::ordid::__private::Sized> ::ordid::__private::Fields<__S> for Order
    where
        OrderId: ::ordid::__private::KeyField,
        __S: ::ordid::__private::Sink<OrderId> + ::ordid::__private::Sink<CustomerId>
            + ::ordid::__private::Sink<Uuid> + ::ordid::__private::Sink<Option<OrderId>>
            + ::ordid::__private::Sink<String>,
    {
        fn write(&self, __sink: &mut __S) {
            ::ordid::__private::Sink::<OrderId>::put(__sink, &self.key);
            ::ordid::__private::Sink::<CustomerId>::put(__sink, &self.customer);
            ::ordid::__private::Sink::<Uuid>::put(__sink, &self.ship_to);
            ::ordid::__private::Sink::<Option<OrderId>>::put(__sink, &self.replaces);
            ::ordid::__private::Sink::<String>::put(__sink, &self.r#type);
        }
        fn write_key(__key: ::ordid::__private::KeyOf<Self>, __sink: &mut __S) {
            ::ordid::__private::Sink::<
                OrderId,
            >::put(__sink, &::ordid::__private::KeyField::with(__key));
        }
    }
};

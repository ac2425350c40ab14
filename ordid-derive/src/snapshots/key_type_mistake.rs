// #[ordid(prefx = "ord")] struct OrderId { id: Uuid }

const _: () = {
    ::core::compile_error! {
        "unknown option `prefx`; did you mean `prefix`? (options: adapter, crate, diesel, mask, oracle, prefix, scatter, scheme, sea_orm, sqlx, tiberius)"
    }
    ::core::compile_error! {
        "a key type is a tuple struct, without field names: write `struct OrderId(uuid::Uuid);`"
    }
    impl ::ordid::__private::KeyType for OrderId {
        type Raw = ::ordid::__private::Uuid;
        type Scheme = ::ordid::__private::scheme::UuidV7;
        const NAME: &'static ::ordid::__private::str = "OrderId";
        const PREFIX: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        fn from_generated(
            _: ::ordid::__private::Generated<::ordid::__private::scheme::UuidV7>,
        ) -> Self {
            loop {}
        }
        fn to_raw(self) -> ::ordid::__private::Uuid {
            loop {}
        }
        fn from_raw(
            _: ::ordid::__private::Uuid,
        ) -> ::ordid::__private::Result<Self, ::ordid::__private::Error> {
            loop {}
        }
    }
    impl ::ordid::__private::TypedKey for OrderId {}
    #[automatically_derived]
    impl ::ordid::__private::Clone for OrderId {
        #[inline]
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Copy for OrderId {}
    #[automatically_derived]
    impl ::ordid::__private::PartialEq for OrderId {
        #[inline]
        fn eq(&self, __other: &Self) -> ::ordid::__private::bool {
            ::ordid::__private::eq(*self, *__other)
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Eq for OrderId {}
    #[automatically_derived]
    impl ::ordid::__private::PartialOrd for OrderId {
        #[inline]
        fn partial_cmp(
            &self,
            __other: &Self,
        ) -> ::ordid::__private::Option<::ordid::__private::Ordering> {
            ::ordid::__private::Some(::ordid::__private::cmp(*self, *__other))
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Ord for OrderId {
        #[inline]
        fn cmp(&self, __other: &Self) -> ::ordid::__private::Ordering {
            ::ordid::__private::cmp(*self, *__other)
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Hash for OrderId {
        #[inline]
        fn hash<__H: ::ordid::__private::Hasher>(&self, __state: &mut __H) {
            ::ordid::__private::hash(*self, __state);
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Debug for OrderId {
        #[inline]
        fn fmt(
            &self,
            __f: &mut ::ordid::__private::Formatter<'_>,
        ) -> ::ordid::__private::FmtResult {
            ::ordid::__private::fmt_debug(*self, __f)
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::Display for OrderId {
        #[inline]
        fn fmt(
            &self,
            __f: &mut ::ordid::__private::Formatter<'_>,
        ) -> ::ordid::__private::FmtResult {
            ::ordid::__private::fmt_display(*self, __f)
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::FromStr for OrderId {
        type Err = ::ordid::__private::Error;
        #[inline]
        fn from_str(
            __text: &::ordid::__private::str,
        ) -> ::ordid::__private::Result<Self, ::ordid::__private::Error> {
            ::ordid::__private::parse(__text)
        }
    }
    impl ::ordid::__private::TryFrom<::ordid::__private::Uuid> for OrderId {
        type Error = ::ordid::__private::Error;
        fn try_from(
            _: ::ordid::__private::Uuid,
        ) -> ::ordid::__private::Result<Self, ::ordid::__private::Error> {
            loop {}
        }
    }
    impl ::ordid::__private::From<OrderId> for ::ordid::__private::Uuid {
        fn from(_: OrderId) -> Self {
            loop {}
        }
    }
    ::ordid::__private::key_type_interop! {
        OrderId
    }
};

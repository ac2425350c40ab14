// #[ordid(scheme = uuid_v7, prefix = "ord", crate = keys)]
// #[ordid(sqlx(postgres = uuid, mysql = binary16, sqlite = blob))]
// struct OrderId(uuid::Uuid);

const _: () = {
    const _: () = keys::__private::check_prefix("ord");
    #[automatically_derived]
    impl keys::__private::KeyType for OrderId {
        type Raw = <keys::__private::scheme::UuidV7 as keys::__private::Scheme>::Raw;
        type Scheme = keys::__private::scheme::UuidV7;
        const NAME: &'static keys::__private::str = "OrderId";
        const PREFIX: keys::__private::Option<&'static keys::__private::str> = keys::__private::Some(
            "ord",
        );
        #[inline]
        fn from_generated(
            __generated: keys::__private::Generated<keys::__private::scheme::UuidV7>,
        ) -> Self {
            Self(
                <uuid::Uuid as keys::__private::RawOf<
                    keys::__private::scheme::UuidV7,
                >>::from_raw(keys::__private::Generated::into_raw(__generated)),
            )
        }
        #[inline]
        fn to_raw(
            self,
        ) -> <keys::__private::scheme::UuidV7 as keys::__private::Scheme>::Raw {
            <uuid::Uuid as keys::__private::RawOf<
                keys::__private::scheme::UuidV7,
            >>::into_raw(self.0)
        }
        #[inline]
        fn from_raw(
            __raw: <keys::__private::scheme::UuidV7 as keys::__private::Scheme>::Raw,
        ) -> keys::__private::Result<Self, keys::__private::Error> {
            keys::__private::from_raw(__raw)
        }
    }
    #[automatically_derived]
    impl keys::__private::TypedKey for OrderId {}
    #[automatically_derived]
    impl keys::__private::Clone for OrderId {
        #[inline]
        fn clone(&self) -> Self {
            *self
        }
    }
    #[automatically_derived]
    impl keys::__private::Copy for OrderId {}
    #[automatically_derived]
    impl keys::__private::PartialEq for OrderId {
        #[inline]
        fn eq(&self, __other: &Self) -> keys::__private::bool {
            keys::__private::eq(*self, *__other)
        }
    }
    #[automatically_derived]
    impl keys::__private::Eq for OrderId {}
    #[automatically_derived]
    impl keys::__private::PartialOrd for OrderId {
        #[inline]
        fn partial_cmp(
            &self,
            __other: &Self,
        ) -> keys::__private::Option<keys::__private::Ordering> {
            keys::__private::Some(keys::__private::cmp(*self, *__other))
        }
    }
    #[automatically_derived]
    impl keys::__private::Ord for OrderId {
        #[inline]
        fn cmp(&self, __other: &Self) -> keys::__private::Ordering {
            keys::__private::cmp(*self, *__other)
        }
    }
    #[automatically_derived]
    impl keys::__private::Hash for OrderId {
        #[inline]
        fn hash<__H: keys::__private::Hasher>(&self, __state: &mut __H) {
            keys::__private::hash(*self, __state);
        }
    }
    #[automatically_derived]
    impl keys::__private::Debug for OrderId {
        #[inline]
        fn fmt(
            &self,
            __f: &mut keys::__private::Formatter<'_>,
        ) -> keys::__private::FmtResult {
            keys::__private::fmt_debug(*self, __f)
        }
    }
    #[automatically_derived]
    impl keys::__private::Display for OrderId {
        #[inline]
        fn fmt(
            &self,
            __f: &mut keys::__private::Formatter<'_>,
        ) -> keys::__private::FmtResult {
            keys::__private::fmt_display(*self, __f)
        }
    }
    #[automatically_derived]
    impl keys::__private::FromStr for OrderId {
        type Err = keys::__private::Error;
        #[inline]
        fn from_str(
            __text: &keys::__private::str,
        ) -> keys::__private::Result<Self, keys::__private::Error> {
            keys::__private::parse(__text)
        }
    }
    #[automatically_derived]
    impl keys::__private::TryFrom<uuid::Uuid> for OrderId {
        type Error = keys::__private::Error;
        #[inline]
        fn try_from(
            __raw: uuid::Uuid,
        ) -> keys::__private::Result<Self, keys::__private::Error> {
            keys::__private::KeyType::from_raw(
                <uuid::Uuid as keys::__private::RawOf<
                    keys::__private::scheme::UuidV7,
                >>::into_raw(__raw),
            )
        }
    }
    #[automatically_derived]
    impl keys::__private::From<OrderId> for uuid::Uuid {
        #[inline]
        fn from(__key: OrderId) -> Self {
            __key.0
        }
    }
    keys::__private::key_type_interop! {
        OrderId
    }
    ::ordid_sqlx::engine! {
        key : OrderId, keys::__private::scheme::UuidV7
    }
    ::ordid_sqlx::engine! {
        postgres : OrderId, keys::__private::scheme::UuidV7,
        ::ordid_sqlx::engine::postgres::uuid
    }
    ::ordid_sqlx::engine! {
        mysql : OrderId, keys::__private::scheme::UuidV7,
        ::ordid_sqlx::engine::mysql::binary16
    }
    ::ordid_sqlx::engine! {
        sqlite : OrderId, keys::__private::scheme::UuidV7,
        ::ordid_sqlx::engine::sqlite::blob
    }
};

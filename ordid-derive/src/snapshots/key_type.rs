// pub struct OrderId(Uuid);

#[allow(deprecated)]
const _: () = {
    #[automatically_derived]
    impl ::ordid::__private::KeyType for OrderId {
        type Raw = <::ordid::__private::scheme::UuidV7 as ::ordid::__private::Scheme>::Raw;
        type Scheme = ::ordid::__private::scheme::UuidV7;
        const NAME: &'static ::ordid::__private::str = "OrderId";
        const PREFIX: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        #[inline]
        fn from_generated(
            __generated: ::ordid::__private::Generated<
                ::ordid::__private::scheme::UuidV7,
            >,
        ) -> Self {
            Self(
                <Uuid as ::ordid::__private::RawOf<
                    ::ordid::__private::scheme::UuidV7,
                >>::from_raw(::ordid::__private::Generated::into_raw(__generated)),
            )
        }
        #[inline]
        fn to_raw(
            self,
        ) -> <::ordid::__private::scheme::UuidV7 as ::ordid::__private::Scheme>::Raw {
            <Uuid as ::ordid::__private::RawOf<
                ::ordid::__private::scheme::UuidV7,
            >>::into_raw(self.0)
        }
        #[inline]
        fn from_raw(
            __raw: <::ordid::__private::scheme::UuidV7 as ::ordid::__private::Scheme>::Raw,
        ) -> ::ordid::__private::Result<Self, ::ordid::__private::Error> {
            ::ordid::__private::from_raw(__raw)
        }
    }
    #[automatically_derived]
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
    #[allow(dead_code, unreachable_pub, clippy::inherent_to_string_shadow_display)]
    impl OrderId {
        /// Returns the text of the key.
        #[inline]
        #[must_use]
        pub fn to_string(&self) -> ::ordid::__private::String {
            ::ordid::__private::to_string(*self)
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
    #[automatically_derived]
    impl ::ordid::__private::TryFrom<Uuid> for OrderId {
        type Error = ::ordid::__private::Error;
        #[inline]
        fn try_from(
            __raw: Uuid,
        ) -> ::ordid::__private::Result<Self, ::ordid::__private::Error> {
            ::ordid::__private::KeyType::from_raw(
                <Uuid as ::ordid::__private::RawOf<
                    ::ordid::__private::scheme::UuidV7,
                >>::into_raw(__raw),
            )
        }
    }
    #[automatically_derived]
    impl ::ordid::__private::From<OrderId> for Uuid {
        #[inline]
        fn from(__key: OrderId) -> Self {
            __key.0
        }
    }
    ::ordid::__private::key_type_interop! {
        OrderId
    }
};

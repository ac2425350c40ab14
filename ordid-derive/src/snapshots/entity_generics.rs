// struct Node<'a, T: Clone = i64, const N: usize = 4>
// where
// T: Into<i64>,
// {
// id: NodeId,
// #[ordid(parent = Node<'a, T, N>)]
// above: Option<NodeId>,
// #[ordid(parent = Tree)]
// tree: TreeId,
// name: &'a str,
// value: T,
// bytes: [u8; N],
// }

const _: () = {
    #[allow(trivial_bounds)]
    #[automatically_derived]
    impl<'a, T: Clone, const N: usize> ::ordid::__private::OrderedKey for Node<'a, T, N>
    where
        T: Into<i64>,
        NodeId: ::ordid::__private::KeyField,
    {
        type Field = NodeId;
        const SCHEMA: ::ordid::__private::Option<&'static ::ordid::__private::str> = ::ordid::__private::None;
        const TABLE: &'static ::ordid::__private::str = "node";
        const KEY_COLUMN: &'static ::ordid::__private::str = "id";
        const COLUMNS: &'static [&'static ::ordid::__private::str] = &[
            "id",
            "above",
            "tree",
            "name",
            "value",
            "bytes",
        ];
        const PARENTS: &'static [::ordid::__private::Parent] = &[
            ::ordid::__private::by_entity::<Option<NodeId>, Node<'a, T, N>>("above")
                .parent,
            ::ordid::__private::by_entity::<TreeId, Tree>("tree").parent,
        ];
        fn key(&self) -> ::ordid::__private::Option<::ordid::__private::KeyOf<Self>> {
            ::ordid::__private::KeyField::get(&self.id)
        }
        fn assign_key(&mut self, __key: ::ordid::__private::KeyOf<Self>) {
            ::ordid::__private::KeyField::set(&mut self.id, __key);
        }
        fn parents(
            &self,
            __visit: &mut dyn ::ordid::__private::FnMut(
                ::ordid::__private::usize,
                ::ordid::__private::KeyBytes,
            ),
        ) {
            (::ordid::__private::by_entity::<Option<NodeId>, Node<'a, T, N>>("above")
                .show)(&self.above, 0usize, __visit);
            (::ordid::__private::by_entity::<TreeId, Tree>("tree")
                .show)(&self.tree, 1usize, __visit);
        }
    }
    #[allow(clippy::absolute_paths, trivial_bounds)]
    #[automatically_derived]
    impl<
        'a,
        T: Clone,
        const N: usize,
        __S: ?::ordid::__private::Sized,
    > ::ordid::__private::Fields<__S> for Node<'a, T, N>
    where
        T: Into<i64>,
        NodeId: ::ordid::__private::KeyField,
        __S: ::ordid::__private::Sink<NodeId> + ::ordid::__private::Sink<Option<NodeId>>
            + ::ordid::__private::Sink<TreeId> + ::ordid::__private::Sink<&'a str>
            + ::ordid::__private::Sink<T> + ::ordid::__private::Sink<[u8; N]>,
    {
        fn write(&self, __sink: &mut __S) {
            ::ordid::__private::Sink::<NodeId>::put(__sink, &self.id);
            ::ordid::__private::Sink::<Option<NodeId>>::put(__sink, &self.above);
            ::ordid::__private::Sink::<TreeId>::put(__sink, &self.tree);
            ::ordid::__private::Sink::<&'a str>::put(__sink, &self.name);
            ::ordid::__private::Sink::<T>::put(__sink, &self.value);
            ::ordid::__private::Sink::<[u8; N]>::put(__sink, &self.bytes);
        }
        fn write_key(__key: ::ordid::__private::KeyOf<Self>, __sink: &mut __S) {
            ::ordid::__private::Sink::<
                NodeId,
            >::put(__sink, &::ordid::__private::KeyField::with(__key));
        }
    }
};

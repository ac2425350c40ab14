//! Generic entities: types, lifetimes, constants, bounds, defaults, where clauses.

use std::fmt::Debug;

use ordid::{Fields, KeyField, KeyType, OrderedKey, Sink, key::KeyBytes, uuid::Uuid};

#[derive(KeyType)]
struct NodeId(Uuid);

#[derive(OrderedKey)]
struct Node<'a, T: Clone + 'a = i64, const N: usize = 2>
where
    T: Debug,
{
    id: NodeId,
    #[ordid(parent)]
    up: Option<NodeId>,
    name: &'a str,
    value: T,
    bytes: [u8; N],
    #[ordid(skip)]
    cache: Vec<T>,
}

/// The key's type is a parameter too.
#[derive(OrderedKey)]
struct Row<K: KeyField, V: ?Sized> {
    #[ordid(key)]
    key: K,
    value: Box<V>,
}

#[derive(Default)]
struct Texts(Vec<String>);

impl<T: Debug + ?Sized> Sink<T> for Texts {
    fn put(&mut self, value: &T) {
        self.0.push(format!("{value:?}"));
    }
}

fn texts<E: Fields<Texts>>(row: &E) -> Vec<String> {
    let mut texts = Texts::default();
    row.write(&mut texts);
    texts.0
}

#[test]
fn it_compiles_and_runs() {
    let name = String::from("a");
    let id = NodeId::generate();
    let node: Node<'_> = Node {
        id,
        up: Some(id),
        name: &name,
        value: 1,
        bytes: [1, 2],
        cache: Vec::new(),
    };
    assert_eq!(node.cache.len(), 0);
    let id = format!("{id:?}");
    assert_eq!(
        texts(&node),
        [&id, &format!("Some({id})"), "\"a\"", "1", "[1, 2]"]
    );

    let mut parents = Vec::new();
    node.parents(&mut |position, parent| parents.push((position, parent)));
    assert_eq!(parents, [(0, KeyBytes::of(node.id))]);

    let mut row = Row::<Option<Uuid>, str> {
        key: None,
        value: "b".into(),
    };
    let key = row.ensure_key();
    assert_eq!(texts(&row), [format!("Some({key})"), "\"b\"".into()]);

    // A sink behind a trait object.
    let mut texts = Texts::default();
    let sink: &mut dyn Sink<Uuid> = &mut texts;
    Single { id: key }.write(sink);
    assert_eq!(texts.0, [key.to_string()]);

    let tree = Tree {
        id: key,
        up: Some(Uuid::nil()),
        other: Uuid::max(),
        value: 1,
    };
    let mut parents = Vec::new();
    tree.parents(&mut |position, parent| parents.push((position, parent.to_key())));
    assert_eq!(
        (parents, tree.other, tree.value),
        (
            vec![(0, Some(Uuid::nil())), (1, Some(Uuid::max()))],
            Uuid::max(),
            1
        )
    );
}

#[derive(OrderedKey)]
struct Single {
    id: Uuid,
}

/// Its parent is of its own table, so that the parameters have to live as long as the program.
#[derive(OrderedKey)]
struct Tree<T: 'static> {
    id: Uuid,
    #[ordid(parent = Tree<T>)]
    up: Option<Uuid>,
    #[ordid(parent = Single)]
    other: Uuid,
    value: T,
}

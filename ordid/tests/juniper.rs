//! Tests of key types as scalars of juniper.

use std::collections::HashMap;

use juniper::{
    DefaultScalarValue, EmptySubscription, FromInputValue, FromScalarValue, GraphQLObject,
    GraphQLScalar, GraphQLType, GraphQLValueAsync, InputValue, ParseScalarValue, RootNode,
    ScalarValue, ToInputValue, ToScalarValue, Variables, execute, execute_sync,
    futures::FutureExt as _,
    graphql_interface, graphql_object, graphql_value,
    macros::reflect::{BaseSubTypes, BaseType, WrappedType},
    marker::{IsInputType, IsOutputType},
};
use ordid::{
    KeyType,
    scheme::{UuidMask, masked::MaskedKey},
    uuid::Uuid,
};
use serde_json::json;

static MASK: UuidMask = UuidMask::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210);

#[derive(KeyType)]
#[ordid(prefix = "ord")]
struct OrderId(Uuid);

#[derive(KeyType)]
struct PlainId(Uuid);

#[derive(KeyType)]
#[ordid(prefix = "inv", mask = MASK)]
struct InvoiceId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 1_000), json = number)]
struct NumberId(i64);

/// A scalar that a user derives for a type with a key inside.
#[derive(GraphQLScalar)]
#[graphql(transparent)]
struct Reference(OrderId);

/// The vector "valid-uuidv7" of the TypeID specification, in `spec/valid.json`.
const UUID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const SUFFIX: &str = "01h455vb4pex5vsknk084sn02q";

#[graphql_interface]
#[graphql(for = Order)]
#[expect(dead_code, reason = "the macro makes `NodeValue` of it")]
trait Node {
    fn id(&self) -> OrderId;
}

#[derive(GraphQLObject)]
#[graphql(impl = NodeValue)]
struct Order {
    id: OrderId,
    invoice: Option<InvoiceId>,
}

struct Query;

#[graphql_object]
impl Query {
    fn order(id: OrderId) -> Order {
        Order { id, invoice: None }
    }

    fn node(id: OrderId) -> NodeValue {
        Order { id, invoice: None }.into()
    }

    async fn plain(ids: Vec<PlainId>) -> Vec<PlainId> {
        ids
    }

    fn invoice(id: InvoiceId) -> InvoiceId {
        id
    }

    fn number(id: Option<NumberId>) -> Option<NumberId> {
        id
    }

    fn reference(id: Reference) -> Reference {
        id
    }

    fn standard(
        #[graphql(default = order_id())] id: OrderId,
        #[graphql(default = invoice_id())] invoice: InvoiceId,
    ) -> Order {
        let invoice = Some(invoice);
        Order { id, invoice }
    }
}

mod other {
    use ordid::{KeyType, uuid::Uuid};

    #[derive(KeyType)]
    #[ordid(prefix = "other")]
    pub(crate) struct OrderId(Uuid);
}

struct Twice;

#[graphql_object]
impl Twice {
    fn first(id: OrderId) -> OrderId {
        id
    }

    fn second(id: other::OrderId) -> other::OrderId {
        id
    }
}

struct Mutation;

#[graphql_object]
impl Mutation {
    fn pay(order: OrderId, invoice: InvoiceId) -> Order {
        let invoice = Some(invoice);
        Order { id: order, invoice }
    }
}

fn order_id() -> OrderId {
    OrderId::from_raw(UUID.parse().expect("a UUID")).expect("version 7")
}

fn invoice_id() -> InvoiceId {
    InvoiceId::from_raw(UUID.parse().expect("a UUID")).expect("version 7")
}

type Schema = RootNode<Query, Mutation, EmptySubscription>;

fn schema() -> Schema {
    Schema::new(Query, Mutation, EmptySubscription::new())
}

/// Returns the data, or the error that the client gets.
fn ask_with(query: &str, variables: &Variables) -> Result<serde_json::Value, String> {
    let schema = schema();
    let answer = execute(query, None, &schema, variables, &());
    let (data, errors) = answer
        .now_or_never()
        .expect("nothing waits")
        .map_err(|error| error.to_string())?;
    match errors.first() {
        None => Ok(serde_json::to_value(data).expect("JSON")),
        Some(error) => Err(error.error().message().to_owned()),
    }
}

fn ask(query: &str) -> Result<serde_json::Value, String> {
    ask_with(query, &Variables::new())
}

fn refused(query: &str) -> String {
    ask(query).expect_err(query)
}

/// Compiles only if key types are scalars for every type of scalar values.
fn scalars_of<S: ScalarValue + Send + Sync>() {
    fn is_scalar<
        K: GraphQLType<S, TypeInfo = (), Context = ()>
            + GraphQLValueAsync<S>
            + ToScalarValue<S>
            + ToInputValue<S>
            + for<'s> FromScalarValue<'s, S>
            + FromInputValue<S>
            + ParseScalarValue<S>
            + IsInputType<S>
            + IsOutputType<S>
            + BaseType<S>
            + BaseSubTypes<S>
            + WrappedType<S>,
        S: ScalarValue + Send + Sync,
    >() {
    }

    is_scalar::<OrderId, S>();
    is_scalar::<InvoiceId, S>();
    is_scalar::<NumberId, S>();
}

#[test]
fn scalars_have_the_text_of_the_key() {
    let id = format!("ord_{SUFFIX}");
    let query = format!(
        "{{ order(id: \"{id}\") {{ id invoice }} node(id: \"{id}\") {{ id }} \
         plain(ids: [\"{UUID}\"]) reference(id: \"\"\"{id}\"\"\") number }}"
    );
    let expected = json!({
        "order": { "id": id, "invoice": null },
        "node": { "id": id },
        "plain": [UUID],
        "reference": id,
        "number": null,
    });
    assert_eq!(ask(&query), Ok(expected));

    let expected = json!({ "standard": { "id": id, "invoice": invoice_id().to_string() } });
    assert_eq!(ask("{ standard { id invoice } }"), Ok(expected));
    scalars_of::<DefaultScalarValue>();
}

#[test]
fn arguments_of_mutations_are_literals_or_variables() {
    let (order, invoice) = (order_id().to_string(), invoice_id().to_string());
    let expected = Ok(json!({ "pay": { "id": order, "invoice": invoice } }));
    let query =
        format!("mutation {{ pay(order: \"{order}\", invoice: \"{invoice}\") {{ id invoice }} }}");
    assert_eq!(ask(&query), expected);

    let query = "mutation($order: OrderId!, $invoice: InvoiceId!) \
                 { pay(order: $order, invoice: $invoice) { id invoice } }";
    let mut variables: Variables = HashMap::from([
        ("order".into(), order_id().to_input_value()),
        ("invoice".into(), InputValue::scalar(invoice.clone())),
    ]);
    assert_eq!(ask_with(query, &variables), expected);

    let schema = schema();
    let (data, errors) = execute_sync(query, None, &schema, &variables, &()).expect("valid");
    assert!(errors.is_empty(), "{errors:?}");
    let expected = graphql_value!({ "pay": { "id": order, "invoice": (invoice.clone()) } });
    assert_eq!(data, expected);

    variables.insert("order".into(), InputValue::scalar(invoice));
    let error = ask_with(query, &variables).expect_err("refused");
    assert!(error.contains("\"$order\" got invalid value"), "{error}");
    assert!(error.contains("not a `OrderId`"), "{error}");
}

/// Returns why a variable is refused. For a literal, juniper's error has only the value and the type.
fn reason(query: &str, id: InputValue) -> String {
    ask_with(query, &Variables::from([("id".into(), id)])).expect_err(query)
}

#[test]
fn the_text_of_another_key_is_refused_with_the_reason() {
    let order = |id| reason("query($id: OrderId!) { order(id: $id) { id } }", id);
    let plain = |id| reason("query($id: PlainId!) { plain(ids: [$id]) }", id);
    let error = order(InputValue::scalar(format!("cus_{SUFFIX}")));
    assert!(error.contains("not a `OrderId`"), "{error}");
    let expected = "expected the prefix \"ord\", found \"cus\"";
    assert!(error.contains(expected), "{error}");
    let error = plain(InputValue::scalar(UUID.to_uppercase()));
    assert!(error.contains("not canonical"), "{error}");
    // This is a UUID of another version.
    let error = plain(InputValue::scalar("7d444840-9dc0-41d1-b245-5ffdce74fad2"));
    assert!(error.contains("PlainId"), "{error}");
    for wrong in [
        InputValue::scalar(5),
        InputValue::scalar(1.5),
        InputValue::scalar(true),
    ] {
        let error = order(wrong);
        assert!(
            error.contains("expected the text of a `OrderId`"),
            "{error}"
        );
    }
    for wrong in [
        InputValue::null(),
        InputValue::list(vec![InputValue::scalar(5)]),
        InputValue::object([("id", InputValue::scalar(5))].into_iter().collect()),
    ] {
        order(wrong);
    }
    // juniper refuses a variable whose type is another scalar.
    let error = refused("query($id: PlainId!) { order(id: $id) { id } }");
    assert!(error.contains("OrderId"), "{error}");
}

#[test]
fn literals_that_are_no_keys_are_refused() {
    let other = format!("\"cus_{SUFFIX}\"");
    let error = refused(&format!("{{ order(id: {other}) {{ id }} }}"));
    assert!(error.contains("for type \"OrderId\""), "{error}");
    for wrong in [
        &other,
        "\"\"",
        "\"\\u0000\"",
        "5",
        "99999999999",
        "1.5",
        "true",
        "null",
        "ORD",
        "[1]",
        "[\"\"]",
        "{}",
        "{ id: 1 }",
    ] {
        refused(&format!("{{ order(id: {wrong}) {{ id }} }}"));
        refused(&format!(
            "mutation {{ pay(order: {wrong}, invoice: {wrong}) {{ id }} }}"
        ));
    }
}

#[test]
fn a_masked_key_shows_and_takes_its_masked_text_alone() {
    let id = invoice_id();
    let query = |id: &str| format!("{{ invoice(id: \"{id}\") }}");
    assert_eq!(
        ask(&query(&id.to_string())),
        Ok(json!({ "invoice": id.to_string() }))
    );
    let unmasked = id.unmasked().to_string();
    assert_ne!(unmasked, id.to_string());
    refused(&query(&unmasked));
    let query = "query($id: InvoiceId!) { invoice(id: $id) }";
    let error = reason(query, InputValue::scalar(unmasked));
    assert!(error.contains("found an unmasked key"), "{error}");
    let scalar: DefaultScalarValue = id.to_scalar_value();
    assert_eq!(scalar, DefaultScalarValue::from(id.to_string()));
    assert!(matches!(InvoiceId::from_scalar_value(&scalar), Ok(read) if read == id));
}

#[test]
fn keys_that_are_numbers_in_json_are_text_here() {
    let expected = json!({ "number": "281474976" });
    assert_eq!(ask("{ number(id: \"281474976\") }"), Ok(expected));
    for wrong in ["281474976", "9007199254740993", "\"-1\"", "1.5"] {
        refused(&format!("{{ number(id: {wrong}) }}"));
    }
}

#[test]
fn scalars_are_named_by_the_key_type() {
    let query = "{ order: __type(name: \"OrderId\") { kind name specifiedByURL } \
                 invoice: __type(name: \"InvoiceId\") { kind name } \
                 __schema { mutationType { fields { args { name type { ofType { name kind } } } } } } }";
    let argument = |name: &str, of: &str| json!({ "name": name, "type": { "ofType": { "name": of, "kind": "SCALAR" } } });
    let arguments = [
        argument("order", "OrderId"),
        argument("invoice", "InvoiceId"),
    ];
    let expected = json!({
        "order": { "kind": "SCALAR", "name": "OrderId", "specifiedByURL": null },
        "invoice": { "kind": "SCALAR", "name": "InvoiceId" },
        "__schema": { "mutationType": { "fields": [{ "args": arguments }] } },
    });
    assert_eq!(ask(query), Ok(expected));
    assert_eq!(
        <Option<Vec<OrderId>> as BaseType<DefaultScalarValue>>::NAME,
        "OrderId"
    );
    assert_eq!(
        <Option<Vec<OrderId>> as WrappedType<DefaultScalarValue>>::VALUE,
        132
    );
    let names = <OrderId as BaseSubTypes<DefaultScalarValue>>::NAMES;
    assert_eq!(names, ["OrderId"]);
}

#[test]
fn key_types_of_one_name_are_one_scalar() {
    let schema = RootNode::new(Twice, Mutation, EmptySubscription::new());
    let ask = |query: &str| {
        let query = query.replace('*', SUFFIX);
        let answer = execute_sync(&query, None, &schema, &Variables::new(), &());
        matches!(answer, Ok((_, errors)) if errors.is_empty())
    };
    assert!(ask("{ first(id: \"ord_*\") }"));
    assert!(!ask("{ second(id: \"other_*\") }"));
    assert!(!ask("{ second(id: \"ord_*\") }"));
}

//! Key types as scalars of async-graphql.

use async_graphql::{
    EmptyMutation, EmptySubscription, InputType, Object, OutputType, Request, ScalarType, Schema,
    SimpleObject, Value, Variables, value,
};
use ordid::{KeyType, scheme::masked::MaskedKey};
use serde_json::json;

use crate::{CustomerId, MASK, OrderId, PlainId, SUFFIX, UUID, key};

#[derive(KeyType)]
#[ordid(prefix = "inv", mask = MASK)]
struct InvoiceId(uuid::Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake(epoch = "2026-01-01", years = 20, ids_per_second = 1_000), json = number)]
struct NumberId(i64);

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct SnowflakeId(i64);

#[derive(SimpleObject)]
struct Order {
    id: OrderId,
    customer: Option<CustomerId>,
}

struct Query;

#[Object]
impl Query {
    async fn order(&self, id: OrderId) -> Order {
        Order { id, customer: None }
    }

    async fn plain(&self, ids: Vec<PlainId>) -> Vec<PlainId> {
        ids
    }

    async fn invoice(&self, id: InvoiceId) -> InvoiceId {
        id
    }

    async fn number(&self, id: NumberId) -> NumberId {
        id
    }

    async fn snowflake(&self, id: Option<SnowflakeId>) -> Option<SnowflakeId> {
        id
    }
}

async fn ask(request: Request) -> Result<serde_json::Value, String> {
    let schema = Schema::new(Query, EmptyMutation, EmptySubscription);
    let answer = schema.execute(request).await;
    match answer.errors.first() {
        None => Ok(answer.data.into_json().expect("JSON")),
        Some(error) => Err(error.message.clone()),
    }
}

#[tokio::test]
async fn scalars_have_the_text_of_the_key() {
    let id = format!("ord_{SUFFIX}");
    let query =
        format!("{{ order(id: \"{id}\") {{ id customer }} plain(ids: [\"{UUID}\"]) snowflake }}");
    let expected = json!({
        "order": { "id": id, "customer": null },
        "plain": [UUID],
        "snowflake": null,
    });
    assert_eq!(ask(Request::new(query)).await, Ok(expected));

    let variables = Variables::from_json(json!({ "id": id, "large": "9007199254740993" }));
    let query =
        "query($id: OrderId!, $large: SnowflakeId) { order(id: $id) { id } snowflake(id: $large) }";
    let found = ask(Request::new(query).variables(variables)).await;
    assert_eq!(
        found,
        Ok(json!({ "order": { "id": id }, "snowflake": "9007199254740993" }))
    );
}

#[tokio::test]
async fn the_text_of_another_key_is_refused_with_the_reason() {
    let error = async |query: &str| ask(Request::new(query)).await.expect_err("refused");
    let found = error(&format!("{{ order(id: \"cus_{SUFFIX}\") {{ id }} }}")).await;
    assert!(found.contains("OrderId"), "{found}");
    assert!(
        found.contains("expected the prefix \"ord\", found \"cus\""),
        "{found}"
    );
    let found = error(&format!("{{ plain(ids: [\"{}\"]) }}", UUID.to_uppercase())).await;
    assert!(found.contains("not canonical"), "{found}");
    for wrong in ["5", "true", "null", "[1]", "{ id: 1 }"] {
        error(&format!("{{ order(id: {wrong}) {{ id }} }}")).await;
    }
    // async-graphql refuses a variable whose type is another scalar.
    let found = error("query($id: PlainId!) { order(id: $id) { id } }").await;
    assert!(found.contains("PlainId") || found.contains("id"), "{found}");
}

#[tokio::test]
async fn a_masked_key_shows_and_takes_its_masked_text_alone() {
    let id: InvoiceId = key();
    let query = |id: &str| Request::new(format!("{{ invoice(id: \"{id}\") }}"));
    assert_eq!(
        ask(query(&id.to_string())).await,
        Ok(json!({ "invoice": id.to_string() }))
    );
    let unmasked = id.unmasked().to_string();
    assert_ne!(unmasked, id.to_string());
    let error = ask(query(&unmasked)).await.expect_err("refused");
    assert!(error.contains("found an unmasked key"), "{error}");
    assert_eq!(InputType::to_value(&id), Value::from(id.to_string()));
}

#[tokio::test]
async fn keys_that_are_numbers_in_json_are_numbers_here() {
    let expected = json!({ "number": 281_474_976 });
    assert_eq!(
        ask(Request::new("{ number(id: 281474976) }")).await,
        Ok(expected)
    );
    for wrong in ["\"281474976\"", "9007199254740993", "-1", "1.5"] {
        let query = format!("{{ number(id: {wrong}) }}");
        assert!(ask(Request::new(query)).await.is_err(), "{wrong}");
    }
}

#[test]
fn scalars_are_named_by_the_key_type() {
    let schema = Schema::new(Query, EmptyMutation, EmptySubscription).sdl();
    for line in [
        "scalar OrderId",
        "scalar PlainId",
        "order(id: OrderId!): Order!",
        "snowflake(id: SnowflakeId): SnowflakeId",
        "customer: CustomerId\n",
    ] {
        assert!(schema.contains(line), "{line} in {schema}");
    }
    assert_eq!(<OrderId as OutputType>::type_name(), "OrderId");
    let text = Value::from(format!("ord_{SUFFIX}"));
    assert_eq!(ScalarType::to_value(&key::<OrderId>()), text);
    let read = <OrderId as ScalarType>::parse(text).map_err(|_| "refused");
    assert_eq!(read, Ok(key()));
    assert!(<OrderId as ScalarType>::parse(value!({ "id": 1 })).is_err());
}

//! What is no period, or cannot be one.

use ordid::{KeyType, uuid::Uuid};

struct Month;

#[derive(KeyType)]
#[ordid(scheme = uuid_v4_clustered(period = Month))]
struct NoPeriod(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4_clustered(period = Seconds<0>))]
struct NoSeconds(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4_clustered(period = "week"))]
struct Text(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4_clustered_compat(period = u32))]
struct Number(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4(period = Week))]
struct NoneToHave(Uuid);

fn main() {
    let _ = NoPeriod::generate();
    let _ = Text::generate();
    let _ = Number::generate();
}

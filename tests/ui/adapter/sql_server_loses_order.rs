//! Version 7 in a plain `uniqueidentifier`, and what rises there in a column that compares bytes.

use ordid::{
    scheme::{CombRtSql, SequentialGuidAsString, UuidV7, UuidV8SqlServer},
    storage::{
        assert_keeps_order,
        column::{BabelfishUniqueIdentifier, Raw16, Raw16DotNet, UniqueIdentifier},
        dialect::{Babelfish, Oracle, SqlServer},
    },
};

const _: () = assert_keeps_order::<UuidV7, UniqueIdentifier, SqlServer>();

const _: () = assert_keeps_order::<UuidV8SqlServer, BabelfishUniqueIdentifier, Babelfish>();

const _: () = assert_keeps_order::<CombRtSql, Raw16, Oracle>();

const _: () = assert_keeps_order::<SequentialGuidAsString, Raw16DotNet, Oracle>();

fn main() {}

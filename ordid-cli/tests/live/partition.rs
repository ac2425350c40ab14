use libtest_mimic::Trial;

use crate::place::Servers;

pub(crate) fn trials(_: &Servers, _: &mut Vec<Trial>) {}

//! What a policy did, told to `tracing` and `metrics` where their features are on. All of it is off
//! the path of ordinary keys.

/// Counts and reports one event. Fields are for the report, in milliseconds.
macro_rules! event {
    ($level:ident, $counter:literal, $message:literal $(, $field:ident)*) => {{
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "ordid", $($field,)* $message);
        #[cfg(feature = "metrics")]
        metrics::counter!($counter).increment(1);
        #[cfg(not(feature = "tracing"))]
        $(let _ = $field;)*
    }};
}

pub(super) fn followed(newest_millis: u64, now_millis: u64) {
    event!(
        warn,
        "ordid_clock_followed_total",
        "the clock stepped back beyond the bound and is followed: one break in the order of keys",
        newest_millis,
        now_millis
    );
}

/// Once where it begins, not once a key. A local block is used up first, and the next one reports it.
pub(super) fn held(ahead_millis: u64) {
    event!(
        info,
        "ordid_clock_held_total",
        "the clock is behind the newest key: keys keep its time until the clock is there",
        ahead_millis
    );
}

pub(super) fn advanced(ahead_millis: u64) {
    event!(
        debug,
        "ordid_counter_advanced_total",
        "the counter went on into a millisecond that the clock has not reached",
        ahead_millis
    );
}

pub(super) fn overflowed(next_millis: u64) {
    event!(
        warn,
        "ordid_counter_refused_total",
        "the counter is used up, and the policy does not wait any longer: no key is made",
        next_millis
    );
}

pub(super) fn refused(behind_millis: u64) {
    event!(
        warn,
        "ordid_clock_refused_total",
        "the clock is behind the newest key, further than the policy allows: no key is made",
        behind_millis
    );
}

pub(super) fn clock_wait(behind_millis: u64) {
    event!(
        debug,
        "ordid_clock_waits_total",
        "waiting for a clock that stepped back",
        behind_millis
    );
}

pub(super) fn counter_wait(next_millis: u64) {
    event!(
        debug,
        "ordid_counter_waits_total",
        "the counter is used up: waiting for the clock",
        next_millis
    );
}

pub(super) fn renewed(epoch: u32) {
    event!(
        debug,
        "ordid_renewals_total",
        "a new secret was drawn for the counter",
        epoch
    );
}

/// Once a call that cannot have a key.
#[cfg(feature = "std")]
pub(super) fn lease_expired(grant: &crate::coordination::Grant) {
    let (node, epoch, ceiling_millis) = of(grant);
    event!(
        warn,
        "ordid_lease_expired_total",
        "the lease's time is over and it was not renewed: no key is made",
        node,
        epoch,
        ceiling_millis
    );
}

#[cfg(feature = "std")]
pub(super) fn lease_acquired(grant: &crate::coordination::Grant) {
    let (node, epoch, ceiling_millis) = of(grant);
    event!(
        info,
        "ordid_lease_acquired_total",
        "a node is leased",
        node,
        epoch,
        ceiling_millis
    );
}

#[cfg(feature = "std")]
pub(super) fn lease_renewed(grant: &crate::coordination::Grant) {
    let (node, epoch, ceiling_millis) = of(grant);
    event!(
        debug,
        "ordid_lease_renewed_total",
        "the lease of a node is renewed",
        node,
        epoch,
        ceiling_millis
    );
}

#[cfg(feature = "std")]
pub(super) fn lease_released(grant: &crate::coordination::Grant) {
    let (node, epoch, ceiling_millis) = of(grant);
    event!(
        info,
        "ordid_lease_released_total",
        "a node is given back",
        node,
        epoch,
        ceiling_millis
    );
}

/// Why, and what is held as long as its time lasts.
#[cfg(feature = "std")]
pub(super) fn lease_not_renewed(failure: &crate::error::Error) {
    let failure = failure.to_string();
    let failure = failure.as_str();
    event!(
        warn,
        "ordid_lease_failures_total",
        "the lease of a node was not renewed: keys are made until its ceiling",
        failure
    );
}

#[cfg(feature = "std")]
fn of(grant: &crate::coordination::Grant) -> (u64, u64, u64) {
    let ceiling_millis = grant.ceiling().as_unix_millis();
    #[cfg(feature = "metrics")]
    {
        // Exact below 2^53.
        #[expect(clippy::cast_precision_loss)]
        metrics::gauge!("ordid_lease_node").set(grant.node() as f64);
        #[expect(clippy::cast_precision_loss)]
        metrics::gauge!("ordid_lease_ceiling_seconds").set(ceiling_millis as f64 / 1_000.0);
    }
    (grant.node(), grant.epoch(), ceiling_millis)
}

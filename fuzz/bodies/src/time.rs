//! Arithmetic of time.

use arbitrary::Unstructured;
use ordid_core::{
    clock::{Moment, TimeScale, Timestamp},
    scheme::TimeOrdered,
};

use crate::{
    draw::{Draw as _, any},
    schemes::SCHEMES,
};

const SCALES: [TimeScale; 6] = [
    TimeScale::UNIX_MILLIS,
    TimeScale::UNIX_SECONDS,
    TimeScale::GREGORIAN_TICKS,
    TimeScale::DOTNET_TICKS,
    TimeScale::DOTNET_MILLIS,
    TimeScale::SQL_SERVER_DATETIME,
];

const NANOS_PER_MILLI: i128 = 1_000_000;

/// Takes the bytes for a time, a tick, and a scale.
pub fn time(data: &[u8]) {
    let mut left = Unstructured::new(data);
    let millis = u64::draw(&mut left);
    let nanos = u32::draw(&mut left);
    let ticks = u64::draw(&mut left);

    for scheme in SCHEMES {
        if let Some(bounds) = scheme.bounds {
            bounds(Timestamp::saturating_from_unix_millis(millis));
        }
    }

    let length = u32::draw(&mut left).max(1);
    // A tick has at least a nanosecond.
    let finest = length.saturating_mul(1_000_000);
    let numerator = u32::draw(&mut left).clamp(1, finest);
    let epoch = any::<i64>(&mut left);
    let given = TimeScale::ticks_per_millis(numerator, length, epoch);
    assert_eq!(given.epoch_unix_millis(), epoch);
    for scale in SCALES.into_iter().chain([given]) {
        ticks_contain_their_times(scale, millis, nanos % 1_000_000);
        ticks_begin_in_themselves(scale, ticks);
        // More than a millisecond: what it means is not said, but it does not overflow.
        let _ = scale.ticks_at(millis, nanos);
    }

    let moment = Moment {
        unix_nanos: any(&mut left),
        tick_nanos: ticks,
    };
    check_moment(moment);
}

fn ticks_contain_their_times(scale: TimeScale, millis: u64, nanos: u32) {
    let at = i128::from(millis) * NANOS_PER_MILLI + i128::from(nanos);
    match scale.ticks_at(millis, nanos) {
        Some(ticks) => {
            assert!(scale.unix_nanos_at(ticks) <= at, "{scale:?} {at}");
            if let Some(next) = ticks.checked_add(1) {
                assert!(at < scale.unix_nanos_at(next), "{scale:?} {at}");
            }
        }
        // Before the epoch, or where 64 bits end. They end earlier by what a tick has of
        // milliseconds.
        None => assert!(
            i128::from(millis) < i128::from(scale.epoch_unix_millis())
                || i128::from(millis) - i128::from(scale.epoch_unix_millis()) > 0xffff_ffff,
            "{scale:?} {at}"
        ),
    }
}

fn ticks_begin_in_themselves(scale: TimeScale, ticks: u64) {
    let begin = scale.unix_nanos_at(ticks);
    let moment = scale.moment_at(ticks);
    assert_eq!(moment.unix_nanos, begin);
    assert_eq!(scale.timestamp_at(ticks), moment.saturating_timestamp());
    check_moment(moment);
    let millis = u64::try_from(begin.div_euclid(NANOS_PER_MILLI));
    let nanos = u32::try_from(begin.rem_euclid(NANOS_PER_MILLI));
    if let (Ok(millis), Ok(nanos)) = (millis, nanos)
        && let Some(found) = scale.ticks_at(millis, nanos)
    {
        assert_eq!(found, ticks, "{scale:?}");
    }
}

fn check_moment(moment: Moment) {
    let saturated = moment.saturating_timestamp();
    let begin = i128::from(saturated.as_unix_millis()) * NANOS_PER_MILLI;
    match moment.timestamp() {
        Some(timestamp) => {
            assert_eq!(timestamp, saturated);
            assert_eq!(
                moment.unix_nanos.div_euclid(NANOS_PER_MILLI) * NANOS_PER_MILLI,
                begin
            );
        }
        None => assert!(
            moment.unix_nanos < 0 || saturated == Timestamp::MAX && moment.unix_nanos > begin,
            "{moment:?}"
        ),
    }
}

pub(crate) fn bounds<S: TimeOrdered>(timestamp: Timestamp) {
    match S::bounds_at(timestamp) {
        Ok((lowest, highest)) => {
            assert!(
                S::cmp(&lowest, &highest).is_le(),
                "{} {timestamp:?}",
                S::NAME
            );
            for end in [lowest, highest] {
                assert!(S::check(&end), "{} {timestamp:?}", S::NAME);
                // The step that the millisecond begins in.
                let at = S::timestamp(&end).expect("a key with a time");
                assert!(at <= timestamp, "{} {timestamp:?} {at:?}", S::NAME);
            }
        }
        Err(error) => assert!(error.is_clock(), "{} {error}", S::NAME),
    }
}

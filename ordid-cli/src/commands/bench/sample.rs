//! Chooses the rows that are read: the same ones of each table.

/// How many rows a span has.
pub(super) const SPAN: u32 = 100;

/// The numbers of the rows that are read.
#[derive(Debug)]
pub(super) struct Sample {
    /// Anywhere in the table.
    pub(super) random: Vec<u32>,
    /// Rows of the last hundredth.
    pub(super) newest: Vec<u32>,
    /// The first rows of spans.
    pub(super) spans: Vec<u32>,
    /// All of them, in order, each once.
    pub(super) wanted: Vec<u32>,
}

impl Sample {
    /// Draws the sample of a table of at least [`SPAN`] rows.
    pub(super) fn new(rows: u32) -> Self {
        let reads = (rows / 50).clamp(20, 1000);
        let mut random = Random::new();
        let mut draw = |count: u32, from: u32, to: u32| -> Vec<u32> {
            (0..count).map(|_| random.between(from, to)).collect()
        };
        let newest = rows - (rows / 100).max(SPAN.min(rows));
        let sample = [
            draw(reads, 0, rows),
            draw(reads, newest, rows),
            draw(reads.div_ceil(20), 0, rows - SPAN + 1),
        ];
        let mut wanted: Vec<u32> = sample[..2].concat();
        wanted.extend(sample[2].iter().flat_map(|first| *first..first + SPAN));
        wanted.sort_unstable();
        wanted.dedup();
        let [random, newest, spans] = sample;
        Self {
            random,
            newest,
            spans,
            wanted,
        }
    }

    /// Returns the key of a row of the sample.
    pub(super) fn key<'a, T>(&self, kept: &'a [T], row: u32) -> &'a T {
        let place = self.wanted.binary_search(&row);
        &kept[place.expect("the row is of the sample")]
    }
}

/// SplitMix64 from a fixed start, so that each run reads the same rows.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Self {
        Self(0x0d1d)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn between(&mut self, from: u32, to: u32) -> u32 {
        let drawn = self.next() % u64::from(to - from);
        from + u32::try_from(drawn).expect("it is below a 32-bit number")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_lies_in_the_table_and_is_the_same_in_each_run() {
        for rows in [100, 1000, 1_000_000] {
            let sample = Sample::new(rows);
            assert!(sample.wanted.iter().all(|row| *row < rows), "{rows}");
            assert!(
                sample
                    .newest
                    .iter()
                    .all(|row| *row >= rows - (rows / 100).max(100))
            );
            assert_eq!(sample.random, Sample::new(rows).random);
            let kept = sample.wanted.clone();
            assert!(
                sample
                    .random
                    .iter()
                    .all(|row| sample.key(&kept, *row) == row)
            );
        }
    }
}

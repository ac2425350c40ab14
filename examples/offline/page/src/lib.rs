//! Makes keys in a page, without a server: a generator on the clock and the entropy of the browser.
//!
//! Each tab has a generator of its own. What keeps the keys of tabs apart is random: `uuid_v7` starts each millisecond
//! at 41 bits that the tab's own secret decides, and adds 32 fresh bits to each key. A scheme with a node would keep them
//! apart for certain, but somebody has to give the nodes out, and without a server nobody can.

use std::sync::{
    LazyLock,
    atomic::{AtomicI64, Ordering},
};

use ordid::{
    Error, KeyType,
    clock::{Clock, Timestamp},
    entropy::Entropy,
    generator::{Generator, Policy},
    scheme::uuid_v7::UuidV7Generator,
    uuid::Uuid,
};
use wasm_bindgen::prelude::*;

/// `note_...`, as the server's `NoteId`: the two share the text, and nothing else.
#[derive(KeyType)]
#[ordid(prefix = "note")]
struct NoteId(Uuid);

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = Date, js_name = now)]
    fn date_now() -> f64;

    #[wasm_bindgen(catch, js_namespace = crypto, js_name = getRandomValues)]
    fn get_random_values(words: &mut [u32]) -> Result<(), JsValue>;
}

/// How many milliseconds the server's clock is ahead of the page's.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The page's clock, set right by the server's.
struct PageClock;

impl Clock for PageClock {
    fn now(&self) -> Timestamp {
        let millis = whole(date_now()).saturating_add(AHEAD.load(Ordering::Relaxed));
        Timestamp::saturating_from_unix_millis(u64::try_from(millis).unwrap_or(0))
    }
}

/// Returns the integer below a number of JavaScript.
fn whole(number: f64) -> i64 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it saturates, and NaN becomes 0"
    )]
    let whole = number.floor() as i64;
    whole
}

/// The CSPRNG that every browser has.
struct PageEntropy;

impl Entropy for PageEntropy {
    /// A page does not fork: a tab that is duplicated runs its scripts anew.
    fn epoch(&self) -> u32 {
        1
    }

    fn next_u32(&self) -> Result<u32, Error> {
        let mut words = [0];
        self.fill(&mut words)?;
        Ok(words[0])
    }

    /// One call for both words, since calls from WebAssembly to JavaScript are what a key costs.
    fn next_u64(&self) -> Result<u64, Error> {
        let mut words = [0; 2];
        self.fill(&mut words)?;
        Ok(u64::from(words[0]) << 32 | u64::from(words[1]))
    }

    fn fill(&self, words: &mut [u32]) -> Result<(), Error> {
        /// The browser gives no more at once.
        const MOST_BYTES: usize = 65_536;

        for some in words.chunks_mut(MOST_BYTES / size_of::<u32>()) {
            get_random_values(some)
                .map_err(|_| Error::entropy("crypto.getRandomValues gives no random values"))?;
        }
        Ok(())
    }
}

static GENERATOR: LazyLock<UuidV7Generator<PageClock, PageEntropy>> =
    LazyLock::new(|| UuidV7Generator::new(PageClock, PageEntropy, Policy::DEFAULT));

/// Makes the next key, above all keys that this tab made before. Only if the clock is set back by more than ten seconds, it
/// is not above those of before: [`Policy::DEFAULT`] then follows the clock.
///
/// # Errors
///
/// The browser gives no random values.
#[wasm_bindgen(js_name = newNoteId)]
pub fn new_note_id() -> Result<String, JsError> {
    let generated = GENERATOR
        .try_generate()
        .map_err(|error| JsError::new(&error.to_string()))?;
    Ok(NoteId::from_generated(generated).to_string())
}

/// Takes how many milliseconds the server's clock is ahead of this machine's; less than zero where it is behind.
#[wasm_bindgen(js_name = setClockAhead)]
pub fn set_clock_ahead(millis: f64) {
    AHEAD.store(whole(millis), Ordering::Relaxed);
}

/// Returns the time in a key, in milliseconds since 1970.
///
/// # Errors
///
/// The text is no key of a note.
#[wasm_bindgen(js_name = timeOf)]
pub fn time_of(id: &str) -> Result<f64, JsError> {
    let id: NoteId = id
        .parse()
        .map_err(|error: Error| JsError::new(&error.to_string()))?;
    let time = id.timestamp().map_or(0, Timestamp::as_unix_millis);
    #[expect(clippy::cast_precision_loss, reason = "a time of 48 bits is exact")]
    let millis = time as f64;
    Ok(millis)
}

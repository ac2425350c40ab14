//! Generators that were given to a unit of work.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
};

use ordid_core::{
    EnsuredKey, Error,
    entity::{KeyOf, OrderedKey},
    generator::Generator,
    key::{KeyType, Scheme},
};

/// Makes the next key of a key type.
type Make<K> = Box<dyn Fn() -> Result<K, Error> + Send + Sync>;

/// Generators by the key types that they are for: those of schemes with a node of one's own, and
/// others that are to be asked in the place of the process's.
///
/// An adapter's unit of work keeps one, and fills it in `with_generator`.
#[derive(Default)]
pub struct Generators(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Generators {
    /// Makes an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the generator of a key type, in the place of one given before. To share it, give an
    /// [`Arc`](std::sync::Arc) or a `&'static` of it.
    pub fn insert<K: KeyType>(
        &mut self,
        generator: impl Generator<Scheme = K::Scheme> + Send + Sync + 'static,
    ) {
        let make: Make<K> = Box::new(move || generator.try_generate().map(K::from_generated));
        self.0.insert(TypeId::of::<K>(), Box::new(make));
    }

    /// Returns the entity's key, after assigning one of its key type's generator where there was
    /// none.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`]; and one that [`is_plan`](Error::is_plan) if there was no key
    /// and no generator was given.
    pub fn ensure_key<E: OrderedKey>(&self, entity: &mut E) -> Result<KeyOf<E>, Error> {
        if let Some(key) = entity.key() {
            return Ok(key);
        }
        if let [_, _, ..] = E::KEY_COLUMNS {
            return Err(Error::plan(format!(
                "a row of {} has no value in one of the columns {} of its key: assign it before the row is added",
                E::TABLE,
                E::KEY_COLUMNS.join(", ")
            )));
        }
        let Some(make) = self.given::<KeyOf<E>>() else {
            let name = KeyOf::<E>::NAME;
            return Err(Error::plan(format!(
                "a row of {} has no key, and no generator was given for `{name}` (scheme {}); give \
                 one with `with_generator::<{name}>(generator)`",
                E::TABLE,
                <KeyOf<E> as KeyType>::Scheme::NAME,
            )));
        };
        let key = make()?;
        entity.assign_key(key);
        Ok(key)
    }

    /// As [`ensure_key`](Self::ensure_key); where no generator was given, the process's makes the key.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`], of a generator that was given.
    ///
    /// # Panics
    ///
    /// As [`OrderedKey::ensure_key`], where none was given.
    #[track_caller]
    pub fn ensure_key_or_generate<E>(&self, entity: &mut E) -> Result<KeyOf<E>, Error>
    where
        E: OrderedKey<Field: EnsuredKey>,
    {
        match entity.key() {
            None if self.given::<KeyOf<E>>().is_some() => self.ensure_key(entity),
            _ => Ok(entity.ensure_key()),
        }
    }

    fn given<K: KeyType>(&self) -> Option<&Make<K>> {
        self.0.get(&TypeId::of::<K>())?.downcast_ref()
    }
}

/// Their number: a generator does not show what tells its keys.
impl fmt::Debug for Generators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Generators").field(&self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests;

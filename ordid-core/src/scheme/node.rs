//! The node of UUID versions 1 and 6: what tells one generator's keys from another's.

use core::{fmt, hash::Hasher as _};

use siphasher::sip::SipHasher24;

use super::gregorian::to_number;

/// The bit that no network card's address has: RFC 9562 section 6.10 asks it of every node that is
/// not one. It is the lowest of the first octet.
const MULTICAST: u64 = 1 << 40;

/// Where a generator's node comes from: random bits unless said otherwise.
///
/// | node | tells of the machine | two generators at the same tick |
/// |---|---|---|
/// | [`RANDOM`](Self::RANDOM) | nothing | differ by 47 + 14 random bits |
/// | [`hashed`](Self::hashed) | who knows the salt can look for the name | differ by node, if it is theirs alone; otherwise by 14 random bits of clock sequence |
/// | [`danger_exact`](Self::danger_exact) | the address itself | as above |
///
/// Whatever the node, the clock sequence is 14 random bits of the generator. They, and a random
/// node, change in the child of a fork and when the generator follows a clock back.
///
/// # Keys for a given time
///
/// [`Generator::generate_at`](crate::generator::Generator::generate_at) draws random node and clock
/// sequence anew for each key, since all keys for a millisecond get its first tick. Where the node
/// is fixed, that leaves 14 bits: of 20 such keys *for one and the same millisecond*, two are equal
/// once in a hundred times. Backfill with a random node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct UuidNode(Option<u64>);

impl UuidNode {
    /// 47 random bits under the multicast bit, drawn by the generator: the default.
    pub const RANDOM: Self = Self(None);

    /// 47 bits of a keyed hash of a name, under the multicast bit: SipHash-2-4 with the salt as its
    /// key. The name is what is known of the machine or of the account, such as its MAC address or
    /// an account's id.
    ///
    /// It hides the name only from those who do not know the salt: there are but 2^48 MAC
    /// addresses, far fewer of known makers, and fewer accounts still, so that whoever knows the
    /// salt can try them all. With a secret salt the name is as safe as SipHash is a good PRF. Names
    /// may come to the same 47 bits: among a million, two do with a chance of one in 280.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::scheme::UuidNode;
    ///
    /// let salt = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]; // yours: random and kept secret
    /// let node = UuidNode::hashed(&[0x92, 0x36, 0x1f, 0x00, 0x26, 0x71], salt);
    /// assert_eq!(node, UuidNode::hashed(&[0x92, 0x36, 0x1f, 0x00, 0x26, 0x71], salt));
    /// assert_ne!(node, UuidNode::hashed(b"account 7", salt));
    /// ```
    pub fn hashed(name: &[u8], salt: [u64; 2]) -> Self {
        let mut hasher = SipHasher24::new_with_keys(salt[0], salt[1]);
        hasher.write(name);
        Self(Some(hasher.finish() >> 16 | MULTICAST))
    }

    /// These 48 bits, first octet first, such as the machine's MAC address.
    ///
    /// Every key then tells the world which machine made it, and with it the maker of its network
    /// card; RFC 9562 section 8 advises against it. No two generators may have the same one at the
    /// same time, unless 14 bits of clock sequence are to tell them apart: containers and cloned
    /// machines often do.
    pub const fn danger_exact(node: [u8; 6]) -> Self {
        Self(Some(to_number(node)))
    }

    /// Returns the 48 bits, for a generator of this identity.
    #[inline]
    pub(super) const fn bits(self, identity: u64) -> u64 {
        match self.0 {
            Some(bits) => bits,
            // The lower 16 bits are the clock sequence's.
            None => identity >> 16 | MULTICAST,
        }
    }
}

impl fmt::Debug for UuidNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bits) => write!(f, "UuidNode({bits:012x})"),
            None => f.write_str("UuidNode(random)"),
        }
    }
}

/// Process-wide generators of schemes with a [`UuidNode`], which is random.
#[cfg(all(feature = "std", not(loom)))]
pub(super) mod process {
    use core::{convert::Infallible, marker::PhantomData};

    use crate::{
        clock::{TimeScale, Timestamp},
        error::Error,
        generator::{ProcessReserved, Slot, Slotted},
        key::{Generated, Scheme, StaticScheme},
        layout::Orders,
        scheme::UuidNode,
    };

    /// The scheme `S` with a random node and no other, whose generators can be constants.
    #[derive(Debug)]
    pub(crate) struct RandomNode<S>(PhantomData<S>, Infallible);

    impl<S: Slotted<Node = UuidNode>> Scheme for RandomNode<S> {
        type Raw = S::Raw;

        const NAME: &'static str = S::NAME;
        const ORDERS: Orders = S::ORDERS;
        const EXPECTED: &'static str = S::EXPECTED;

        fn check(raw: &S::Raw) -> bool {
            S::check(raw)
        }

        fn timestamp(raw: &S::Raw) -> Option<Timestamp> {
            S::timestamp(raw)
        }

        fn cmp(left: &S::Raw, right: &S::Raw) -> core::cmp::Ordering {
            S::cmp(left, right)
        }
    }

    impl<S: Slotted<Node = UuidNode>> Slotted for RandomNode<S> {
        type Node = ();

        const SCALE: TimeScale = S::SCALE;
        const TICK_BITS: u32 = S::TICK_BITS;
        const INDEX_BITS: u32 = S::INDEX_BITS;
        const FRACTION_BITS: u32 = S::FRACTION_BITS;
        const SEED_BITS: u32 = S::SEED_BITS;
        const RANDOM_BITS: u32 = S::RANDOM_BITS;
        const IDENTITY: bool = S::IDENTITY;
        const RENEWS: bool = S::RENEWS;

        #[inline]
        fn encode(slot: Slot<()>) -> S::Raw {
            S::encode(Slot {
                time: slot.time,
                count: slot.count,
                identity: slot.identity,
                random: slot.random,
                node: UuidNode::RANDOM,
            })
        }
    }

    #[inline]
    pub(crate) fn named<S: Slotted<Node = UuidNode>>(
        key: Generated<RandomNode<S>>,
    ) -> Generated<S> {
        Generated::new(key.into_raw())
    }

    /// Keys of a process-wide generator with a random node, claimed together.
    #[derive(Debug)]
    pub struct NodeReserved<S: Slotted<Node = UuidNode>>(ProcessReserved<RandomNode<S>>);

    impl<S: Slotted<Node = UuidNode>> NodeReserved<S> {
        pub(crate) fn claim(count: usize) -> Result<Self, Error>
        where
            RandomNode<S>: StaticScheme<Reserved = ProcessReserved<RandomNode<S>>>,
        {
            RandomNode::<S>::reserve(count).map(Self)
        }
    }

    impl<S: Slotted<Node = UuidNode>> Iterator for NodeReserved<S> {
        type Item = Generated<S>;

        /// # Panics
        ///
        /// If the operating system has no entropy after a fork.
        fn next(&mut self) -> Option<Generated<S>> {
            self.0.next().map(named)
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            self.0.size_hint()
        }
    }

    impl<S: Slotted<Node = UuidNode>> ExactSizeIterator for NodeReserved<S> {}

    /// Gives a scheme its process-wide generator.
    macro_rules! process_wide_with_random_node {
        ($scheme:ty) => {
            const _: () = {
                use $crate::{
                    clock::{SystemClock, Timestamp},
                    entropy::ThreadEntropy,
                    error::Error,
                    generator::{OrderedGenerator, Policy, ProcessWide},
                    key::{Generated, StaticScheme},
                    scheme::node::process::{NodeReserved, RandomNode, named},
                };

                type Random = RandomNode<$scheme>;

                impl ProcessWide for Random {
                    fn process_wide() -> &'static OrderedGenerator<Self, SystemClock, ThreadEntropy>
                    {
                        static GENERATOR: OrderedGenerator<Random, SystemClock, ThreadEntropy> =
                            OrderedGenerator::new(SystemClock, ThreadEntropy, Policy::DEFAULT);
                        &GENERATOR
                    }
                }

                impl StaticScheme for $scheme {
                    type Reserved = NodeReserved<Self>;

                    #[inline]
                    fn generate() -> Generated<Self> {
                        named(Random::generate())
                    }

                    fn generate_at(timestamp: Timestamp) -> Result<Generated<Self>, Error> {
                        Random::generate_at(timestamp).map(named)
                    }

                    fn fill_with(count: usize, mut put: impl FnMut(Generated<Self>)) {
                        Random::fill_with(count, |key| put(named(key)));
                    }

                    fn reserve(count: usize) -> Result<NodeReserved<Self>, Error> {
                        NodeReserved::claim(count)
                    }
                }
            };
        };
    }
    pub(crate) use process_wide_with_random_node;
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [0x92, 0x36, 0x1f, 0x00, 0x26, 0x71];

    #[test]
    fn a_random_node_is_47_bits_of_the_identity_under_the_multicast_bit() {
        assert_eq!(UuidNode::default(), UuidNode::RANDOM);
        assert_eq!(UuidNode::RANDOM.bits(0), MULTICAST);
        assert_eq!(UuidNode::RANDOM.bits(0xffff), MULTICAST);
        assert_eq!(UuidNode::RANDOM.bits(u64::MAX), (1 << 48) - 1);
    }

    #[test]
    fn an_exact_node_is_what_was_given() {
        let node = UuidNode::danger_exact(MAC);
        assert_eq!(node.bits(u64::MAX), 0x9236_1f00_2671);
        assert_eq!(format!("{node:?}"), "UuidNode(92361f002671)");
        assert_eq!(format!("{:?}", UuidNode::RANDOM), "UuidNode(random)");
    }

    #[test]
    fn a_hashed_node_is_siphash_24_under_the_multicast_bit() {
        // The reference vectors' key, and their output for six bytes 0..5.
        let salt = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let node = UuidNode::hashed(&[0, 1, 2, 3, 4, 5], salt).bits(0);
        let expected = u64::from_le_bytes([0xce, 0xe3, 0xfe, 0x58, 0x6e, 0x46, 0xc9, 0xcb]);
        assert_eq!(node, expected >> 16 | MULTICAST);
        assert_ne!(
            UuidNode::hashed(&MAC, [0, 0]),
            UuidNode::hashed(&MAC, [0, 1])
        );
    }
}

//! The node of UUID versions 1 and 6, which tells one generator's keys from another's.
//!
//! A generator is given a [`UuidNode`], or uses random bits. If all nodes of a key type come from one source, the key
//! type can name it, `#[ordid(scheme = uuid_v6(node = Random))]`. Its scheme is then [`WithNode`], and all its
//! generators use this source.
//!
//! | source | the node |
//! |---|---|
//! | [`Random`] | 47 random bits under the multicast bit |
//! | [`Fixed`] | 47 bits that you choose, under the multicast bit: no network card's address |
//! | [`DangerExact`] | 48 bits that you choose, such as a network card's address |
//! | a [`NodeSource`] of your own | what is known only when the program runs, such as a hash of the account |

use core::{fmt, hash::Hasher as _};

use siphasher::sip::SipHasher24;

use super::{TimeOrdered, gregorian::to_number};
#[cfg(all(feature = "std", not(loom)))]
use crate::{
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{OrderedGenerator, Policy, ProcessWide, per_type::per_type},
};
use crate::{
    clock::Timestamp,
    error::Error,
    generator::{DefaultNode, Slot, Slotted},
    key::{RisesAsBytes, RisesAsUuidToBin, RisesInMariaDbUuid, RisesInSqlServer},
};

/// The bit that no network card's address has: RFC 9562 section 6.10 asks it of every node that is
/// not one. It is the lowest of the first octet.
const MULTICAST: u64 = 1 << 40;

/// The node of a generator: random bits unless another one is given.
///
/// | node | tells of the machine | two generators at the same tick |
/// |---|---|---|
/// | [`RANDOM`](Self::RANDOM) | nothing | differ by 47 + 14 random bits |
/// | [`hashed`](Self::hashed) | who knows the salt can look for the name | differ by node, if it is theirs alone; otherwise by 14 random bits of clock sequence |
/// | [`danger_exact`](Self::danger_exact) | the address itself | as above |
///
/// With every kind of node, the clock sequence is 14 random bits of the generator. They, and a random node, are drawn
/// anew in the child of a fork and when the generator follows a clock back. So if the node is fixed, the new clock
/// sequence is the old one with a chance of 1 in 16,384, and keys may then repeat those of the same ticks. A policy
/// that never follows a clock back avoids this.
///
/// # Keys for a given time
///
/// [`Generator::generate_at`](crate::generator::Generator::generate_at) draws node and clock sequence anew for each
/// key, because all keys for one millisecond have its first tick. With a fixed node, only 14 bits would differ (among
/// 20 such keys, two would be equal with a chance of one in a hundred), so it returns an error. Backfill with a
/// random node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct UuidNode(Option<u64>);

impl UuidNode {
    /// 47 random bits under the multicast bit, which the generator draws. This is the default.
    pub const RANDOM: Self = Self(None);

    /// Makes a node from a keyed hash of a name: 47 bits of SipHash-2-4 with the salt as its key, under the multicast
    /// bit. The name identifies the machine or the account, for example by its MAC address or by the account's id.
    ///
    /// The name is hidden only from those who do not know the salt. There are only 2^48 MAC addresses, far fewer of
    /// known makers, and even fewer accounts, so whoever knows the salt can try them all. With a secret salt the name
    /// is as safe as SipHash is a good PRF. Different names can have the same 47 bits: among a million names, two do
    /// with a chance of one in 280.
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

    /// Makes a node from 48 bits, first octet first, such as the machine's MAC address.
    ///
    /// Every key then tells the world which machine made it, and with that the maker of its network card; RFC 9562
    /// section 8 advises against it. No two generators may have the same node at the same time, or only 14 bits of
    /// clock sequence tell their keys apart. Containers and cloned machines often share an address.
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

/// The default is random, so that there can be a generator for the process.
impl DefaultNode for UuidNode {
    const DEFAULT: Self = Self::RANDOM;
}

/// The source of all nodes of a key type.
///
/// # Example: an account, known when the program runs
///
/// ```
/// use std::sync::LazyLock;
///
/// use ordid_core::{
///     generator::DefaultNode, key::StaticScheme,
///     scheme::{Layout, UuidNode, UuidV6, node::{NodeSource, WithNode}},
/// };
///
/// #[derive(Debug, Clone, Copy)]
/// struct Account;
///
/// impl DefaultNode for Account {
///     const DEFAULT: Self = Self;
/// }
///
/// impl NodeSource for Account {
///     fn node(self) -> UuidNode {
///         // Asked for each key.
///         static NODE: LazyLock<UuidNode> =
///             LazyLock::new(|| UuidNode::hashed(b"account 7", [17, 4])); // a salt of your own
///         *NODE
///     }
/// }
///
/// let [first, second] = [(); 2].map(|()| WithNode::<UuidV6, Account>::generate().into_raw());
/// assert!(first < second);
/// assert_eq!(UuidV6::unpack(&first)?.node, UuidV6::unpack(&second)?.node);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of nodes",
    label = "not a source of nodes",
    note = "take one of `ordid::scheme::node`, `Random`, `Fixed<0x0100_0000_0007>` or \
            `DangerExact<...>`, or implement `NodeSource` for `{Self}`"
)]
pub trait NodeSource: DefaultNode + Copy + fmt::Debug + Send + Sync + 'static {
    /// Why the source cannot be one: what does not compile then.
    #[doc(hidden)]
    const MISTAKE: Option<&'static str> = None;

    /// Returns the node. It must always be the same one, because it is asked for each key.
    fn node(self) -> UuidNode;
}

/// Each generator is given its node.
impl NodeSource for UuidNode {
    #[inline]
    fn node(self) -> UuidNode {
        self
    }
}

/// Does not compile where there is a mistake.
pub(crate) const fn refuse(mistake: Option<&'static str>) {
    if let Some(mistake) = mistake {
        panic!("{}", mistake);
    }
}

macro_rules! sources {
    ($($(#[$attribute:meta])* $name:ident $(<const $node:ident: u64>)?, $mistake:expr => $value:expr;)+) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name $(<const $node: u64>)?;

            impl $(<const $node: u64>)? DefaultNode for $name $(<$node>)? {
                const DEFAULT: Self = Self;
            }

            impl $(<const $node: u64>)? NodeSource for $name $(<$node>)? {
                const MISTAKE: Option<&'static str> = $mistake;

                #[inline]
                fn node(self) -> UuidNode {
                    const { refuse(Self::MISTAKE) };
                    $value
                }
            }
        )+
    };
}

sources! {
    /// [`UuidNode::RANDOM`] for all generators.
    Random, None => UuidNode::RANDOM;

    /// These 48 bits, first octet first, for example `Fixed<0x0100_0000_0007>`. The multicast bit, the lowest of the
    /// first octet, has to be set, so that they are not a network card's address. Without it the type does not
    /// compile.
    ///
    /// **All processes of the program have this node**, so only 14 random bits of clock sequence tell their keys of
    /// the same tick apart.
    Fixed<const NODE: u64>, if NODE >> 48 == 0 && NODE & MULTICAST != 0 {
        None
    } else {
        Some(
            "a fixed node has 48 bits, and the multicast bit 0x0100_0000_0000 among them, which no \
             network card's address has: set it, or write `DangerExact<...>` for an address"
        )
    } => UuidNode(Some(NODE));

    /// These 48 bits, first octet first; see [`UuidNode::danger_exact`] about addresses.
    ///
    /// **All processes of the program have this node**, so only 14 random bits of clock sequence tell their keys of
    /// the same tick apart.
    DangerExact<const NODE: u64>, if NODE >> 48 == 0 {
        None
    } else {
        Some("a node has 48 bits: `DangerExact<0x9236_1f00_2671>`")
    } => UuidNode(Some(NODE));
}

settled! {
    /// The scheme `S` with nodes from the [`NodeSource`] `P`. `S` is one of [`UuidV1`](super::UuidV1),
    /// [`UuidV6`](super::UuidV6), [`UuidV1Rearranged`](super::UuidV1Rearranged) and
    /// [`UuidCreateSequential`](super::UuidCreateSequential).
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::{
    ///     key::StaticScheme, scheme::{Layout, UuidV6, node::{Fixed, WithNode}},
    /// };
    ///
    /// let key = WithNode::<UuidV6, Fixed<0x0100_0000_0007>>::generate().into_raw();
    /// assert_eq!(UuidV6::unpack(&key)?.node, [1, 0, 0, 0, 0, 7]);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    WithNode
}

impl<S: RisesAsBytes, P: 'static> RisesAsBytes for WithNode<S, P> {}
impl<S: RisesAsUuidToBin, P: 'static> RisesAsUuidToBin for WithNode<S, P> {}
impl<S: RisesInMariaDbUuid, P: 'static> RisesInMariaDbUuid for WithNode<S, P> {}
impl<S: RisesInSqlServer, P: 'static> RisesInSqlServer for WithNode<S, P> {}

impl<S: TimeOrdered, P: 'static> TimeOrdered for WithNode<S, P> {
    fn bounds_at(timestamp: Timestamp) -> Result<(S::Raw, S::Raw), Error> {
        S::bounds_at(timestamp)
    }
}

impl<S: Slotted<Node = UuidNode>, P: NodeSource> Slotted for WithNode<S, P> {
    type Node = P;

    slot_bits_of!(S);

    fn is_drawn(node: P) -> bool {
        S::is_drawn(node.node())
    }

    #[inline]
    fn encode(slot: Slot<P>) -> S::Raw {
        S::encode(Slot {
            time: slot.time,
            count: slot.count,
            identity: slot.identity,
            random: slot.random,
            node: slot.node.node(),
        })
    }
}

#[cfg(all(feature = "std", not(loom)))]
impl<S: Slotted<Node = UuidNode>, P: NodeSource> ProcessWide for WithNode<S, P> {
    fn process_wide() -> &'static OrderedGenerator<Self, SystemClock, ThreadEntropy> {
        per_type(|| OrderedGenerator::of_process(SystemClock, ThreadEntropy, Policy::DEFAULT))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{
        key::{Scheme as _, StaticScheme},
        scheme::{
            Layout, UuidCreateSequential, UuidV1, UuidV1Rearranged, UuidV6, testing::declared,
        },
    };

    const NODE: u64 = 0x0100_0000_0007;
    const ADDRESS: u64 = 0x9236_1f00_2671;

    #[test]
    fn keys_of_the_process_have_the_node_of_their_source() {
        fn nodes<S>() -> [u64; 2]
        where
            S: StaticScheme<Raw = uuid::Uuid> + Layout,
        {
            let keys = [(); 2].map(|()| S::generate().into_raw());
            assert!(S::cmp(&keys[0], &keys[1]).is_lt());
            keys.map(|key| S::inspect(&key).unwrap().node.unwrap())
        }
        assert_eq!(nodes::<WithNode<UuidV1, Fixed<NODE>>>(), [NODE; 2]);
        assert_eq!(nodes::<WithNode<UuidV6, Fixed<NODE>>>(), [NODE; 2]);
        assert_eq!(
            nodes::<WithNode<UuidV1Rearranged, DangerExact<ADDRESS>>>(),
            [ADDRESS; 2]
        );
        assert_eq!(
            nodes::<WithNode<UuidCreateSequential, DangerExact<ADDRESS>>>(),
            [ADDRESS; 2]
        );
        let [first, second] = nodes::<WithNode<UuidV6, Random>>();
        assert!(first == second && first & MULTICAST != 0 && first != NODE);
        assert_eq!(
            nodes::<WithNode<UuidV6, UuidNode>>()[0] & MULTICAST,
            MULTICAST
        );
    }

    #[test]
    fn a_fixed_node_leaves_the_scheme_as_it_is() {
        type Fixed6 = WithNode<UuidV6, Fixed<NODE>>;
        assert_eq!(declared::<Fixed6>(), declared::<UuidV6>());
        let keys: Vec<_> = (0..1_000).map(|_| Fixed6::generate().into_raw()).collect();
        assert!(keys.is_sorted() && keys.iter().all(UuidV6::check));
        // All keys for a given time would share the node: refused, as of a node that is given.
        let time = Timestamp::from_unix_millis(1_645_557_742_000).unwrap();
        assert!(Fixed6::generate_at(time).unwrap_err().is_unsupported());
        let random = WithNode::<UuidV6, Random>::generate_at(time).unwrap();
        assert_eq!(UuidV6::timestamp(&random.into_raw()), Some(time));
    }

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

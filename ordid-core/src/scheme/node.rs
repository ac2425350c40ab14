//! The node of UUID versions 1 and 6: what tells one generator's keys from another's.

use core::{fmt, hash::Hasher as _};

use siphasher::sip::SipHasher24;

use super::gregorian::to_number;
use crate::generator::DefaultNode;

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
/// [`Generator::generate_at`](crate::generator::Generator::generate_at) draws node and clock sequence
/// anew for each key, since all keys for a millisecond get its first tick. Where the node is fixed,
/// that would leave 14 bits (of 20 such keys, two would be equal once in a hundred times), so it is
/// refused: backfill with a random node.
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

/// Random, so that there can be a generator for the process.
impl DefaultNode for UuidNode {
    const DEFAULT: Self = Self::RANDOM;
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

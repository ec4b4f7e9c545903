//! Comparison of programs: each rank announces every exchange to all others, and compares the announcements with its own exchanges.

use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::Range;

use cuprum_core::DType;
use rustc_hash::FxHasher;

use crate::engines::Transfer;

/// Maximum number of rounds (descriptions of exchanges) that are stored for each rank. A difference in an older exchange is found in a
/// later exchange, because digests cover all earlier exchanges.
const MAX_STORED_ROUNDS: usize = 256;

/// The description of one exchange that each rank announces to all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExchangeRound {
    /// Number of the exchange, counted from 1.
    pub number: u64,
    /// Hash of the descriptions of this exchange and all earlier ones.
    pub digest: u64,
    /// Number of transfers.
    pub transfers: u32,
    /// Index of the dtype in [`DType::ALL`].
    pub dtype: u8,
}

/// Size of an encoded round in bytes.
pub(crate) const ENCODED_ROUND_BYTES: usize = 21;

impl ExchangeRound {
    /// Encodes an exchange announcement as bytes.
    pub fn to_bytes(self) -> [u8; ENCODED_ROUND_BYTES] {
        let mut bytes = [0; ENCODED_ROUND_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.digest.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.transfers.to_le_bytes());
        bytes[20] = self.dtype;
        bytes
    }

    /// Decodes an exchange announcement from its bytes.
    pub fn from_bytes(bytes: &[u8; ENCODED_ROUND_BYTES]) -> ExchangeRound {
        let word = |range: Range<usize>| bytes[range].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        ExchangeRound { number: word(0..8), digest: word(8..16), transfers: word(16..20) as u32, dtype: bytes[20] }
    }

    /// Formats the number and dtype of the pieces for error messages, such as `2 pieces of float32`.
    fn describe_contents(&self) -> String {
        let dtype = DType::ALL.get(usize::from(self.dtype)).map_or("an unknown dtype", |dtype| dtype.name());
        format!("{} pieces of {dtype}", self.transfers)
    }
}

/// The latest exchanges of this rank, and announcements by other ranks of exchanges that this rank has not begun.
pub(crate) struct ExchangeLedger {
    last: ExchangeRound,
    own: VecDeque<ExchangeRound>,
    /// Announcements by rank.
    ahead: Vec<VecDeque<ExchangeRound>>,
}

impl ExchangeLedger {
    /// Returns a ledger without exchanges for a mesh of `size` ranks.
    pub fn new(size: usize) -> ExchangeLedger {
        let last = ExchangeRound { number: 0, digest: 0, transfers: 0, dtype: 0 };
        ExchangeLedger { last, own: VecDeque::new(), ahead: vec![VecDeque::new(); size] }
    }

    /// Begins an exchange of this rank, and compares it with the announcements of other ranks. Returns the description of the exchange.
    /// Also returns the first rank whose announcement differs, with an error message.
    pub fn begin_exchange(&mut self, dtype: DType, transfers: &[Transfer]) -> (ExchangeRound, Option<(usize, String)>) {
        let mut hash = FxHasher::default();
        let dtype = DType::ALL.iter().position(|d| *d == dtype).unwrap_or(usize::from(u8::MAX)) as u8;
        hash.write_u64(self.last.digest);
        hash.write_u8(dtype);
        for transfer in transfers {
            [transfer.from, transfer.to, transfer.shape.len()].iter().for_each(|word| hash.write_usize(*word));
            transfer.shape.iter().for_each(|n| hash.write_usize(*n));
        }
        let count = u32::try_from(transfers.len()).unwrap_or(u32::MAX);
        let round = ExchangeRound { number: self.last.number + 1, digest: hash.finish(), transfers: count, dtype };
        self.last = round;
        push_round(&mut self.own, round);
        let mut fault = None;
        for (rank, ahead) in self.ahead.iter_mut().enumerate() {
            while ahead.front().is_some_and(|other| other.number <= round.number) {
                let message = ahead.pop_front().and_then(|other| describe_difference(&round, &other));
                fault = fault.or_else(|| message.map(|message| (rank, message)));
            }
        }
        (round, fault)
    }

    /// Compares an announcement by `rank` with this rank's exchange of the same number. If this rank has not begun that exchange, stores
    /// the announcement for a later comparison. Returns a message if announcement and exchange differ.
    pub fn compare_or_store_announcement(&mut self, rank: usize, round: ExchangeRound) -> Option<String> {
        if round.number > self.last.number {
            push_round(self.ahead.get_mut(rank)?, round);
            return None;
        }
        self.own.iter().find(|own| own.number == round.number).and_then(|own| describe_difference(own, &round))
    }
}

fn push_round(rounds: &mut VecDeque<ExchangeRound>, round: ExchangeRound) {
    if rounds.len() == MAX_STORED_ROUNDS {
        rounds.pop_front();
    }
    rounds.push_back(round);
}

/// Returns an error message if `own` and `other` have the same number but differ, or `None` otherwise.
pub(crate) fn describe_difference(own: &ExchangeRound, other: &ExchangeRound) -> Option<String> {
    (own.number == other.number && own != other).then(|| {
        let (own_text, other_text) = (own.describe_contents(), other.describe_contents());
        let contents = if own_text == other_text { "other pieces than".into() } else { format!("{other_text} instead of") };
        format!("runs another program: its exchange {} moves {contents} {own_text}", own.number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(from: usize, to: usize, n: usize) -> Transfer {
        Transfer { from, to, shape: [n].into_iter().collect() }
    }

    #[test]
    fn announcements_are_read_as_written() {
        let round = ExchangeRound { number: 1 << 40, digest: u64::MAX - 7, transfers: 0x1234_5678, dtype: 9 };
        assert_eq!(ExchangeRound::from_bytes(&round.to_bytes()), round);
    }

    #[test]
    fn other_programs_are_found_before_and_after_this_rank_reaches_them() {
        let pieces = [transfer(0, 1, 5), transfer(1, 0, 5)];
        let [mut own, mut same, mut other] = [(); 3].map(|()| ExchangeLedger::new(3));
        for n in 0..2 * MAX_STORED_ROUNDS {
            let (round, fault) = own.begin_exchange(DType::F32, &pieces);
            assert_eq!((round.number, fault), (n as u64 + 1, None));
            assert_eq!(own.compare_or_store_announcement(1, same.begin_exchange(DType::F32, &pieces).0), None);
        }
        // Another shape at the first exchange changes all later digests.
        let (first, _) = other.begin_exchange(DType::F32, &[transfer(0, 1, 5), transfer(1, 0, 6)]);
        assert_eq!(own.compare_or_store_announcement(2, first), None, "the exchange is no longer kept");
        (1..2 * MAX_STORED_ROUNDS - 1).for_each(|_| drop(other.begin_exchange(DType::F32, &pieces)));
        let last = other.begin_exchange(DType::F32, &pieces).0;
        let message = own.compare_or_store_announcement(2, last).unwrap();
        assert_eq!(message, "runs another program: its exchange 512 moves other pieces than 2 pieces of float32");
        // A rank that is ahead is compared when this rank reaches the exchange.
        let ahead = same.begin_exchange(DType::F64, &pieces).0;
        assert_eq!(own.compare_or_store_announcement(1, ahead), None);
        let (rank, message) = own.begin_exchange(DType::F32, &pieces[..1]).1.unwrap();
        assert_eq!(rank, 1);
        assert_eq!(message, "runs another program: its exchange 513 moves 2 pieces of float64 instead of 1 pieces of float32");
    }
}

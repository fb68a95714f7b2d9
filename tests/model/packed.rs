//! A state in a few words: for fingerprints, which take most of the time otherwise.
//!
//! Never: two values with the same bits; `reach::the_bookkeeping_hides_no_state` holds it to that.

/// What fits into a word.
pub trait Packed {
    fn pack(&self) -> u64;
}

impl Packed for u8 {
    fn pack(&self) -> u64 {
        u64::from(*self)
    }
}

impl Packed for bool {
    fn pack(&self) -> u64 {
        u64::from(*self)
    }
}

impl<const LENGTH: usize> Packed for [bool; LENGTH] {
    fn pack(&self) -> u64 {
        self.iter().fold(0, |word, bit| word << 1 | bit.pack())
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self) -> u64 {
        self.as_ref().map_or(0, |value| value.pack() << 1 | 1)
    }
}

/// `word!(value: field bits, …)`: so many bits for each field.
macro_rules! word {
    ($value:expr, $($field:ident $bits:literal),+) => {{
        const { assert!(0 $(+ $bits)+ < 65) };
        let word = 0;
        $(
            let field = $crate::packed::Packed::pack(&$value.$field);
            debug_assert!(field < 1 << $bits, "{}: {field}", stringify!($field));
            let word = word << $bits | field;
        )+
        word
    }};
}
pub(crate) use word;

/// `hashed!(Type: field bits, … ; field bits, …)`: each group is a word of its hash.
macro_rules! hashed {
    ($type:ty: $($($field:ident $bits:literal),+);+) => {
        impl std::hash::Hash for $type {
            #[inline]
            fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
                $(hasher.write_u64($crate::packed::word!(self, $($field $bits),+));)+
            }
        }
    };
}
pub(crate) use hashed;

/// `packed!(Type: field bits, …)`: what fits into one word, also as a part of another.
macro_rules! packed {
    ($type:ty: $($field:ident $bits:literal),+) => {
        impl $crate::packed::Packed for $type {
            #[inline]
            fn pack(&self) -> u64 {
                $crate::packed::word!(self, $($field $bits),+)
            }
        }

        $crate::packed::hashed!($type: $($field $bits),+);
    };
}
pub(crate) use packed;

//! A reader of the bytes that choose the structure of an input.

/// The bytes of an input that are not read yet. Reading past the end gives zeros.
pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(data: &'a [u8]) -> Bytes<'a> {
        Bytes(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte.
    pub fn next(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// Returns the next byte modulo `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.next()) % n
    }

    /// Returns the next `n` bytes, fewer at the end.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Returns one of `values`.
    pub fn choose<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// Returns `usual` for seven of eight bytes, else one of `values`.
    pub fn rarely<T: Copy>(&mut self, usual: T, values: &[T]) -> T {
        match usize::from(self.next()) {
            byte @ 224.. => values[(byte - 224) % values.len()],
            _ => usual,
        }
    }

    /// Returns a number near zero, or near the limits of `isize`.
    pub fn number(&mut self) -> isize {
        match self.next() {
            byte @ 0..=200 => byte as isize % 11 - 5,
            byte @ 201..=220 => isize::MAX - (byte as isize - 201),
            byte @ 221..=240 => isize::MIN + (byte as isize - 221),
            byte => 1 << (byte % 63),
        }
    }

    /// Returns a shape of at most four axes and 256 elements.
    pub fn shape(&mut self) -> Vec<usize> {
        let ndim = self.below(5);
        (0..ndim).map(|_| self.below(5)).collect()
    }
}

//! Fixed work division: the same blocks whatever the number of threads.

/// A pointer that tasks writing disjoint ranges may share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendPtr<T>(*mut T);

// SAFETY: whoever dereferences it promises that ranges written by different tasks are disjoint.
unsafe impl<T> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// The start of `slice`.
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// The address of element `index`.
    pub(crate) fn at(self, index: usize) -> *mut T {
        self.0.wrapping_add(index)
    }

    /// Elements `start..start + len`.
    ///
    /// # Safety
    /// They must lie within the slice this was made from, which must be alive, and no other task may touch them.
    pub(crate) unsafe fn slice<'a>(self, start: usize, len: usize) -> &'a mut [T] {
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// Splits `0..len` into as few nearly equal blocks of at most `largest` as possible: `(start, length)`.
pub(crate) fn blocks(len: usize, largest: usize) -> impl ExactSizeIterator<Item = (usize, usize)> + Clone {
    let count = len.div_ceil(largest.max(1));
    (0..count).map(move |block| {
        let start = block * len / count;
        (start, (block + 1) * len / count - start)
    })
}

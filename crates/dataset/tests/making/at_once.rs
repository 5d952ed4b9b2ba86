//! Processes that begin one dataset at the same moment.

use std::sync::Barrier;

use dataset::card::Format;
use dataset::work::Shard;

use super::make;

#[test]
fn shards_may_begin_at_the_same_moment() {
    const AT_ONCE: usize = 6;
    for _ in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let (root, begin) = (folder.path(), &Barrier::new(AT_ONCE));
        std::thread::scope(|scope| {
            for index in 0..AT_ONCE {
                scope.spawn(move || {
                    begin.wait();
                    make(root, Format::Files, 1, Shard { index, count: AT_ONCE }, 1).unwrap();
                });
            }
        });
    }
}

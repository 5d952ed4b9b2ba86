//! `dataset`: see the layers in docs/architecture.md.

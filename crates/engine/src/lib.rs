//! `engine`: see the layers in docs/architecture.md.

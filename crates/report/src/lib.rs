//! `report`: see the layers in docs/architecture.md.

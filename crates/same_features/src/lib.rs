//! Nothing: its dependencies are all there is, see its manifest.

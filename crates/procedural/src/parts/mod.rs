//! The kit of parts the classes are made from. Sizes are full extents, angles are in degrees, and a part is
//! centred on the origin unless it follows a given curve.

mod boxes;
mod curves;
mod loft;
mod prism;
mod round;
mod sheet;

pub use boxes::{block, cuboid, frame, rounded, tapered};
pub use curves::{arc, bezier, curve, curve2, line, v};
pub use loft::{hull, loft, oval, ring, stations, strip, sweep, sweep_closed, tube, tube_tapered, wire};
pub use prism::{polygon, prism, prism_x, prism_y, rounded_rectangle};
pub use round::{cone, cylinder, ellipsoid, lathe, lathe_arc, rod, superellipsoid, wheel_profile};
pub use sheet::{cushion, sheet};

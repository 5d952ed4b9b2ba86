//! Structs that host and device share, defined once: [`shared!`] declares the Rust struct and describes it, and
//! [`declarations`] writes the same struct in CUDA C++, with assertions on its size and offsets that the device's
//! compiler checks.

use std::fmt::Write;

/// A struct, as C sees it.
pub(crate) struct Layout {
    pub name: &'static str,
    pub bytes: usize,
    pub fields: &'static [Field],
}

/// A field of it.
pub(crate) struct Field {
    pub name: &'static str,
    pub offset: usize,
    pub bytes: usize,
    pub c_type: &'static str,
    /// Elements of an array.
    pub count: Option<usize>,
}

/// A type of a field, by its name in C.
pub(crate) trait CType {
    const NAME: &'static str;
    /// Elements, where it is an array.
    const COUNT: Option<usize> = None;
}

impl CType for f32 {
    const NAME: &'static str = "float";
}
impl CType for i32 {
    const NAME: &'static str = "int";
}
impl CType for u32 {
    const NAME: &'static str = "unsigned int";
}
impl CType for u64 {
    const NAME: &'static str = "unsigned long long";
}
/// Arrays of arrays are one array in C.
impl<T: CType, const N: usize> CType for [T; N] {
    const NAME: &'static str = T::NAME;
    const COUNT: Option<usize> = Some(match T::COUNT {
        Some(count) => N * count,
        None => N,
    });
}

/// A struct of [`shared!`].
pub(crate) trait Shared {
    const LAYOUT: Layout;
}

/// Declares `struct Name as "NameInC"` whose fields are `name: type`, or `name: type as "type in C"` for addresses and
/// for the device's vectors.
macro_rules! shared {
    ($($(#[$meta:meta])* $vis:vis struct $name:ident as $c_name:literal {
        $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty $(as $c_type:literal)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl $crate::shared::Shared for $name {
            const LAYOUT: $crate::shared::Layout = $crate::shared::Layout {
                name: $c_name,
                bytes: size_of::<Self>(),
                fields: &[$($crate::shared::Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!(Self, $field),
                    bytes: size_of::<$type>(),
                    ..shared!(@c $type $(as $c_type)?)
                },)*],
            };
        }
    )*};
    (@c $type:ty as $c_type:literal) => {
        $crate::shared::Field { name: "", offset: 0, bytes: 0, c_type: $c_type, count: None }
    };
    (@c $type:ty) => {
        $crate::shared::Field {
            name: "",
            offset: 0,
            bytes: 0,
            c_type: <$type as $crate::shared::CType>::NAME,
            count: <$type as $crate::shared::CType>::COUNT,
        }
    };
}
pub(crate) use shared;

/// The structs in CUDA C++, in an order in which they may point at each other.
pub(crate) fn declarations(structs: &[Layout]) -> String {
    // NVRTC has no offsetof, and __builtin_offsetof only since CUDA 13.1; this is what they are made of.
    let mut text =
        "#define OFFSET(type, field) ((unsigned long long)__INTADDR__(&((type*)0)->field))\n".to_owned();
    for layout in structs {
        let _ = writeln!(text, "struct {};", layout.name);
    }
    for Layout { name, bytes, fields } in structs {
        let _ = writeln!(text, "struct {name} {{");
        for field in *fields {
            let count = field.count.map(|count| format!("[{count}]")).unwrap_or_default();
            let _ = writeln!(text, "    {} {}{count};", field.c_type, field.name);
        }
        let _ = writeln!(text, "}};\nstatic_assert(sizeof({name}) == {bytes}, \"size of {name}\");");
        for Field { name: field, offset, bytes, .. } in *fields {
            let _ = writeln!(
                text,
                "static_assert(OFFSET({name}, {field}) == {offset} && sizeof({name}::{field}) == {bytes}, \
                 \"place of {name}::{field}\");"
            );
        }
    }
    text
}

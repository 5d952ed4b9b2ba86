//! Words among which a setting or an option chooses: enums with names, parsed once, where they come in.

/// A word that is not among those expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {name:?}, but must be one of {}{}", known.join(", "), crate::suggest::hint(name, known.iter().copied()))]
pub struct UnknownName {
    /// The setting.
    pub what: &'static str,
    /// The word.
    pub name: String,
    /// The words that exist.
    pub known: Vec<&'static str>,
}

/// An enum whose variants have names on the command line and in files. Further names after a `|` are read, never
/// written.
#[macro_export]
macro_rules! names {
    ($(#[$meta:meta])* $type:ident, $what:literal {
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal $(| $other:literal)*),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$variant_meta])* $variant),+
        }

        impl $type {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in files and on the command line.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> std::result::Result<Self, $crate::UnknownName> {
                match name {
                    $($name $(| $other)* => Ok(Self::$variant),)+
                    _ => Err($crate::UnknownName {
                        what: $what,
                        name: name.to_owned(),
                        known: vec![$($name),+],
                    }),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.name())
            }
        }

        $crate::serde_by_name!($type);
    };
}

/// Writes a type as its name and reads it by [`FromStr`](std::str::FromStr).
#[macro_export]
macro_rules! serde_by_name {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> std::result::Result<Self, D::Error> {
                let name = <String as serde::Deserialize>::deserialize(deserializer)?;
                name.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

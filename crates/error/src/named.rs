//! Enums whose values have public names.

/// Declares an enum, and its values in order as `ALL`, their `name` and `from_name`.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* pub enum $named:ident { $($(#[$doc:meta])* $value:ident = $name:expr,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $named {
            $($(#[$doc])* $value,)*
        }

        impl $named {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$value,)*];

            /// Returns the name of the value.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// Returns the value of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

//! The operators: their spelling, and the NumPy function each one is.
//!
//! The evaluator looks operators up in the op table by [`BinaryOp::function`] and its kin, so that an operator does what
//! the function of that name does. The exception is NumPy's own: `**` with a number as exponent is [`cuprum_core::NdArray::power`].

/// Declares an operator enum as rows of (variant, spelling, NumPy name), with both directions of lookup.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $symbol:literal $function:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $symbol, "`, NumPy's `", $function, "`.")] $variant,)*
        }

        impl $name {
            /// As written in the source.
            pub const fn symbol(self) -> &'static str {
                match self { $($name::$variant => $symbol,)* }
            }

            /// The name of the NumPy function that does the same.
            pub const fn function(self) -> &'static str {
                match self { $($name::$variant => $function,)* }
            }

            pub(crate) fn from_symbol(symbol: &str) -> Option<$name> {
                match symbol { $($symbol => Some($name::$variant),)* _ => None }
            }
        }
    };
}

operators! {
    /// An operator between two values.
    ///
    /// ```
    /// use cuprum_eval::ops::BinaryOp;
    /// assert_eq!(BinaryOp::FloorDiv.symbol(), "//");
    /// assert_eq!(BinaryOp::FloorDiv.function(), "floor_divide");
    /// ```
    BinaryOp {
        BitOr "|" "bitwise_or",
        BitXor "^" "bitwise_xor",
        BitAnd "&" "bitwise_and",
        Shl "<<" "left_shift",
        Shr ">>" "right_shift",
        Add "+" "add",
        Sub "-" "subtract",
        Mul "*" "multiply",
        Div "/" "divide",
        FloorDiv "//" "floor_divide",
        Rem "%" "remainder",
        MatMul "@" "matmul",
        Pow "**" "power",
    }
}

operators! {
    /// An operator before one value. `not` needs a truth value, which an array of several elements has not.
    UnaryOp {
        Pos "+" "positive",
        Neg "-" "negative",
        Invert "~" "invert",
        Not "not" "logical_not",
    }
}

operators! {
    /// A comparison.
    CompareOp {
        Lt "<" "less",
        Le "<=" "less_equal",
        Gt ">" "greater",
        Ge ">=" "greater_equal",
        Eq "==" "equal",
        Ne "!=" "not_equal",
    }
}

operators! {
    /// `and`, `or`: Python's, which need truth values and give back an operand; the function is what to
    /// use on arrays instead.
    LogicalOp {
        And "and" "logical_and",
        Or "or" "logical_or",
    }
}

/// How tightly the operators bind, from Python's reference, section "Operator precedence".
pub(crate) mod level {
    pub(crate) const OR: u8 = 1;
    pub(crate) const AND: u8 = 2;
    pub(crate) const NOT: u8 = 3;
    pub(crate) const COMPARE: u8 = 4;
    /// The operand of a sign: binds tighter than `*`, looser than `**`.
    pub(crate) const UNARY: u8 = 11;
    pub(crate) const POW: u8 = 12;
}

impl BinaryOp {
    /// The level at which the operator binds; all but `**` group from the left.
    pub(crate) const fn level(self) -> u8 {
        match self {
            BinaryOp::BitOr => 5,
            BinaryOp::BitXor => 6,
            BinaryOp::BitAnd => 7,
            BinaryOp::Shl | BinaryOp::Shr => 8,
            BinaryOp::Add | BinaryOp::Sub => 9,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::MatMul => 10,
            BinaryOp::Pow => level::POW,
        }
    }
}

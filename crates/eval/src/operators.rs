//! Operators: their spelling and the NumPy function that each one calls.
//!
//! The evaluator calls the declared function that [`BinaryOp::function`] names, so an operator and its function agree. As in NumPy, `**`
//! with a number as exponent is the exception: `**` then calls [`cuprum_core::NdArray::power`].

/// Declares an operator enum from rows of (variant, spelling, NumPy name), with the functions `symbol`, `function` and `from_symbol`.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $symbol:literal $function:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = concat!("`", $symbol, "`, NumPy's `", $function, "`.")] $variant,)*
        }

        impl $name {
            /// Returns the spelling of the operator in the source.
            pub const fn symbol(self) -> &'static str {
                match self { $($name::$variant => $symbol,)* }
            }

            /// Returns the name of the NumPy function that computes the operator elementwise.
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
    /// A binary operator.
    ///
    /// # Examples
    ///
    /// ```
    /// use cuprum_eval::operators::BinaryOp;
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
    /// A unary operator. `not` needs a truth value, so an array of several elements is an error.
    UnaryOp {
        Pos "+" "positive",
        Neg "-" "negative",
        Invert "~" "invert",
        Not "not" "logical_not",
    }
}

operators! {
    /// A comparison operator.
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
    /// Python's `and` and `or`, which test truth values and return one of the operands. [`function`](Self::function) names the
    /// elementwise replacement for arrays.
    LogicalOp {
        And "and" "logical_and",
        Or "or" "logical_or",
    }
}

/// Precedence levels, from Python's language reference, section "Operator precedence". A higher level binds tighter.
pub(crate) mod precedence {
    pub(crate) const OR_PRECEDENCE: u8 = 1;
    pub(crate) const AND_PRECEDENCE: u8 = 2;
    pub(crate) const NOT_PRECEDENCE: u8 = 3;
    pub(crate) const COMPARE_PRECEDENCE: u8 = 4;
    /// Signs and `~`, which bind tighter than `*` and looser than `**`.
    pub(crate) const UNARY_PRECEDENCE: u8 = 11;
    pub(crate) const POWER_PRECEDENCE: u8 = 12;
}

impl BinaryOp {
    /// Returns the precedence level of the operator. All operators except `**` are left-associative.
    pub(crate) const fn precedence_level(self) -> u8 {
        match self {
            BinaryOp::BitOr => 5,
            BinaryOp::BitXor => 6,
            BinaryOp::BitAnd => 7,
            BinaryOp::Shl | BinaryOp::Shr => 8,
            BinaryOp::Add | BinaryOp::Sub => 9,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem | BinaryOp::MatMul => 10,
            BinaryOp::Pow => precedence::POWER_PRECEDENCE,
        }
    }
}

//! CUDA C++ code generation for `kernel!`: writes a function template that uses the prelude of the CUDA backend.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::tree::{Binary, Block, Expr, ExprKind, Function, Kind, Statement};
use crate::types::{Prim, Slot, Type};

/// Returns the name and the C++ source of `function`. The name contains a hash of the source, so that different kernels of the same name
/// can be in one program. `earlier` are the previous functions of the same `kernel!` block and their names.
pub fn write(function: &Function, earlier: &[(&Function, String)]) -> (String, String) {
    let mut writer = CudaWriter { function, earlier, out: String::new(), depth: 1, temporaries: 0, in_bounds: None };
    writer.block(&function.body);
    if let Some(value) = &function.body.value {
        let value = writer.expr(value);
        writer.push_line(&format!("return {value};"));
    }
    let body = writer.out;
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|p| {
            let (of, v) = (type_name(p.of), variable(function, p.variable));
            if p.kind == Kind::Whole { format!("const {of}* {v}, const i64 {v}_len") } else { format!("const {of} {v}") }
        })
        .collect();
    let signature = format!("({}) {{\n{body}}}\n", parameters.join(", "));
    let mut hasher = DefaultHasher::new();
    (type_name(function.result), &signature).hash(&mut hasher);
    let name = format!("own_{}_{:016x}", ascii_name(&function.name), hasher.finish());
    let text = format!("template <class T> __device__ inline {} {name}{signature}", type_name(function.result));
    (name, text)
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Generic => "T",
        Type::Prim(p) => p.name(),
    }
}

/// Returns the C++ name of variable number `number`. The number prevents clashes by shadowing and with C++ keywords.
fn variable(function: &Function, number: usize) -> String {
    format!("v{number}_{}", ascii_name(&function.variables[number].name))
}

/// Returns `name` with all characters other than ASCII letters and digits replaced by `_`.
fn ascii_name(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

struct CudaWriter<'f> {
    function: &'f Function,
    earlier: &'f [(&'f Function, String)],
    out: String,
    depth: usize,
    temporaries: usize,
    /// The variable of the innermost loop being written, if its [`AffineIndex`]es are known to be in bounds.
    in_bounds: Option<usize>,
}

/// The index `factor * variable + offset` in a loop over `variable`, with non-negative coefficients. An index that is in bounds in the
/// first and last iteration is in bounds in all iterations, and its accesses need no clamping.
#[derive(Clone, Copy, PartialEq, Eq)]
struct AffineIndex {
    factor: i64,
    offset: i64,
}

impl AffineIndex {
    /// Returns `index` as an affine function of `variable`, if it cannot overflow 64 bits for any 32-bit value of `variable`.
    fn without_overflow(index: &Expr, variable: usize) -> Option<AffineIndex> {
        AffineIndex::of(index, variable).filter(|line| line.factor <= 1 << 16 && line.offset <= 1 << 31)
    }

    fn of(index: &Expr, variable: usize) -> Option<AffineIndex> {
        let constant = |offset| AffineIndex { factor: 0, offset };
        match &index.kind {
            ExprKind::Int(digits) => digits.parse::<u16>().ok().map(|n| constant(n.into())),
            ExprKind::Variable(v) => (*v == variable).then_some(AffineIndex { factor: 1, offset: 0 }),
            ExprKind::Binary(Binary::Add, a, b) => {
                let (a, b) = (AffineIndex::of(a, variable)?, AffineIndex::of(b, variable)?);
                Some(AffineIndex { factor: a.factor.checked_add(b.factor)?, offset: a.offset.checked_add(b.offset)? })
            }
            ExprKind::Binary(Binary::Mul, a, b) => {
                let (a, b) = (AffineIndex::of(a, variable)?, AffineIndex::of(b, variable)?);
                let (line, by) = if a.factor == 0 { (b, a.offset) } else { (a, (b.factor == 0).then_some(b.offset)?) };
                Some(AffineIndex { factor: line.factor.checked_mul(by)?, offset: line.offset.checked_mul(by)? })
            }
            _ => None,
        }
    }
}

impl CudaWriter<'_> {
    fn push_line(&mut self, line: &str) {
        let _ = writeln!(self.out, "{:1$}{line}", "", self.depth * 4); // writing to a String cannot fail
    }

    fn of(&self, slot: Slot) -> &'static str {
        type_name(self.function.of(slot))
    }

    fn variable(&self, number: usize) -> String {
        variable(self.function, number)
    }

    fn braced(&mut self, head: &str, block: &Block) {
        self.push_line(&format!("{head} {{"));
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    /// Writes the statements of `block`.
    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let(v, value) => {
                    let text = self.expr(value);
                    let declared = &self.function.variables[*v];
                    let (constant, of) = (if declared.mutable { "" } else { "const " }, self.of(declared.of));
                    self.push_line(&format!("[[maybe_unused]] {constant}{of} {} = {text};", self.variable(*v)));
                }
                Statement::Assign(v, value) => {
                    let text = self.expr(value);
                    self.push_line(&format!("{} = {text};", self.variable(*v)));
                }
                Statement::If(condition, then, otherwise) => {
                    let condition = self.expr(condition);
                    self.braced(&format!("if ({condition})"), then);
                    if !otherwise.statements.is_empty() {
                        self.braced("} else", otherwise);
                    }
                    self.push_line("}");
                }
                Statement::For { variable, from, to, body } => {
                    let (from, to, of) = (self.expr(from), self.expr(to), self.of(self.function.variables[*variable].of));
                    let v = self.variable(*variable);
                    self.push_line(&format!("const {of} begin_{v} = {from}, end_{v} = {to};"));
                    let head = format!("for ({of} {v} = begin_{v}; {v} < end_{v}; {v}++)");
                    let checks = self.bounds_checks(*variable, body);
                    if !checks.is_empty() {
                        self.push_line(&format!("if ({}) {{", checks.join(" && ")));
                        self.depth += 1;
                        self.in_bounds = Some(*variable);
                        self.braced(&head, body);
                        self.in_bounds = None;
                        self.push_line("}");
                        self.depth -= 1;
                        self.push_line("} else");
                    }
                    self.braced(&head, body);
                    self.push_line("}");
                }
                Statement::Break => self.push_line("break;"),
                Statement::Continue => self.push_line("continue;"),
                Statement::Return(value) => {
                    let value = self.expr(value);
                    self.push_line(&format!("return {value};"));
                }
            }
        }
    }

    /// Returns the C++ bounds check of each access by an [`AffineIndex`] in the innermost loop over `variable`.
    fn bounds_checks(&self, variable: usize, body: &Block) -> Vec<String> {
        let is_counted = matches!(self.function.of(self.function.variables[variable].of), Type::Prim(Prim::I32 | Prim::I64));
        let (mut conditions, v) = (Vec::new(), self.variable(variable));
        if is_counted && !body.has_loop() {
            body.visit(&mut |expr| {
                if let ExprKind::At(whole, index) = &expr.kind
                    && let Some(AffineIndex { factor, offset }) = AffineIndex::without_overflow(index, variable)
                {
                    let all = self.variable(self.function.parameters[*whole].variable);
                    let condition = format!("user_defined::inside<{factor}, {offset}>(begin_{v}, end_{v}, {all}_len)");
                    if !conditions.contains(&condition) {
                        conditions.push(condition);
                    }
                }
            });
        }
        conditions
    }

    /// Writes `block` so that its value is stored in the C++ variable `temporary`.
    fn value_of(&mut self, block: &Block, temporary: &str) {
        self.block(block);
        if let Some(value) = &block.value {
            let value = self.expr(value);
            self.push_line(&format!("{temporary} = {value};"));
        }
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("chosen{}", self.temporaries)
    }

    /// Returns the C++ expression of the value of `expr`, and writes the statements that it needs before it.
    fn expr(&mut self, expr: &Expr) -> String {
        let of = self.of(expr.of);
        match &expr.kind {
            // The literal is out of range for every integer type, so its type is a float.
            ExprKind::Int(digits) if digits.starts_with('-') && digits.parse::<i64>().is_err() => literal(of, &format!("{digits}.0")),
            ExprKind::Int(digits) => match digits.strip_prefix('-') {
                Some(digits) => format!("static_cast<{of}>(-{digits}ll)").replace("-9223372036854775808ll", "-9223372036854775807ll - 1"),
                None => format!("static_cast<{of}>({digits}{})", if digits.len() > 9 { "ull" } else { "" }),
            },
            ExprKind::Float(digits) => literal(of, digits),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Constant(constant) => match constant.digits {
                Some(digits) => literal(of, digits),
                None if constant.name == "NAN" => format!("user_defined::nan<{of}>()"),
                None => format!("user_defined::infinity<{of}>()"),
            },
            ExprKind::Variable(v) => self.variable(*v),
            ExprKind::Not(inner) => {
                let text = self.expr(inner);
                if of == "bool" { format!("!{text}") } else { format!("static_cast<{of}>(~{text})") }
            }
            ExprKind::Negative(inner) => format!("op::negative({})", self.expr(inner)),
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                match op {
                    Binary::Add => format!("op::add({left}, {right})"),
                    Binary::Sub => format!("op::subtract({left}, {right})"),
                    Binary::Mul => format!("op::multiply({left}, {right})"),
                    Binary::Div => format!("user_defined::div({left}, {right})"),
                    Binary::Rem => format!("user_defined::rem({left}, {right})"),
                    Binary::Shl => format!("user_defined::shl({left}, {right})"),
                    Binary::Shr => format!("user_defined::shr({left}, {right})"),
                    Binary::BitAnd => format!("static_cast<{of}>({left} & {right})"),
                    Binary::BitOr => format!("static_cast<{of}>({left} | {right})"),
                    Binary::BitXor => format!("static_cast<{of}>({left} ^ {right})"),
                    Binary::And => format!("({left} && {right})"),
                    Binary::Or => format!("({left} || {right})"),
                    Binary::Eq => format!("({left} == {right})"),
                    Binary::Ne => format!("({left} != {right})"),
                    Binary::Lt => format!("({left} < {right})"),
                    Binary::Le => format!("({left} <= {right})"),
                    Binary::Gt => format!("({left} > {right})"),
                    Binary::Ge => format!("({left} >= {right})"),
                }
            }
            ExprKind::Cast(inner) => format!("cast<{of}>({})", self.expr(inner)),
            ExprKind::Method(method, args) => format!("{}({})", method.cuda, self.list(args)),
            ExprKind::Call(at, args) => {
                let (callee, name) = &self.earlier[*at];
                let of_generic = callee.parameters.iter().zip(args).find(|(p, _)| p.of == Type::Generic);
                let generic = of_generic.map_or(of, |(_, arg)| self.of(arg.of));
                format!("{name}<{generic}>({})", self.list(args))
            }
            ExprKind::At(whole, index) => {
                let v = self.variable(self.function.parameters[*whole].variable);
                if let Some(variable) = self.in_bounds
                    && let Some(AffineIndex { factor, offset }) = AffineIndex::without_overflow(index, variable)
                {
                    return format!("{v}[{factor}ll * {} + {offset}]", self.variable(variable));
                }
                let index = self.expr(index);
                format!("user_defined::at({v}, {v}_len, {index})")
            }
            ExprKind::Len(whole) => format!("{}_len", self.variable(self.function.parameters[*whole].variable)),
            ExprKind::If(condition, then, otherwise) => {
                if let (Some(a), Some(b)) = (value_only(then), value_only(otherwise)) {
                    // The statements of both branches are written before the expression, which is valid because they have no side
                    // effects.
                    let (condition, a, b) = (self.expr(condition), self.expr(a), self.expr(b));
                    return format!("({condition} ? {a} : {b})");
                }
                let (temporary, condition) = (self.temporary(), self.expr(condition));
                self.push_line(&format!("{of} {temporary};"));
                self.push_line(&format!("if ({condition}) {{"));
                self.depth += 1;
                self.value_of(then, &temporary);
                self.depth -= 1;
                self.push_line("} else {");
                self.depth += 1;
                self.value_of(otherwise, &temporary);
                self.depth -= 1;
                self.push_line("}");
                temporary
            }
            ExprKind::Block(block) => {
                let temporary = self.temporary();
                self.push_line(&format!("{of} {temporary};"));
                self.push_line("{");
                self.depth += 1;
                self.value_of(block, &temporary);
                self.depth -= 1;
                self.push_line("}");
                temporary
            }
        }
    }

    fn list(&mut self, args: &[Expr]) -> String {
        let args: Vec<String> = args.iter().map(|arg| self.expr(arg)).collect();
        args.join(", ")
    }
}

fn literal(of: &str, digits: &str) -> String {
    match of {
        "f32" => format!("{digits}f"),
        "f64" => digits.to_owned(),
        _ => format!("user_defined::literal<{of}>({digits}f, {digits})"),
    }
}

/// Returns the value of `block` if it has no statements.
fn value_only(block: &Block) -> Option<&Expr> {
    block.value.as_deref().filter(|_| block.statements.is_empty())
}

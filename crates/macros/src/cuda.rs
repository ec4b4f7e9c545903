//! A function as CUDA C++, a template over its generic type, in the terms of the CUDA backend's prelude.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::tree::{Binary, Block, Expr, ExprKind, Function, Kind, Statement};
use crate::types::{Prim, Slot, Type};

/// Name and text of a function. The name is the text's own, so that two kernels of one name may meet in one program.
/// `earlier` are the functions before it, and their names.
pub fn write(function: &Function, earlier: &[(&Function, String)]) -> (String, String) {
    let mut writer = Writer { function, earlier, out: String::new(), depth: 1, temporaries: 0, inside: None };
    writer.block(&function.body);
    if let Some(value) = &function.body.value {
        let value = writer.expr(value);
        writer.line(&format!("return {value};"));
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
    let name = format!("own_{}_{:016x}", plain(&function.name), hasher.finish());
    let text = format!("template <class T> __device__ inline {} {name}{signature}", type_name(function.result));
    (name, text)
}

fn type_name(of: Type) -> &'static str {
    match of {
        Type::Generic => "T",
        Type::Prim(p) => p.name(),
    }
}

/// Variables are numbered, so that shadowing and C++'s own names are no matter.
fn variable(function: &Function, number: usize) -> String {
    format!("v{number}_{}", plain(&function.variables[number].name))
}

/// A name of Rust in letters that every assembler knows.
fn plain(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

struct Writer<'f> {
    function: &'f Function,
    earlier: &'f [(&'f Function, String)],
    out: String,
    depth: usize,
    temporaries: usize,
    /// The variable of the loop being written, if its [`Line`]s are known to lie inside their arrays.
    inside: Option<usize>,
}

/// The index `factor * variable + offset` of a loop's variable, neither number negative: where it is inside at both ends of the loop, it is
/// so all the way, and the accesses need no clamps.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Line {
    factor: i64,
    offset: i64,
}

impl Line {
    /// The line that an index goes along, of numbers that 64 bits hold together with any index of 32.
    fn along(index: &Expr, variable: usize) -> Option<Line> {
        Line::of(index, variable).filter(|line| line.factor <= 1 << 16 && line.offset <= 1 << 31)
    }

    fn of(index: &Expr, variable: usize) -> Option<Line> {
        let constant = |offset| Line { factor: 0, offset };
        match &index.kind {
            ExprKind::Int(digits) => digits.parse::<u16>().ok().map(|n| constant(n.into())),
            ExprKind::Variable(v) => (*v == variable).then_some(Line { factor: 1, offset: 0 }),
            ExprKind::Binary(Binary::Add, a, b) => {
                let (a, b) = (Line::of(a, variable)?, Line::of(b, variable)?);
                Some(Line { factor: a.factor.checked_add(b.factor)?, offset: a.offset.checked_add(b.offset)? })
            }
            ExprKind::Binary(Binary::Mul, a, b) => {
                let (a, b) = (Line::of(a, variable)?, Line::of(b, variable)?);
                let (line, by) = if a.factor == 0 { (b, a.offset) } else { (a, (b.factor == 0).then_some(b.offset)?) };
                Some(Line { factor: line.factor.checked_mul(by)?, offset: line.offset.checked_mul(by)? })
            }
            _ => None,
        }
    }
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.out, "{:1$}{line}", "", self.depth * 4); // writing to a String cannot fail
    }

    fn of(&self, slot: Slot) -> &'static str {
        type_name(self.function.of(slot))
    }

    fn variable(&self, number: usize) -> String {
        variable(self.function, number)
    }

    fn braced(&mut self, head: &str, block: &Block) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    /// The statements of a block.
    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let(v, value) => {
                    let text = self.expr(value);
                    let declared = &self.function.variables[*v];
                    let (constant, of) = (if declared.mutable { "" } else { "const " }, self.of(declared.of));
                    self.line(&format!("[[maybe_unused]] {constant}{of} {} = {text};", self.variable(*v)));
                }
                Statement::Assign(v, value) => {
                    let text = self.expr(value);
                    self.line(&format!("{} = {text};", self.variable(*v)));
                }
                Statement::If(condition, then, otherwise) => {
                    let condition = self.expr(condition);
                    self.braced(&format!("if ({condition})"), then);
                    if !otherwise.statements.is_empty() {
                        self.braced("} else", otherwise);
                    }
                    self.line("}");
                }
                Statement::For { variable, from, to, body } => {
                    let (from, to, of) = (self.expr(from), self.expr(to), self.of(self.function.variables[*variable].of));
                    let v = self.variable(*variable);
                    self.line(&format!("const {of} begin_{v} = {from}, end_{v} = {to};"));
                    let head = format!("for ({of} {v} = begin_{v}; {v} < end_{v}; {v}++)");
                    let lines = self.lines(*variable, body);
                    if !lines.is_empty() {
                        self.line(&format!("if ({}) {{", lines.join(" && ")));
                        self.depth += 1;
                        self.inside = Some(*variable);
                        self.braced(&head, body);
                        self.inside = None;
                        self.line("}");
                        self.depth -= 1;
                        self.line("} else");
                    }
                    self.braced(&head, body);
                    self.line("}");
                }
                Statement::Break => self.line("break;"),
                Statement::Continue => self.line("continue;"),
                Statement::Return(value) => {
                    let value = self.expr(value);
                    self.line(&format!("return {value};"));
                }
            }
        }
    }

    /// For each access along a [`Line`] of the variable of a loop without loops in it, the condition that it is inside all the way.
    fn lines(&self, variable: usize, body: &Block) -> Vec<String> {
        let is_counted = matches!(self.function.of(self.function.variables[variable].of), Type::Prim(Prim::I32 | Prim::I64));
        let (mut conditions, v) = (Vec::new(), self.variable(variable));
        if is_counted && !body.has_loop() {
            body.visit(&mut |expr| {
                if let ExprKind::At(whole, index) = &expr.kind
                    && let Some(Line { factor, offset }) = Line::along(index, variable)
                {
                    let all = self.variable(self.function.parameters[*whole].variable);
                    let condition = format!("own::inside<{factor}, {offset}>(begin_{v}, end_{v}, {all}_len)");
                    if !conditions.contains(&condition) {
                        conditions.push(condition);
                    }
                }
            });
        }
        conditions
    }

    /// A block's value, kept in a temporary.
    fn value_of(&mut self, block: &Block, temporary: &str) {
        self.block(block);
        if let Some(value) = &block.value {
            let value = self.expr(value);
            self.line(&format!("{temporary} = {value};"));
        }
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("chosen{}", self.temporaries)
    }

    /// The text of a value; statements that it needs are written before.
    fn expr(&mut self, expr: &Expr) -> String {
        let of = self.of(expr.of);
        match &expr.kind {
            // A float: no integer type has as many digits.
            ExprKind::Int(digits) if digits.starts_with('-') && digits.parse::<i64>().is_err() => literal(of, &format!("{digits}.0")),
            ExprKind::Int(digits) => match digits.strip_prefix('-') {
                Some(digits) => format!("static_cast<{of}>(-{digits}ll)").replace("-9223372036854775808ll", "-9223372036854775807ll - 1"),
                None => format!("static_cast<{of}>({digits}{})", if digits.len() > 9 { "ull" } else { "" }),
            },
            ExprKind::Float(digits) => literal(of, digits),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Constant(constant) => match constant.digits {
                Some(digits) => literal(of, digits),
                None if constant.name == "NAN" => format!("own::nan<{of}>()"),
                None => format!("own::infinity<{of}>()"),
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
                    Binary::Div => format!("own::div({left}, {right})"),
                    Binary::Rem => format!("own::rem({left}, {right})"),
                    Binary::Shl => format!("own::shl({left}, {right})"),
                    Binary::Shr => format!("own::shr({left}, {right})"),
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
                if let Some(variable) = self.inside
                    && let Some(Line { factor, offset }) = Line::along(index, variable)
                {
                    return format!("{v}[{factor}ll * {} + {offset}]", self.variable(variable));
                }
                let index = self.expr(index);
                format!("own::at({v}, {v}_len, {index})")
            }
            ExprKind::Len(whole) => format!("{}_len", self.variable(self.function.parameters[*whole].variable)),
            ExprKind::If(condition, then, otherwise) => {
                if let (Some(a), Some(b)) = (simple(then), simple(otherwise)) {
                    // Statements that a side needs stand before all: values have no effects.
                    let (condition, a, b) = (self.expr(condition), self.expr(a), self.expr(b));
                    return format!("({condition} ? {a} : {b})");
                }
                let (temporary, condition) = (self.temporary(), self.expr(condition));
                self.line(&format!("{of} {temporary};"));
                self.line(&format!("if ({condition}) {{"));
                self.depth += 1;
                self.value_of(then, &temporary);
                self.depth -= 1;
                self.line("} else {");
                self.depth += 1;
                self.value_of(otherwise, &temporary);
                self.depth -= 1;
                self.line("}");
                temporary
            }
            ExprKind::Block(block) => {
                let temporary = self.temporary();
                self.line(&format!("{of} {temporary};"));
                self.line("{");
                self.depth += 1;
                self.value_of(block, &temporary);
                self.depth -= 1;
                self.line("}");
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
        _ => format!("own::literal<{of}>({digits}f, {digits})"),
    }
}

/// The value of a block that is nothing else.
fn simple(block: &Block) -> Option<&Expr> {
    block.value.as_deref().filter(|_| block.statements.is_empty())
}

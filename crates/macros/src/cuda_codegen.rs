//! CUDA C++ code generation for `kernel!`: writes a function template that uses the prelude of the CUDA backend.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::syntax_tree::{BinaryOperator, Block, ConstantTable, Expr, ExprKind, Function, ParameterKind, Statement};
use crate::type_inference::{PrimitiveType, Type, TypeVariable};

/// Returns the C++ name and the C++ source of `function`. The name contains a hash of the source, so that different kernels of the same
/// name can be in one program. `earlier` are the previous functions of the same `kernel!` block and their C++ names.
pub fn write_function(function: &Function, earlier: &[(&Function, String)]) -> (String, String) {
    let mut writer = CudaWriter { function, earlier, out: String::new(), depth: 1, temporaries: 0, in_bounds: None };
    writer.write_statements(&function.body);
    if let Some(value) = &function.body.value {
        let value = writer.write_expression(value);
        writer.push_line(&format!("return {value};"));
    }
    let body = writer.out;
    let parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|p| {
            let (ty, v) = (cuda_type_name(p.ty), cuda_variable_name(function, p.variable));
            if p.kind == ParameterKind::Whole { format!("const {ty}* {v}, const i64 {v}_len") } else { format!("const {ty} {v}") }
        })
        .collect();
    let signature = format!("({}) {{\n{body}}}\n", parameters.join(", "));
    let mut hasher = DefaultHasher::new();
    (cuda_type_name(function.result), &signature).hash(&mut hasher);
    let name = format!("own_{}_{:016x}", to_ascii_identifier(&function.name), hasher.finish());
    let text = format!("template <class T> __device__ inline {} {name}{signature}", cuda_type_name(function.result));
    (name, text)
}

/// Returns the C++ name and the C++ source of a constant table. The name contains a hash of the source.
pub fn write_constant_table(table: &ConstantTable) -> (String, String) {
    let value = |digits: &String| match table.ty {
        PrimitiveType::F32 if digits.contains(['.', 'e', 'E']) => format!("{digits}f"),
        PrimitiveType::F64 | PrimitiveType::F32 => digits.clone(),
        _ if digits == "-9223372036854775808" => "-9223372036854775807ll - 1".to_owned(),
        PrimitiveType::U64 => format!("{digits}ull"),
        _ => format!("{digits}ll"),
    };
    let values: Vec<String> = table.values.iter().map(value).collect();
    let values = values.join(", ");
    let mut hasher = DefaultHasher::new();
    (table.ty.name(), &values).hash(&mut hasher);
    let name = format!("table_{}_{:016x}", to_ascii_identifier(&table.name), hasher.finish());
    let text = format!("__device__ const {} {name}[{}] = {{{values}}};\n", table.ty.name(), table.values.len());
    (name, text)
}

fn cuda_type_name(ty: Type) -> &'static str {
    match ty {
        Type::Generic => "T",
        Type::Primitive(p) => p.name(),
    }
}

/// Returns the C++ name of the variable with index `number`. The name contains the index, so that shadowed variables and C++ keywords cause
/// no clashes.
fn cuda_variable_name(function: &Function, number: usize) -> String {
    format!("v{number}_{}", to_ascii_identifier(&function.variables[number].name))
}

/// Returns `name` with all characters other than ASCII letters and digits replaced by `_`.
fn to_ascii_identifier(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

struct CudaWriter<'f> {
    function: &'f Function,
    earlier: &'f [(&'f Function, String)],
    out: String,
    depth: usize,
    temporaries: usize,
    /// Index of the loop variable while the writer emits an innermost loop without clamping its [`AffineIndex`]es; otherwise `None`. The
    /// generated code runs this version of the loop if every [`AffineIndex`] is in bounds in all iterations.
    in_bounds: Option<usize>,
}

/// The index `factor * variable + offset` in a loop over `variable`, with non-negative coefficients. Such an index is in bounds in all
/// iterations if it is in bounds in the first and the last one. The accesses then need no clamping.
#[derive(Clone, Copy, PartialEq, Eq)]
struct AffineIndex {
    factor: i64,
    offset: i64,
}

impl AffineIndex {
    /// Returns `index` as an affine function of `variable`. Returns `None` if it is not affine, or could overflow 64 bits for a 32-bit
    /// value of `variable`.
    fn affine_index_without_overflow(index: &Expr, variable: usize) -> Option<AffineIndex> {
        AffineIndex::affine_index_of_expression(index, variable).filter(|line| line.factor <= 1 << 16 && line.offset <= 1 << 31)
    }

    fn affine_index_of_expression(index: &Expr, variable: usize) -> Option<AffineIndex> {
        let constant = |offset| AffineIndex { factor: 0, offset };
        match &index.kind {
            ExprKind::Int(digits) => digits.parse::<u16>().ok().map(|n| constant(n.into())),
            ExprKind::Variable(v) => (*v == variable).then_some(AffineIndex { factor: 1, offset: 0 }),
            ExprKind::Binary(BinaryOperator::Add, a, b) => {
                let (a, b) = (AffineIndex::affine_index_of_expression(a, variable)?, AffineIndex::affine_index_of_expression(b, variable)?);
                Some(AffineIndex { factor: a.factor.checked_add(b.factor)?, offset: a.offset.checked_add(b.offset)? })
            }
            ExprKind::Binary(BinaryOperator::Mul, a, b) => {
                let (a, b) = (AffineIndex::affine_index_of_expression(a, variable)?, AffineIndex::affine_index_of_expression(b, variable)?);
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

    fn resolved_type_name(&self, slot: TypeVariable) -> &'static str {
        cuda_type_name(self.function.resolved_type(slot))
    }

    fn variable_name(&self, number: usize) -> String {
        cuda_variable_name(self.function, number)
    }

    fn write_braced_block(&mut self, head: &str, block: &Block) {
        self.push_line(&format!("{head} {{"));
        self.depth += 1;
        self.write_statements(block);
        self.depth -= 1;
    }

    /// Writes the statements of `block`.
    fn write_statements(&mut self, block: &Block) {
        for statement in &block.statements {
            match statement {
                Statement::Let(v, value) => {
                    let text = self.write_expression(value);
                    let declared = &self.function.variables[*v];
                    let (constant, ty) = (if declared.mutable { "" } else { "const " }, self.resolved_type_name(declared.ty));
                    self.push_line(&format!("[[maybe_unused]] {constant}{ty} {} = {text};", self.variable_name(*v)));
                }
                Statement::Assign(v, value) => {
                    let text = self.write_expression(value);
                    self.push_line(&format!("{} = {text};", self.variable_name(*v)));
                }
                Statement::If(condition, then, otherwise) => {
                    let condition = self.write_expression(condition);
                    self.write_braced_block(&format!("if ({condition})"), then);
                    if !otherwise.statements.is_empty() {
                        self.write_braced_block("} else", otherwise);
                    }
                    self.push_line("}");
                }
                Statement::For { variable, from, to, body } => {
                    let (from, to, ty) = (
                        self.write_expression(from),
                        self.write_expression(to),
                        self.resolved_type_name(self.function.variables[*variable].ty),
                    );
                    let v = self.variable_name(*variable);
                    self.push_line(&format!("const {ty} begin_{v} = {from}, end_{v} = {to};"));
                    let head = format!("for ({ty} {v} = begin_{v}; {v} < end_{v}; {v}++)");
                    let checks = self.loop_bounds_checks(*variable, body);
                    if !checks.is_empty() {
                        self.push_line(&format!("if ({}) {{", checks.join(" && ")));
                        self.depth += 1;
                        self.in_bounds = Some(*variable);
                        self.write_braced_block(&head, body);
                        self.in_bounds = None;
                        self.push_line("}");
                        self.depth -= 1;
                        self.push_line("} else");
                    }
                    self.write_braced_block(&head, body);
                    self.push_line("}");
                }
                Statement::Break => self.push_line("break;"),
                Statement::Continue => self.push_line("continue;"),
                Statement::Return(value) => {
                    let value = self.write_expression(value);
                    self.push_line(&format!("return {value};"));
                }
            }
        }
    }

    /// Returns the C++ bounds check of each access by an [`AffineIndex`] in the innermost loop over `variable`.
    fn loop_bounds_checks(&self, variable: usize, body: &Block) -> Vec<String> {
        let is_counted = matches!(
            self.function.resolved_type(self.function.variables[variable].ty),
            Type::Primitive(PrimitiveType::I32 | PrimitiveType::I64)
        );
        let (mut conditions, v) = (Vec::new(), self.variable_name(variable));
        if is_counted && !body.contains_loop() {
            body.visit_expressions(&mut |expr| {
                if let ExprKind::At(whole, index) = &expr.kind
                    && let Some(AffineIndex { factor, offset }) = AffineIndex::affine_index_without_overflow(index, variable)
                {
                    let all = self.variable_name(self.function.parameters[*whole].variable);
                    let condition = format!("user_defined::is_affine_range_in_bounds<{factor}, {offset}>(begin_{v}, end_{v}, {all}_len)");
                    if !conditions.contains(&condition) {
                        conditions.push(condition);
                    }
                }
            });
        }
        conditions
    }

    /// Writes `block` so that its value is stored in the C++ variable `temporary`.
    fn write_block_value(&mut self, block: &Block, temporary: &str) {
        self.write_statements(block);
        if let Some(value) = &block.value {
            let value = self.write_expression(value);
            self.push_line(&format!("{temporary} = {value};"));
        }
    }

    fn new_temporary_name(&mut self) -> String {
        self.temporaries += 1;
        format!("chosen{}", self.temporaries)
    }

    /// Returns a C++ expression for the value of `expr`. Writes the statements that the expression depends on.
    fn write_expression(&mut self, expr: &Expr) -> String {
        let ty = self.resolved_type_name(expr.ty);
        match &expr.kind {
            // The literal is out of range for every integer type, so type inference has given it a float type.
            ExprKind::Int(digits) if digits.starts_with('-') && digits.parse::<i64>().is_err() => {
                cuda_float_literal(ty, &format!("{digits}.0"))
            }
            ExprKind::Int(digits) => match digits.strip_prefix('-') {
                Some(digits) => format!("static_cast<{ty}>(-{digits}ll)").replace("-9223372036854775808ll", "-9223372036854775807ll - 1"),
                None => format!("static_cast<{ty}>({digits}{})", if digits.len() > 9 { "ull" } else { "" }),
            },
            ExprKind::Float(digits) => cuda_float_literal(ty, digits),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Constant(constant) => match constant.digits {
                Some(digits) => cuda_float_literal(ty, digits),
                None if constant.name == "NAN" => format!("user_defined::nan<{ty}>()"),
                None => format!("user_defined::infinity<{ty}>()"),
            },
            ExprKind::Variable(v) => self.variable_name(*v),
            ExprKind::Not(inner) => {
                let text = self.write_expression(inner);
                if ty == "bool" { format!("!{text}") } else { format!("static_cast<{ty}>(~{text})") }
            }
            ExprKind::Negative(inner) => format!("op::negative({})", self.write_expression(inner)),
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.write_expression(left), self.write_expression(right));
                match op {
                    BinaryOperator::Add => format!("op::add({left}, {right})"),
                    BinaryOperator::Sub => format!("op::subtract({left}, {right})"),
                    BinaryOperator::Mul => format!("op::multiply({left}, {right})"),
                    BinaryOperator::Div => format!("user_defined::div({left}, {right})"),
                    BinaryOperator::Rem => format!("user_defined::rem({left}, {right})"),
                    BinaryOperator::Shl => format!("user_defined::shl({left}, {right})"),
                    BinaryOperator::Shr => format!("user_defined::shr({left}, {right})"),
                    BinaryOperator::BitAnd => format!("static_cast<{ty}>({left} & {right})"),
                    BinaryOperator::BitOr => format!("static_cast<{ty}>({left} | {right})"),
                    BinaryOperator::BitXor => format!("static_cast<{ty}>({left} ^ {right})"),
                    BinaryOperator::And => format!("({left} && {right})"),
                    BinaryOperator::Or => format!("({left} || {right})"),
                    BinaryOperator::Eq => format!("({left} == {right})"),
                    BinaryOperator::Ne => format!("({left} != {right})"),
                    BinaryOperator::Lt => format!("({left} < {right})"),
                    BinaryOperator::Le => format!("({left} <= {right})"),
                    BinaryOperator::Gt => format!("({left} > {right})"),
                    BinaryOperator::Ge => format!("({left} >= {right})"),
                }
            }
            ExprKind::Cast(inner) => format!("cast<{ty}>({})", self.write_expression(inner)),
            ExprKind::Method(method, args) => format!("{}({})", method.cuda, self.write_arguments(args)),
            ExprKind::Call(at, args) => {
                let (callee, name) = &self.earlier[*at];
                let of_generic = callee.parameters.iter().zip(args).find(|(p, _)| p.ty == Type::Generic);
                let generic = of_generic.map_or(ty, |(_, arg)| self.resolved_type_name(arg.ty));
                format!("{name}<{generic}>({})", self.write_arguments(args))
            }
            ExprKind::At(whole, index) => {
                let v = self.variable_name(self.function.parameters[*whole].variable);
                if let Some(variable) = self.in_bounds
                    && let Some(AffineIndex { factor, offset }) = AffineIndex::affine_index_without_overflow(index, variable)
                {
                    return format!("{v}[{factor}ll * {} + {offset}]", self.variable_name(variable));
                }
                let index = self.write_expression(index);
                format!("user_defined::at({v}, {v}_len, {index})")
            }
            ExprKind::Len(whole) => format!("{}_len", self.variable_name(self.function.parameters[*whole].variable)),
            ExprKind::TableElement(at, row, column) => {
                let (row, columns) = (self.write_table_row(*at, row.as_deref()), self.function.tables[*at].columns);
                let column = self.write_expression(column);
                format!("user_defined::at({row}, {columns}ll, {column})")
            }
            ExprKind::TablePolynomial(at, row, x) => {
                let (row, columns) = (self.write_table_row(*at, row.as_deref()), self.function.tables[*at].columns);
                let x = self.write_expression(x);
                format!("user_defined::polynomial<{columns}>({x}, {row})")
            }
            ExprKind::If(condition, then, otherwise) => {
                if let (Some(a), Some(b)) = (single_expression_value(then), single_expression_value(otherwise)) {
                    // The statements that `a` and `b` depend on are written before the expression, so the statements of both branches
                    // always run. They have no side effects.
                    let (condition, a, b) = (self.write_expression(condition), self.write_expression(a), self.write_expression(b));
                    return format!("({condition} ? {a} : {b})");
                }
                let (temporary, condition) = (self.new_temporary_name(), self.write_expression(condition));
                self.push_line(&format!("{ty} {temporary};"));
                self.push_line(&format!("if ({condition}) {{"));
                self.depth += 1;
                self.write_block_value(then, &temporary);
                self.depth -= 1;
                self.push_line("} else {");
                self.depth += 1;
                self.write_block_value(otherwise, &temporary);
                self.depth -= 1;
                self.push_line("}");
                temporary
            }
            ExprKind::Block(block) => {
                let temporary = self.new_temporary_name();
                self.push_line(&format!("{ty} {temporary};"));
                self.push_line("{");
                self.depth += 1;
                self.write_block_value(block, &temporary);
                self.depth -= 1;
                self.push_line("}");
                temporary
            }
        }
    }

    /// Returns a C++ expression for the address of a row of a constant table, or of a table with one dimension.
    fn write_table_row(&mut self, table: usize, row: Option<&Expr>) -> String {
        let table = &self.function.tables[table];
        let (name, _) = write_constant_table(table);
        match (row, table.rows) {
            (Some(row), Some(rows)) => {
                format!("user_defined::row_address<{}>({name}, {rows}ll, {})", table.columns, self.write_expression(row))
            }
            _ => name,
        }
    }

    fn write_arguments(&mut self, args: &[Expr]) -> String {
        let args: Vec<String> = args.iter().map(|arg| self.write_expression(arg)).collect();
        args.join(", ")
    }
}

fn cuda_float_literal(ty: &str, digits: &str) -> String {
    match ty {
        "f32" => format!("{digits}f"),
        "f64" => digits.to_owned(),
        _ => format!("user_defined::literal<{ty}>({digits}f, {digits})"),
    }
}

/// Returns the value of `block` if it has no statements.
fn single_expression_value(block: &Block) -> Option<&Expr> {
    block.value.as_deref().filter(|_| block.statements.is_empty())
}

//! The fuzz target of the parser: scripts as text or as tokens. A tree that is written as source parses as the same tree.

use cuprum::expressions::ast::{Expr, ExprKind, Index, IndexItemKind, Script, Stmt, StmtKind, Target, TargetKind};
use cuprum::expressions::{self, MAX_HEIGHT, Span};

/// The tokens of an input that begins with a zero byte, one per byte.
const TOKENS: [&str; 96] = [
    "a",
    "b",
    "x",
    "np",
    "numpy",
    "linalg",
    "newaxis",
    "foo",
    "\u{e9}",
    "0",
    "1",
    "12",
    "0x1f",
    "0b1",
    "1_0",
    ".5",
    "1.5",
    "1e3",
    "1e999",
    "2j",
    "1.",
    "'s'",
    "\"t\"",
    "r'\\'",
    "'\\n'",
    "'\\x41'",
    "True",
    "False",
    "None",
    "...",
    "(",
    "(",
    ")",
    ")",
    "[",
    "[",
    "]",
    "]",
    "{",
    "}",
    ",",
    ",",
    ":",
    ";",
    "\n",
    "\\\n",
    " ",
    "#",
    ".",
    ".",
    "=",
    "=",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "@",
    "**",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "~",
    "+=",
    "**=",
    "//=",
    ":=",
    "->",
    "not ",
    " and ",
    " or ",
    " if ",
    " else ",
    " is ",
    " in ",
    "lambda ",
    "import ",
    "import numpy as ",
    "from numpy import ",
    " as ",
    "for ",
    "f'",
    "&&",
    "<>",
    "=>",
    "!",
    "?",
];

/// Parses a script. Spans are nested, errors are inside the source, and the tree survives being written and parsed again.
pub fn parse(data: &[u8]) {
    let tokens;
    let text = match data {
        [0, rest @ ..] => {
            tokens = rest.iter().map(|&byte| TOKENS[usize::from(byte) % TOKENS.len()]).collect::<String>();
            &tokens
        }
        _ => match std::str::from_utf8(data) {
            Ok(text) => text,
            Err(_) => return,
        },
    };
    let script = expressions::parse(text);
    if let Ok(expr) = expressions::parse_expression(text) {
        let script = script.as_ref().expect("an expression is a script");
        assert_eq!(script.to_string(), expr.to_string());
    }
    match script {
        Ok(script) => check_script(&script),
        Err(error) => {
            check_span(text, error.span());
            assert!(error.position().line <= 1 + text.matches(['\n', '\r']).count());
            assert!(error.render().contains(error.message()));
        }
    }
}

fn check_script(script: &Script) {
    let text = &script.source;
    for used in script.free_names() {
        assert!(used.span.text(text).contains(&used.name)); // with its parentheses
    }
    for name in script.assigned_names() {
        assert!(text.contains(name));
    }
    let mut source = String::new();
    for statement in &script.statements {
        check_span(text, statement.span);
        for_each_expression(statement, &mut |expr| {
            assert!(statement.span.start <= expr.span.start && expr.span.end <= statement.span.end, "a span outside its statement");
            assert!(expr.height() <= MAX_HEIGHT);
            check_spans(text, expr);
        });
        let (modules, line) = statement_source(statement);
        for module in modules {
            source += &format!("import numpy as {module}\n");
        }
        source += &line;
        source.push('\n');
    }
    match expressions::parse(&source) {
        Ok(copy) => assert_eq!(copy.to_string(), script.to_string(), "{source}"),
        // The copy has more parentheses.
        Err(error) if error.message().contains("levels deep") => {}
        Err(error) => panic!("{source}{}", error.render()),
    }
}

fn check_span(text: &str, span: Span) {
    assert!(text.get(span.start..span.end).is_some(), "{span:?} is no range of characters");
}

fn check_spans(text: &str, expr: &Expr) {
    check_span(text, expr.span);
    expr.kind.for_each_child(&mut |child| {
        assert!(expr.span.start <= child.span.start && child.span.end <= expr.span.end, "{child} is outside {expr}");
        check_spans(text, child);
    });
}

/// Calls `visit` with the outermost expressions of a statement.
fn for_each_expression(statement: &Stmt, visit: &mut dyn FnMut(&Expr)) {
    match &statement.kind {
        StmtKind::Expr(value) => visit(value),
        StmtKind::Assign { targets, value } => {
            targets.iter().for_each(|target| for_each_target_expression(target, visit));
            visit(value);
        }
        StmtKind::AugAssign { target, value, .. } => {
            for_each_target_expression(target, visit);
            visit(value);
        }
    }
}

/// Calls `visit` with the outermost expressions of an assignment target.
fn for_each_target_expression(target: &Target, visit: &mut dyn FnMut(&Expr)) {
    match &target.kind {
        TargetKind::Name(_) => {}
        TargetKind::Index { base, index } => {
            visit(base);
            index.for_each_child(&mut |child| visit(child));
        }
        TargetKind::Tuple(targets) => targets.iter().for_each(|target| for_each_target_expression(target, visit)),
    }
}

/// Returns the source of a statement with all parentheses, and the prefixes that it uses.
fn statement_source(statement: &Stmt) -> (Vec<String>, String) {
    let mut modules = Vec::new();
    for_each_expression(statement, &mut |expr| push_modules(expr, &mut modules));
    let line = match &statement.kind {
        StmtKind::Expr(value) => expression_source(value),
        StmtKind::Assign { targets, value } => {
            let targets: String = targets.iter().map(|target| target_source(target) + " = ").collect();
            targets + &expression_source(value)
        }
        StmtKind::AugAssign { target, op, value, .. } => {
            format!("{} {}= {}", target_source(target), op.symbol(), expression_source(value))
        }
    };
    (modules, line)
}

fn push_modules(expr: &Expr, modules: &mut Vec<String>) {
    if let ExprKind::Global { module, .. } = &expr.kind
        && !modules.contains(module)
    {
        modules.push(module.clone());
    }
    expr.kind.for_each_child(&mut |child| push_modules(child, modules));
}

fn target_source(target: &Target) -> String {
    match &target.kind {
        TargetKind::Name(name) => name.clone(),
        TargetKind::Index { base, index } => base_source(base) + &index_source(index),
        TargetKind::Tuple(targets) => format!("({})", targets.iter().map(|target| target_source(target) + ", ").collect::<String>()),
    }
}

/// Returns the source of an expression before a dot or bracket.
fn base_source(expr: &Expr) -> String {
    let source = expression_source(expr);
    match expr.kind {
        ExprKind::Call { .. } | ExprKind::Index { .. } | ExprKind::Attribute { .. } | ExprKind::List(_) => source,
        _ => format!("({source})"),
    }
}

fn float_source(value: f64) -> String {
    if value.is_infinite() { "1e999".into() } else { format!("{value:?}") }
}

fn expression_source(expr: &Expr) -> String {
    let list = |items: &[Expr]| items.iter().map(|item| expression_source(item) + ", ").collect::<String>();
    match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => float_source(*value),
        ExprKind::Imaginary(value) => float_source(*value) + "j",
        ExprKind::Str(value) => {
            let escaped: String = value
                .chars()
                .map(|c| match c {
                    '\\' | '"' => format!("\\{c}"),
                    _ => format!("\\U{:08x}", u32::from(c)),
                })
                .collect();
            format!("\"{escaped}\"")
        }
        ExprKind::Bool(true) => "True".into(),
        ExprKind::Bool(false) => "False".into(),
        ExprKind::None => "None".into(),
        ExprKind::Ellipsis => "...".into(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Global { module, path } => format!("{module}.{path}"),
        ExprKind::Tuple(items) => format!("({})", list(items)),
        ExprKind::List(items) => format!("[{}]", list(items)),
        ExprKind::Unary { op, operand } => format!("({} {})", op.symbol(), expression_source(operand)),
        ExprKind::Binary { op, left, right, .. } => {
            format!("({} {} {})", expression_source(left), op.symbol(), expression_source(right))
        }
        ExprKind::Logical { op, values } => {
            let values: Vec<String> = values.iter().map(expression_source).collect();
            format!("({})", values.join(&format!(" {} ", op.symbol())))
        }
        ExprKind::Compare { first, rest } => {
            let rest: String = rest.iter().map(|step| format!(" {} {}", step.op.symbol(), expression_source(&step.right))).collect();
            format!("({}{rest})", expression_source(first))
        }
        ExprKind::Conditional { test, then, otherwise } => {
            format!("({} if {} else {})", expression_source(then), expression_source(test), expression_source(otherwise))
        }
        ExprKind::Call { callee, args, keywords } => {
            let callee = match callee.kind {
                ExprKind::Name(_) | ExprKind::Global { .. } => expression_source(callee),
                _ => base_source(callee),
            };
            let keywords: String = keywords.iter().map(|each| format!("{}={}, ", each.name, expression_source(&each.value))).collect();
            format!("{callee}({}{keywords})", list(args))
        }
        ExprKind::Attribute { base, name, .. } => format!("{}.{name}", base_source(base)),
        ExprKind::Index { base, index } => base_source(base) + &index_source(index),
    }
}

fn index_source(index: &Index) -> String {
    let part = |part: &Option<Box<Expr>>| part.as_ref().map_or(String::new(), |expr| expression_source(expr));
    let items: Vec<String> = index
        .items
        .iter()
        .map(|item| match &item.kind {
            IndexItemKind::Expr(expr) => expression_source(expr),
            IndexItemKind::Slice { start, stop, step } => format!("{}:{}:{}", part(start), part(stop), part(step)),
            IndexItemKind::NewAxis => "None".into(),
            IndexItemKind::Ellipsis => "...".into(),
        })
        .collect();
    match (&items[..], index.tuple) {
        ([], _) => "[()]".into(),
        (items, true) => format!("[{},]", items.join(", ")),
        (items, false) => format!("[{}]", items.join(", ")),
    }
}

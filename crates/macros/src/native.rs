//! Rust code generation for the CPU by `kernel!`, with an instantiation for each type of the generic parameter.
//!
//! A body without loops becomes a function of one element, inlined into a loop over elements that LLVM vectorises. A body with one
//! top-level loop processes several elements (lanes) in lockstep. The variables of the lanes are in short arrays, conditions become
//! masks, and lanes that have left the loop are masked out. Other bodies run element by element.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::tree::{Binary, Block, Expr, ExprKind, Form, Function, Kind, Statement};
use crate::types::{Bound, Prim, Slot, Type};

/// Number of elements in lockstep (lanes) for values of up to 4 bytes. Values of 8 bytes use half as many.
const LANES: usize = 64;

/// Generates the initial value of `static NATIVE`, a function that selects the loop of each dtype.
pub fn write(function: &Function, functions: &[Function]) -> TokenStream {
    let types: Vec<Prim> = function.bound.map_or(vec![Prim::F32], |b| Bound::types(b).collect());
    let is_reduction = function.identity.is_some();
    let arms = types.iter().map(|&generic| {
        let native = RustWriter { function, functions, generic };
        let tile = if is_reduction { native.generate_reduction() } else { native.tile() };
        let dtype = Ident::new(generic.dtype(), Span::call_site());
        let pattern = if function.bound.is_some() { quote!(::cuprum::DType::#dtype) } else { quote!(_) };
        let loops = if is_reduction { quote!(user_kernels::reduction::<Pair>()) } else { quote!(tile) };
        quote!(#pattern => { #tile ::core::option::Option::Some(#loops) })
    });
    let rest = function.bound.map(|_| quote!(_ => ::core::option::Option::None,));
    let (native, loops) = if is_reduction { (quote!(NativeReduction), quote!(Reduction)) } else { (quote!(NativeLoops), quote!(Loop)) };
    quote! {
        ::cuprum::backend_cpu::user_kernels::#native({
            fn select(dtype: ::cuprum::DType) -> ::core::option::Option<::cuprum::backend_cpu::user_kernels::#loops> {
                match dtype { #(#arms)* #rest }
            }
            select
        })
    }
}

/// A function of the `kernel!` block, instantiated for one type of the generic parameter.
#[derive(Clone, Copy)]
struct RustWriter<'f> {
    function: &'f Function,
    functions: &'f [Function],
    generic: Prim,
}

/// How `break`, `continue` and assignments are translated.
#[derive(Clone)]
enum Flow {
    /// Translated to the same Rust statements.
    Plain,
    /// Translated to updates masked by this condition, which holds for the active lanes. The number is the depth of nested conditions.
    Masked(TokenStream, usize),
}

impl RustWriter<'_> {
    fn prim(&self, of: Type) -> Prim {
        match of {
            Type::Generic => self.generic,
            Type::Prim(p) => p,
        }
    }
    fn type_of(&self, of: Type) -> Ident {
        Ident::new(self.prim(of).name(), Span::call_site())
    }
    fn slot(&self, slot: Slot) -> Ident {
        self.type_of(self.function.of(slot))
    }
    fn variable(&self, number: usize) -> Ident {
        let name = &self.function.variables[number].name;
        Ident::new(&format!("v{number}_{}", name.to_string().trim_start_matches("r#")), name.span())
    }

    /// Generates the function `tile`, which fills a block of output elements, and its helper functions.
    fn tile(self) -> TokenStream {
        let helpers = self.generate_helpers();
        let point = self.point(&format_ident!("point"));
        let out = self.type_of(self.function.result);
        let fields: Vec<Ident> = self.function.parameters.iter().map(|p| self.variable(p.variable)).collect();
        let types: Vec<Ident> = self.function.parameters.iter().map(|p| self.type_of(p.of)).collect();
        let mut at = 0usize;
        let reads = self.function.parameters.iter().map(|p| {
            let n = at;
            at += p.kind.arguments();
            if p.kind == Kind::Whole { quote!(user_kernels::whole(args, #n)) } else { quote!(user_kernels::each(args, #n)) }
        });
        let (slices, each): (Vec<TokenStream>, Vec<TokenStream>) = self
            .function
            .parameters
            .iter()
            .zip(&fields)
            .map(|(p, v)| {
                if p.kind == Kind::Whole {
                    (quote!(let #v = self.#v;), quote!(#v))
                } else {
                    (quote!(let #v = &self.#v[..n];), quote!(#v[i]))
                }
            })
            .unzip();
        let body = match self.generate_lanes(&each) {
            Some(lanes) => lanes,
            None => quote! { for i in 0..n { out[i] = point::<I>(#(#each,)* &mut rare); } },
        };
        quote! {
            #helpers
            #point
            #[allow(non_snake_case)]
            struct Points<'a> { #(#fields: &'a [#types],)* life: ::core::marker::PhantomData<&'a ()> }
            impl user_kernels::Tile for Points<'_> {
                type Out = #out;
                #[allow(unused_parens, unused_variables, unused_mut, unused_assignments, unused_comparisons, non_snake_case, clippy::all)]
                #[inline(always)]
                fn fill<I: user_kernels::Isa>(&self, out: &mut [#out]) -> bool {
                    let n = out.len();
                    let mut rare = false;
                    #(#slices)*
                    #body
                    rare
                }
            }
            fn tile(args: &[user_kernels::Elements], out: user_kernels::ElementsMut) {
                user_kernels::run(Points { #(#fields: #reads,)* life: ::core::marker::PhantomData }, out)
            }
        }
    }

    /// Generates `struct Pair`, which combines two values of a reduction, and its helper functions.
    fn generate_reduction(self) -> TokenStream {
        let (helpers, point, of) = (self.generate_helpers(), self.point(&format_ident!("point")), self.type_of(self.function.result));
        quote! {
            #helpers
            #point
            struct Pair;
            impl user_kernels::Combine for Pair {
                type Value = #of;
                #[inline(always)]
                fn combine(a: #of, b: #of) -> #of {
                    point::<user_kernels::Plain>(a, b, &mut false)
                }
            }
        }
    }

    /// Generates all functions that this function calls directly or indirectly, for the types of the calls.
    fn generate_helpers(&self) -> TokenStream {
        let mut found: Vec<(usize, Prim)> = Vec::new();
        self.collect_calls(&mut found);
        let texts = found.iter().map(|&(at, generic)| {
            let callee = RustWriter { function: &self.functions[at], functions: self.functions, generic };
            callee.point(&helper_name(&self.functions[at], generic))
        });
        quote!(use ::cuprum::backend_cpu::user_kernels; #(#texts)*)
    }

    fn collect_calls(&self, found: &mut Vec<(usize, Prim)>) {
        let mut calls = Vec::new();
        self.function.body.visit(&mut |expr| {
            if let ExprKind::Call(at, args) = &expr.kind {
                calls.push((*at, self.callee_generic(*at, args, expr.of)));
            }
        });
        for (at, generic) in calls {
            if !found.contains(&(at, generic)) {
                found.push((at, generic));
                RustWriter { function: &self.functions[at], functions: self.functions, generic }.collect_calls(found);
            }
        }
    }

    /// Returns the generic type for which a call of function number `at` instantiates it.
    fn callee_generic(&self, at: usize, args: &[Expr], result: Slot) -> Prim {
        let of_generic = self.functions[at].parameters.iter().zip(args).find(|(p, _)| p.of == Type::Generic);
        self.prim(self.function.of(of_generic.map_or(result, |(_, arg)| arg.of)))
    }

    /// Generates the function that computes one element.
    fn point(&self, name: &Ident) -> TokenStream {
        let parameters = self.function.parameters.iter().map(|p| {
            let (v, of) = (self.variable(p.variable), self.type_of(p.of));
            if p.kind == Kind::Whole { quote!(#v: &[#of]) } else { quote!(#v: #of) }
        });
        let (result, body) = (self.type_of(self.function.result), self.block(&self.function.body, &Flow::Plain));
        quote! {
            #[allow(unused_variables, unused_mut, unused_parens, unused_assignments, unused_comparisons, unreachable_code, non_snake_case, clippy::all)]
            #[inline(always)]
            fn #name<I: user_kernels::Isa>(#(#parameters,)* rare: &mut bool) -> #result { #body }
        }
    }

    fn block(&self, block: &Block, flow: &Flow) -> TokenStream {
        let statements = self.statements(&block.statements, flow);
        let value = block.value.as_ref().map(|v| self.expr(v));
        quote!(#statements #value)
    }

    fn statements(&self, statements: &[Statement], flow: &Flow) -> TokenStream {
        statements.iter().map(|s| self.statement(s, flow)).collect()
    }

    fn statement(&self, statement: &Statement, flow: &Flow) -> TokenStream {
        match statement {
            Statement::Let(v, value) => {
                let (name, of, value) = (self.variable(*v), self.slot(self.function.variables[*v].of), self.expr(value));
                let mutable = self.function.variables[*v].mutable.then(|| quote!(mut));
                quote!(let #mutable #name: #of = #value;)
            }
            Statement::Assign(v, value) => {
                let (name, value) = (self.variable(*v), self.expr(value));
                match flow {
                    Flow::Plain => quote!(#name = #value;),
                    Flow::Masked(when, _) => quote!(#name = if #when { #value } else { #name };),
                }
            }
            Statement::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                match flow {
                    Flow::Plain => {
                        let (then, otherwise) = (self.block(then, flow), self.block(otherwise, flow));
                        quote!(if #condition { #then } else { #otherwise })
                    }
                    Flow::Masked(when, depth) => {
                        let name = format_ident!("condition{depth}");
                        let side = |block: &Block, when| self.statements(&block.statements, &Flow::Masked(when, depth + 1));
                        let (then, otherwise) = (side(then, quote!(#when & #name)), side(otherwise, quote!(#when & !#name)));
                        quote!({ let #name = #condition; #then #otherwise })
                    }
                }
            }
            Statement::For { variable, from, to, body } => {
                let (v, from, to, body) = (self.variable(*variable), self.expr(from), self.expr(to), self.block(body, flow));
                quote!(for #v in #from..#to { #body })
            }
            Statement::Break => match flow {
                Flow::Plain => quote!(break;),
                Flow::Masked(when, _) => quote!(let leaves = #when; live &= !leaves; here &= !leaves;),
            },
            Statement::Continue => match flow {
                Flow::Plain => quote!(continue;),
                Flow::Masked(when, _) => quote!(here &= !(#when);),
            },
            Statement::Return(value) => {
                let value = self.expr(value);
                quote!(return #value;)
            }
        }
    }

    fn expr(&self, expr: &Expr) -> TokenStream {
        // With this span, compile errors point at the user's expression, and names resolve in the generated code even within a user's
        // macro.
        let span = expr.span.resolved_at(Span::call_site());
        let of = self.slot(expr.of);
        let prim = self.prim(self.function.of(expr.of));
        let number = quote_spanned!(span=> <#of as user_kernels::Number>);
        match &expr.kind {
            ExprKind::Int(digits) if prim.is_float() => literal(&format!("{digits}.0"), prim, span),
            ExprKind::Int(digits) => literal(digits, prim, span),
            ExprKind::Float(digits) => literal(digits, prim, span),
            ExprKind::Bool(value) => quote!(#value),
            ExprKind::Constant(constant) => match constant.digits {
                Some(digits) => literal(digits, prim, span),
                None => {
                    let name = Ident::new(constant.name, span);
                    quote!(#of::#name)
                }
            },
            ExprKind::Variable(v) => {
                let v = self.variable(*v);
                quote!(#v)
            }
            ExprKind::Not(inner) => {
                let inner = self.expr(inner);
                quote_spanned!(span=> (!#inner))
            }
            ExprKind::Negative(inner) => {
                let inner = self.expr(inner);
                quote_spanned!(span=> #number::neg(#inner))
            }
            ExprKind::Binary(op, left, right) => {
                let operands = self.slot(left.of);
                let integer = quote_spanned!(span=> <#operands as user_kernels::Integer>);
                let is_bool = self.prim(self.function.of(left.of)) == Prim::Bool;
                let (left, right) = (self.expr(left), self.expr(right));
                let method = |name: &str| {
                    let name = Ident::new(name, span);
                    quote_spanned!(span=> #number::#name(#left, #right))
                };
                match op {
                    Binary::Add => method("add"),
                    Binary::Sub => method("sub"),
                    Binary::Mul => method("mul"),
                    Binary::Div => method("div"),
                    Binary::Rem => method("rem"),
                    Binary::Shl => quote!(#integer::shl(#left, #right)),
                    Binary::Shr => quote!(#integer::shr(#left, #right)),
                    // Compiled without a branch, because evaluating the right operand has no side effects.
                    Binary::And => quote_spanned!(span=> (#left & #right)),
                    Binary::Or => quote_spanned!(span=> (#left | #right)),
                    Binary::BitAnd if is_bool => quote!((#left & #right)),
                    Binary::BitOr if is_bool => quote!((#left | #right)),
                    Binary::BitXor if is_bool => quote!((#left ^ #right)),
                    Binary::BitAnd => quote!(#integer::and(#left, #right)),
                    Binary::BitOr => quote!(#integer::or(#left, #right)),
                    Binary::BitXor => quote!(#integer::xor(#left, #right)),
                    Binary::Eq => quote_spanned!(span=> (#left == #right)),
                    Binary::Ne => quote_spanned!(span=> (#left != #right)),
                    Binary::Lt => quote_spanned!(span=> (#left < #right)),
                    Binary::Le => quote_spanned!(span=> (#left <= #right)),
                    Binary::Gt => quote_spanned!(span=> (#left > #right)),
                    Binary::Ge => quote_spanned!(span=> (#left >= #right)),
                }
            }
            ExprKind::Cast(inner) => {
                let (from, inner) = (self.slot(inner.of), self.expr(inner));
                quote_spanned!(span=> <#from as user_kernels::Cast<#of>>::cast(#inner))
            }
            ExprKind::Method(method, args) => {
                let (receiver, name) = (self.slot(args[0].of), Ident::new(method.name, span));
                let args = args.iter().map(|arg| self.expr(arg));
                match method.form {
                    Form::Number => quote_spanned!(span=> <#receiver as user_kernels::Number>::#name(#(#args),*)),
                    Form::Float | Form::Test => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name(#(#args),*)),
                    Form::Math => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name::<I>(#(#args),*)),
                    Form::MathWithSlowPath => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name::<I>(#(#args,)* rare)),
                }
            }
            ExprKind::Call(at, args) => {
                let name = helper_name(&self.functions[*at], self.callee_generic(*at, args, expr.of));
                let args = args.iter().map(|arg| self.expr(arg));
                quote_spanned!(span=> #name::<I>(#(#args,)* rare))
            }
            ExprKind::At(whole, index) => {
                let (v, index) = (self.variable(self.function.parameters[*whole].variable), self.expr(index));
                quote_spanned!(span=> user_kernels::at(#v, #index))
            }
            ExprKind::Len(whole) => {
                let v = self.variable(self.function.parameters[*whole].variable);
                quote!((#v.len() as i64))
            }
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.expr(condition);
                let (then, otherwise) = (self.block(then, &Flow::Plain), self.block(otherwise, &Flow::Plain));
                quote_spanned!(span=> (if #condition { #then } else { #otherwise }))
            }
            ExprKind::Block(block) => {
                let block = self.block(block, &Flow::Plain);
                quote!({ #block })
            }
        }
    }

    /// Generates the lockstep loop for a body with one top-level loop. Returns `None` for other bodies.
    fn generate_lanes(&self, each: &[TokenStream]) -> Option<TokenStream> {
        let statements = &self.function.body.statements;
        let at = statements.iter().position(|s| matches!(s, Statement::For { .. }))?;
        let Statement::For { variable, from, to, body } = &statements[at] else { return None };
        let (before, after) = (&statements[..at], &statements[at + 1..]);
        let value = self.function.body.value.as_ref()?;
        let straight = |all: &[Statement]| all.iter().all(|s| is_straight(s, false));
        if !straight(before) || !straight(after) || !body.statements.iter().all(|s| is_straight(s, true)) {
            return None;
        }
        // The variables that exist before the loop: parameters and variables of the function's outermost block.
        let parameters = self.function.parameters.iter().filter(|p| p.kind != Kind::Whole).map(|p| p.variable);
        let declared = before.iter().filter_map(|s| if let Statement::Let(v, _) = s { Some(*v) } else { None });
        let state: Vec<usize> = parameters.chain(declared).collect();
        let names: Vec<Ident> = state.iter().map(|&v| self.variable(v)).collect();
        let arrays: Vec<Ident> = names.iter().map(|name| format_ident!("all_{}", name)).collect();
        let types: Vec<Ident> = state.iter().map(|&v| self.slot(self.function.variables[v].of)).collect();
        let mut changing = Vec::new();
        assigned_variables(&body.statements, &mut changing);
        let changed: Vec<usize> = (0..state.len()).filter(|&n| changing.contains(&state[n])).collect();
        let (changed_names, changed_arrays): (Vec<&Ident>, Vec<&Ident>) = changed.iter().map(|&n| (&names[n], &arrays[n])).unzip();
        let mutable = state.iter().map(|v| changing.contains(v).then(|| quote!(mut)));

        let wide = types.iter().any(|t| matches!(t.to_string().as_str(), "f64" | "i64" | "u64"));
        let (lanes, mask) = if wide { (LANES / 2, quote!(u64)) } else { (LANES, quote!(u32)) };
        let loads: Vec<TokenStream> = self
            .function
            .parameters
            .iter()
            .zip(each)
            .filter(|(p, _)| p.kind != Kind::Whole)
            .map(|(p, each)| {
                let v = self.variable(p.variable);
                quote!(let #v = #each;)
            })
            .collect();
        let k = self.variable(*variable);
        let k_type = self.slot(self.function.variables[*variable].of);
        let (before, from, to) = (self.statements(before, &Flow::Plain), self.expr(from), self.expr(to));
        let step = self.statements(&body.statements, &Flow::Masked(quote!(here), 0));
        let (after, value) = (self.statements(after, &Flow::Plain), self.expr(value));
        Some(quote! {
            for base in (0..n).step_by(#lanes) {
                let len = if n - base < #lanes { n - base } else { #lanes };
                #(let mut #arrays = [<#types as ::core::default::Default>::default(); #lanes];)*
                let (mut begins, mut ends) = ([0 as #k_type; #lanes], [0 as #k_type; #lanes]);
                for l in 0..len {
                    let i = base + l;
                    let rare = &mut rare;
                    #(#loads)*
                    #before
                    begins[l] = #from;
                    ends[l] = #to;
                    #(#arrays[l] = #names;)*
                }
                if begins[..len].iter().any(|&b| b != begins[0]) || ends[..len].iter().any(|&e| e != ends[0]) {
                    for l in 0..len {
                        let i = base + l;
                        out[i] = point::<I>(#(#each,)* &mut rare);
                    }
                    continue;
                }
                let mut alive = [0 as #mask; #lanes];
                alive[..len].fill(1);
                for #k in begins[0]..ends[0] {
                    let mut any: #mask = 0;
                    let mut unusual: #mask = 0;
                    for l in 0..#lanes {
                        let mut live = alive[l] != 0;
                        let mut here = live;
                        let mut is_rare = false;
                        let rare = &mut is_rare;
                        #(let #mutable #names = #arrays[l];)*
                        let before = live;
                        #step
                        #(#changed_arrays[l] = #changed_names;)*
                        let still = live as #mask;
                        alive[l] = still;
                        any |= still;
                        unusual |= (is_rare & before) as #mask;
                    }
                    rare |= unusual != 0;
                    if any == 0 {
                        break;
                    }
                }
                for l in 0..len {
                    let i = base + l;
                    let rare = &mut rare;
                    #(let mut #names = #arrays[l];)*
                    #after
                    out[i] = #value;
                }
            }
        })
    }
}

/// Returns whether `statement` contains no loop and no return. With `masked`, `break` and `continue` of the enclosing loop are allowed.
fn is_straight(statement: &Statement, masked: bool) -> bool {
    match statement {
        Statement::Let(_, value) | Statement::Assign(_, value) => !has_loop(value),
        Statement::If(condition, then, otherwise) => {
            !has_loop(condition) && then.statements.iter().chain(&otherwise.statements).all(|s| is_straight(s, masked))
        }
        Statement::Break | Statement::Continue => masked,
        Statement::For { .. } | Statement::Return(_) => false,
    }
}

fn has_loop(expr: &Expr) -> bool {
    let mut found = false;
    let loops = |block: &Block| !block.statements.iter().all(|s| is_straight(s, false));
    expr.visit(&mut |e| match &e.kind {
        ExprKind::If(_, then, otherwise) => found |= loops(then) || loops(otherwise),
        ExprKind::Block(block) => found |= loops(block),
        _ => {}
    });
    found
}

fn assigned_variables(statements: &[Statement], out: &mut Vec<usize>) {
    for statement in statements {
        match statement {
            Statement::Assign(v, _) => out.push(*v),
            Statement::If(_, then, otherwise) => {
                assigned_variables(&then.statements, out);
                assigned_variables(&otherwise.statements, out);
            }
            _ => {}
        }
    }
}

/// Returns the name of the generated helper function for `function` with the type `generic`.
fn helper_name(function: &Function, generic: Prim) -> Ident {
    format_ident!("{}_of_{}", function.name, generic.name())
}

fn literal(digits: &str, of: Prim, span: Span) -> TokenStream {
    let text = format!("{digits}{}", of.name());
    match text.parse::<Literal>() {
        Ok(mut literal) => {
            literal.set_span(span);
            quote!(#literal)
        }
        Err(_) => syn::Error::new(span, "not a literal").to_compile_error(),
    }
}

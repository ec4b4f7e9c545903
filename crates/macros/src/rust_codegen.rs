//! Rust code generation for the CPU by `kernel!`, with an instantiation for each type of the generic parameter.
//!
//! A user-defined function without loops becomes a function of one element, inlined into a loop over elements that LLVM vectorises. A
//! function with one top-level loop processes several elements (lanes) in lockstep. The variables of the lanes are in short arrays,
//! conditions become masks, and lanes that have left the loop are masked out. Other functions run element by element.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use crate::syntax_tree::{BinaryOperator, Block, Expr, ExprKind, Function, MethodKind, ParameterKind, Statement};
use crate::type_inference::{GenericBound, PrimitiveType, Type, TypeVariable};

/// Number of elements in lockstep (lanes) for values of up to 4 bytes. Values of 8 bytes use half as many.
const LOCKSTEP_LANES: usize = 64;

/// Generates the initial value of `static NATIVE_LOOPS`: a function that returns the compiled loop or reduction for a dtype.
pub fn write_loop_selector(function: &Function, functions: &[Function]) -> TokenStream {
    let types: Vec<PrimitiveType> = function.bound.map_or(vec![PrimitiveType::F32], |b| GenericBound::instantiated_types(b).collect());
    let is_reduction = function.identity.is_some();
    let (items, arms) = if !is_reduction && computes_in_double(function) {
        let (items, arguments) =
            (RustWriter { function, functions, generic: PrimitiveType::F64 }.generate_tile_function(), function.parameters.len());
        let in_double = quote! {
            fn compute_tile_in_double(args: &[user_kernels::Elements], out: user_kernels::ElementsMut) {
                user_kernels::compute_in_float64::<#arguments>(compute_tile, args, out)
            }
        };
        let arms = quote! {
            ::cuprum::DType::F64 => ::core::option::Option::Some(compute_tile),
            ::cuprum::DType::F32 => ::core::option::Option::Some(compute_tile_in_double),
        };
        (quote!(#items #in_double), arms)
    } else {
        let arms = types.iter().map(|&generic| {
            let native = RustWriter { function, functions, generic };
            let tile = if is_reduction { native.generate_reduction() } else { native.generate_tile_function() };
            let dtype = Ident::new(generic.dtype_name(), Span::call_site());
            let pattern = if function.bound.is_some() { quote!(::cuprum::DType::#dtype) } else { quote!(_) };
            let loops =
                if is_reduction { quote!(user_kernels::native_reduction_loops::<ReductionCombiner>()) } else { quote!(compute_tile) };
            quote!(#pattern => { #tile ::core::option::Option::Some(#loops) })
        });
        (TokenStream::new(), arms.collect())
    };
    let rest = function.bound.map(|_| quote!(_ => ::core::option::Option::None,));
    let (native, loops) = if is_reduction {
        (quote!(NativeReductionSelector), quote!(NativeReductionLoops))
    } else {
        (quote!(NativeLoopSelector), quote!(Loop))
    };
    quote! {
        ::cuprum::backend_cpu::user_kernels::#native({
            fn select_loop(dtype: ::cuprum::DType) -> ::core::option::Option<::cuprum::backend_cpu::user_kernels::#loops> {
                #items
                match dtype { #arms #rest }
            }
            select_loop
        })
    }
}

/// Returns whether the function is one expression that converts its arguments of the generic type to float64 and its float64 value to the
/// generic type. The float32 loop of such a function converts blocks of elements and calls the float64 loop, which halves the code.
fn computes_in_double(function: &Function) -> bool {
    let is_generic = |expr: &Expr| function.resolved_type(expr.ty) == Type::Generic;
    let is_f64 = |expr: &Expr| function.resolved_type(expr.ty) == Type::Primitive(PrimitiveType::F64);
    let Some(Expr { kind: ExprKind::Cast(value), ty, .. }) = function.body.value.as_deref() else { return false };
    let (mut generic, mut converted) = (0, 0);
    value.visit_expressions(&mut |expr| {
        generic += usize::from(is_generic(expr));
        if let ExprKind::Cast(argument) = &expr.kind {
            converted += usize::from(is_f64(expr) && is_generic(argument) && matches!(argument.kind, ExprKind::Variable(_)));
        }
    });
    function.body.statements.is_empty()
        && function.resolved_type(*ty) == Type::Generic
        && function.result == Type::Generic
        && is_f64(value)
        && generic == converted
        && function.parameters.iter().all(|p| p.kind != ParameterKind::Whole && p.ty != Type::Primitive(PrimitiveType::F32))
        && function.bound.is_some_and(|b| GenericBound::instantiated_types(b).all(PrimitiveType::is_float))
}

/// A function of the `kernel!` block, instantiated for one type of the generic parameter.
#[derive(Clone, Copy)]
struct RustWriter<'f> {
    function: &'f Function,
    functions: &'f [Function],
    generic: PrimitiveType,
}

/// How the code generator translates `break`, `continue` and assignments.
#[derive(Clone)]
enum ControlFlowTranslation {
    /// `break`, `continue` and assignments remain Rust statements.
    Plain,
    /// `break`, `continue` and assignments become updates that are masked by the given condition, which is true for the active lanes. The
    /// number is the depth of nested conditions.
    Masked(TokenStream, usize),
}

impl RustWriter<'_> {
    fn concrete_type(&self, ty: Type) -> PrimitiveType {
        match ty {
            Type::Generic => self.generic,
            Type::Primitive(p) => p,
        }
    }
    fn type_ident(&self, ty: Type) -> Ident {
        Ident::new(self.concrete_type(ty).name(), Span::call_site())
    }
    fn resolved_type_ident(&self, slot: TypeVariable) -> Ident {
        self.type_ident(self.function.resolved_type(slot))
    }
    fn variable_ident(&self, number: usize) -> Ident {
        let name = &self.function.variables[number].name;
        Ident::new(&format!("v{number}_{}", name.to_string().trim_start_matches("r#")), name.span())
    }

    /// Generates the function `compute_tile`, which fills a block of output elements, and the functions that it calls.
    fn generate_tile_function(self) -> TokenStream {
        let helpers = self.generate_callees();
        let point = self.generate_element_function(&format_ident!("point"));
        let out = self.type_ident(self.function.result);
        let fields: Vec<Ident> = self.function.parameters.iter().map(|p| self.variable_ident(p.variable)).collect();
        let types: Vec<Ident> = self.function.parameters.iter().map(|p| self.type_ident(p.ty)).collect();
        let mut at = 0usize;
        let reads = self.function.parameters.iter().map(|p| {
            let n = at;
            at += p.kind.argument_count();
            if p.kind == ParameterKind::Whole {
                quote!(user_kernels::whole_array_argument(args, #n))
            } else {
                quote!(user_kernels::tile_argument(args, #n))
            }
        });
        let (slices, each): (Vec<TokenStream>, Vec<TokenStream>) = self
            .function
            .parameters
            .iter()
            .zip(&fields)
            .map(|(p, v)| {
                if p.kind == ParameterKind::Whole {
                    (quote!(let #v = self.#v;), quote!(#v))
                } else {
                    (quote!(let #v = &self.#v[..n];), quote!(#v[i]))
                }
            })
            .unzip();
        let body = match self.generate_lockstep_loop(&each) {
            Some(lanes) => lanes,
            None => quote! { for i in 0..n { out[i] = point::<I>(#(#each,)* &mut rare); } },
        };
        let may_need_exact_pass = self.may_need_exact_pass();
        quote! {
            #helpers
            #point
            #[allow(non_snake_case)]
            struct ElementTile<'a> { #(#fields: &'a [#types],)* life: ::core::marker::PhantomData<&'a ()> }
            impl user_kernels::UserOperationTile for ElementTile<'_> {
                type Out = #out;
                const MAY_NEED_EXACT_PASS: bool = #may_need_exact_pass;
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
            fn compute_tile(args: &[user_kernels::Elements], out: user_kernels::ElementsMut) {
                user_kernels::run_tile(ElementTile { #(#fields: #reads,)* life: ::core::marker::PhantomData }, out)
            }
        }
    }

    /// Generates `struct ReductionCombiner`, which combines two values of a reduction, and the functions that it calls.
    fn generate_reduction(self) -> TokenStream {
        let (helpers, point, ty) =
            (self.generate_callees(), self.generate_element_function(&format_ident!("point")), self.type_ident(self.function.result));
        quote! {
            #helpers
            #point
            struct ReductionCombiner;
            impl user_kernels::UserReduction for ReductionCombiner {
                type Value = #ty;
                #[inline(always)]
                fn combine(a: #ty, b: #ty) -> #ty {
                    point::<user_kernels::Plain>(a, b, &mut false)
                }
            }
        }
    }

    /// Generates all functions that this function calls directly or indirectly, each for the types with which it is called.
    fn generate_callees(&self) -> TokenStream {
        let mut found: Vec<(usize, PrimitiveType)> = Vec::new();
        self.collect_instantiated_callees(&mut found);
        let texts = found.iter().map(|&(at, generic)| {
            let callee = RustWriter { function: &self.functions[at], functions: self.functions, generic };
            callee.generate_element_function(&callee_function_name(&self.functions[at], generic))
        });
        quote!(use ::cuprum::backend_cpu::user_kernels; #(#texts)*)
    }

    fn collect_instantiated_callees(&self, found: &mut Vec<(usize, PrimitiveType)>) {
        let mut calls = Vec::new();
        self.function.body.visit_expressions(&mut |expr| {
            if let ExprKind::Call(at, args) = &expr.kind {
                calls.push((*at, self.callee_generic_type(*at, args, expr.ty)));
            }
        });
        for (at, generic) in calls {
            if !found.contains(&(at, generic)) {
                found.push((at, generic));
                RustWriter { function: &self.functions[at], functions: self.functions, generic }.collect_instantiated_callees(found);
            }
        }
    }

    /// Returns the type of the generic parameter with which a call instantiates the function with index `at`. `args` and `result` are the
    /// arguments and the result type of the call.
    fn callee_generic_type(&self, at: usize, args: &[Expr], result: TypeVariable) -> PrimitiveType {
        let of_generic = self.functions[at].parameters.iter().zip(args).find(|(p, _)| p.ty == Type::Generic);
        self.concrete_type(self.function.resolved_type(of_generic.map_or(result, |(_, arg)| arg.ty)))
    }

    /// Generates the function that computes one element.
    fn generate_element_function(&self, name: &Ident) -> TokenStream {
        let parameters = self.function.parameters.iter().map(|p| {
            let (v, ty) = (self.variable_ident(p.variable), self.type_ident(p.ty));
            if p.kind == ParameterKind::Whole { quote!(#v: &[#ty]) } else { quote!(#v: #ty) }
        });
        let (result, body) =
            (self.type_ident(self.function.result), self.translate_block(&self.function.body, &ControlFlowTranslation::Plain));
        quote! {
            #[allow(unused_variables, unused_mut, unused_parens, unused_assignments, unused_comparisons, unreachable_code, non_snake_case, clippy::all)]
            #[inline(always)]
            fn #name<I: user_kernels::Isa>(#(#parameters,)* rare: &mut bool) -> #result { #body }
        }
    }

    fn translate_block(&self, block: &Block, flow: &ControlFlowTranslation) -> TokenStream {
        let statements = self.translate_statements(&block.statements, flow);
        let value = block.value.as_ref().map(|v| self.translate_expression(v));
        quote!(#statements #value)
    }

    fn translate_statements(&self, statements: &[Statement], flow: &ControlFlowTranslation) -> TokenStream {
        statements.iter().map(|s| self.translate_statement(s, flow)).collect()
    }

    fn translate_statement(&self, statement: &Statement, flow: &ControlFlowTranslation) -> TokenStream {
        match statement {
            Statement::Let(v, value) => {
                let (name, ty, value) =
                    (self.variable_ident(*v), self.resolved_type_ident(self.function.variables[*v].ty), self.translate_expression(value));
                let mutable = self.function.variables[*v].mutable.then(|| quote!(mut));
                quote!(let #mutable #name: #ty = #value;)
            }
            Statement::Assign(v, value) => {
                let (name, value) = (self.variable_ident(*v), self.translate_expression(value));
                match flow {
                    ControlFlowTranslation::Plain => quote!(#name = #value;),
                    ControlFlowTranslation::Masked(when, _) => quote!(#name = if #when { #value } else { #name };),
                }
            }
            Statement::If(condition, then, otherwise) => {
                let condition = self.translate_expression(condition);
                match flow {
                    ControlFlowTranslation::Plain => {
                        let (then, otherwise) = (self.translate_block(then, flow), self.translate_block(otherwise, flow));
                        quote!(if #condition { #then } else { #otherwise })
                    }
                    ControlFlowTranslation::Masked(when, depth) => {
                        let name = format_ident!("condition{depth}");
                        let side = |block: &Block, when| {
                            self.translate_statements(&block.statements, &ControlFlowTranslation::Masked(when, depth + 1))
                        };
                        let (then, otherwise) = (side(then, quote!(#when & #name)), side(otherwise, quote!(#when & !#name)));
                        quote!({ let #name = #condition; #then #otherwise })
                    }
                }
            }
            Statement::For { variable, from, to, body } => {
                let (v, from, to, body) = (
                    self.variable_ident(*variable),
                    self.translate_expression(from),
                    self.translate_expression(to),
                    self.translate_block(body, flow),
                );
                quote!(for #v in #from..#to { #body })
            }
            Statement::Break => match flow {
                ControlFlowTranslation::Plain => quote!(break;),
                ControlFlowTranslation::Masked(when, _) => quote!(let leaves = #when; live &= !leaves; here &= !leaves;),
            },
            Statement::Continue => match flow {
                ControlFlowTranslation::Plain => quote!(continue;),
                ControlFlowTranslation::Masked(when, _) => quote!(here &= !(#when);),
            },
            Statement::Return(value) => {
                let value = self.translate_expression(value);
                quote!(return #value;)
            }
        }
    }

    fn translate_expression(&self, expr: &Expr) -> TokenStream {
        // With this span, compile errors point at the user's expression. Names resolve in the generated code, even if the expression comes
        // from a user's macro.
        let span = expr.span.resolved_at(Span::call_site());
        let ty = self.resolved_type_ident(expr.ty);
        let prim = self.concrete_type(self.function.resolved_type(expr.ty));
        let number = quote_spanned!(span=> <#ty as user_kernels::Number>);
        match &expr.kind {
            ExprKind::Int(digits) if prim.is_float() => number_literal_tokens(&format!("{digits}.0"), prim, span),
            ExprKind::Int(digits) => number_literal_tokens(digits, prim, span),
            ExprKind::Float(digits) => number_literal_tokens(digits, prim, span),
            ExprKind::Bool(value) => quote!(#value),
            ExprKind::Constant(constant) => match constant.digits {
                Some(digits) => number_literal_tokens(digits, prim, span),
                None => {
                    let name = Ident::new(constant.name, span);
                    quote!(#ty::#name)
                }
            },
            ExprKind::Variable(v) => {
                let v = self.variable_ident(*v);
                quote!(#v)
            }
            ExprKind::Not(inner) => {
                let inner = self.translate_expression(inner);
                quote_spanned!(span=> (!#inner))
            }
            ExprKind::Negative(inner) => {
                let inner = self.translate_expression(inner);
                quote_spanned!(span=> #number::neg(#inner))
            }
            ExprKind::Binary(op, left, right) => {
                let operands = self.resolved_type_ident(left.ty);
                let integer = quote_spanned!(span=> <#operands as user_kernels::Integer>);
                let is_bool = self.concrete_type(self.function.resolved_type(left.ty)) == PrimitiveType::Bool;
                let (left, right) = (self.translate_expression(left), self.translate_expression(right));
                let method = |name: &str| {
                    let name = Ident::new(name, span);
                    quote_spanned!(span=> #number::#name(#left, #right))
                };
                match op {
                    BinaryOperator::Add => method("add"),
                    BinaryOperator::Sub => method("sub"),
                    BinaryOperator::Mul => method("mul"),
                    BinaryOperator::Div => method("div"),
                    BinaryOperator::Rem => method("rem"),
                    BinaryOperator::Shl => quote!(#integer::shl(#left, #right)),
                    BinaryOperator::Shr => quote!(#integer::shr(#left, #right)),
                    // `&&` and `||` are compiled without a branch, because evaluating the right operand has no side effects.
                    BinaryOperator::And => quote_spanned!(span=> (#left & #right)),
                    BinaryOperator::Or => quote_spanned!(span=> (#left | #right)),
                    BinaryOperator::BitAnd if is_bool => quote!((#left & #right)),
                    BinaryOperator::BitOr if is_bool => quote!((#left | #right)),
                    BinaryOperator::BitXor if is_bool => quote!((#left ^ #right)),
                    BinaryOperator::BitAnd => quote!(#integer::and(#left, #right)),
                    BinaryOperator::BitOr => quote!(#integer::or(#left, #right)),
                    BinaryOperator::BitXor => quote!(#integer::xor(#left, #right)),
                    BinaryOperator::Eq => quote_spanned!(span=> (#left == #right)),
                    BinaryOperator::Ne => quote_spanned!(span=> (#left != #right)),
                    BinaryOperator::Lt => quote_spanned!(span=> (#left < #right)),
                    BinaryOperator::Le => quote_spanned!(span=> (#left <= #right)),
                    BinaryOperator::Gt => quote_spanned!(span=> (#left > #right)),
                    BinaryOperator::Ge => quote_spanned!(span=> (#left >= #right)),
                }
            }
            ExprKind::Cast(inner) => {
                let (from, inner) = (self.resolved_type_ident(inner.ty), self.translate_expression(inner));
                quote_spanned!(span=> <#from as user_kernels::Cast<#ty>>::cast(#inner))
            }
            ExprKind::Method(method, args) => {
                let (receiver, name) = (self.resolved_type_ident(args[0].ty), Ident::new(method.name, span));
                let args = args.iter().map(|arg| self.translate_expression(arg));
                match method.kind {
                    MethodKind::Number => quote_spanned!(span=> <#receiver as user_kernels::Number>::#name(#(#args),*)),
                    MethodKind::Float | MethodKind::Test => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name(#(#args),*)),
                    MethodKind::Math => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name::<I>(#(#args),*)),
                    MethodKind::MathWithSlowPath => quote_spanned!(span=> <#receiver as user_kernels::Math>::#name::<I>(#(#args,)* rare)),
                }
            }
            ExprKind::Call(at, args) => {
                let name = callee_function_name(&self.functions[*at], self.callee_generic_type(*at, args, expr.ty));
                let args = args.iter().map(|arg| self.translate_expression(arg));
                quote_spanned!(span=> #name::<I>(#(#args,)* rare))
            }
            ExprKind::At(whole, index) => {
                let (v, index) = (self.variable_ident(self.function.parameters[*whole].variable), self.translate_expression(index));
                quote_spanned!(span=> user_kernels::at(#v, #index))
            }
            ExprKind::Len(whole) => {
                let v = self.variable_ident(self.function.parameters[*whole].variable);
                quote!((#v.len() as i64))
            }
            ExprKind::TableElement(at, row, column) => {
                let (row, column) = (self.translate_table_row(*at, row.as_deref()), self.translate_expression(column));
                quote_spanned!(span=> user_kernels::at(#row, #column))
            }
            ExprKind::TablePolynomial(at, row, x) => {
                let (row, x) = (self.translate_table_row(*at, row.as_deref()), self.translate_expression(x));
                quote_spanned!(span=> user_kernels::polynomial::<I, _, _>(#x, #row))
            }
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.translate_expression(condition);
                let (then, otherwise) = (
                    self.translate_block(then, &ControlFlowTranslation::Plain),
                    self.translate_block(otherwise, &ControlFlowTranslation::Plain),
                );
                quote_spanned!(span=> (if #condition { #then } else { #otherwise }))
            }
            ExprKind::Block(block) => {
                let block = self.translate_block(block, &ControlFlowTranslation::Plain);
                quote!({ #block })
            }
        }
    }

    /// Returns a reference to a row of a constant table, or to a table with one dimension.
    fn translate_table_row(&self, table: usize, row: Option<&Expr>) -> TokenStream {
        let name = &self.function.tables[table].name;
        match row {
            Some(row) => {
                let row = self.translate_expression(row);
                quote!(user_kernels::row_at(&#name, #row))
            }
            None => quote!(&#name),
        }
    }

    /// Returns whether the function or one of its callees needs an exact pass for rare arguments.
    fn may_need_exact_pass(&self) -> bool {
        let mut callees = Vec::new();
        self.collect_instantiated_callees(&mut callees);
        self.function.body.contains_slow_path() || callees.iter().any(|&(at, _)| self.functions[at].body.contains_slow_path())
    }

    /// Generates the loop that processes several elements in lockstep, for a function without `return` whose only loop is at top level.
    /// Returns `None` for other functions.
    fn generate_lockstep_loop(&self, each: &[TokenStream]) -> Option<TokenStream> {
        let statements = &self.function.body.statements;
        let at = statements.iter().position(|s| matches!(s, Statement::For { .. }))?;
        let Statement::For { variable, from, to, body } = &statements[at] else { return None };
        let (before, after) = (&statements[..at], &statements[at + 1..]);
        let value = self.function.body.value.as_ref()?;
        let straight = |all: &[Statement]| all.iter().all(|s| is_straight_line(s, false));
        if !straight(before) || !straight(after) || !body.statements.iter().all(|s| is_straight_line(s, true)) {
            return None;
        }
        // `state` holds the variables that exist before the loop: parameters, and variables of the function's outermost block.
        let parameters = self.function.parameters.iter().filter(|p| p.kind != ParameterKind::Whole).map(|p| p.variable);
        let declared = before.iter().filter_map(|s| if let Statement::Let(v, _) = s { Some(*v) } else { None });
        let state: Vec<usize> = parameters.chain(declared).collect();
        let names: Vec<Ident> = state.iter().map(|&v| self.variable_ident(v)).collect();
        let arrays: Vec<Ident> = names.iter().map(|name| format_ident!("all_{}", name)).collect();
        let types: Vec<Ident> = state.iter().map(|&v| self.resolved_type_ident(self.function.variables[v].ty)).collect();
        let mut changing = Vec::new();
        collect_assigned_variables(&body.statements, &mut changing);
        let changed: Vec<usize> = (0..state.len()).filter(|&n| changing.contains(&state[n])).collect();
        let (changed_names, changed_arrays): (Vec<&Ident>, Vec<&Ident>) = changed.iter().map(|&n| (&names[n], &arrays[n])).unzip();
        let mutable = state.iter().map(|v| changing.contains(v).then(|| quote!(mut)));

        let wide = types.iter().any(|t| matches!(t.to_string().as_str(), "f64" | "i64" | "u64"));
        let (lanes, mask) = if wide { (LOCKSTEP_LANES / 2, quote!(u64)) } else { (LOCKSTEP_LANES, quote!(u32)) };
        let loads: Vec<TokenStream> = self
            .function
            .parameters
            .iter()
            .zip(each)
            .filter(|(p, _)| p.kind != ParameterKind::Whole)
            .map(|(p, each)| {
                let v = self.variable_ident(p.variable);
                quote!(let #v = #each;)
            })
            .collect();
        let k = self.variable_ident(*variable);
        let k_type = self.resolved_type_ident(self.function.variables[*variable].ty);
        let (before, from, to) = (
            self.translate_statements(before, &ControlFlowTranslation::Plain),
            self.translate_expression(from),
            self.translate_expression(to),
        );
        let step = self.translate_statements(&body.statements, &ControlFlowTranslation::Masked(quote!(here), 0));
        let (after, value) = (self.translate_statements(after, &ControlFlowTranslation::Plain), self.translate_expression(value));
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

/// Returns whether `statement` contains no loop, `return`, `break` or `continue`. With `masked`, `break` and `continue` of the enclosing
/// loop are allowed.
fn is_straight_line(statement: &Statement, masked: bool) -> bool {
    match statement {
        Statement::Let(_, value) | Statement::Assign(_, value) => !expression_has_jump(value),
        Statement::If(condition, then, otherwise) => {
            !expression_has_jump(condition) && then.statements.iter().chain(&otherwise.statements).all(|s| is_straight_line(s, masked))
        }
        Statement::Break | Statement::Continue => masked,
        Statement::For { .. } | Statement::Return(_) => false,
    }
}

fn expression_has_jump(expr: &Expr) -> bool {
    let mut found = false;
    let loops = |block: &Block| !block.statements.iter().all(|s| is_straight_line(s, false));
    expr.visit_expressions(&mut |e| match &e.kind {
        ExprKind::If(_, then, otherwise) => found |= loops(then) || loops(otherwise),
        ExprKind::Block(block) => found |= loops(block),
        _ => {}
    });
    found
}

fn collect_assigned_variables(statements: &[Statement], out: &mut Vec<usize>) {
    for statement in statements {
        match statement {
            Statement::Assign(v, _) => out.push(*v),
            Statement::If(_, then, otherwise) => {
                collect_assigned_variables(&then.statements, out);
                collect_assigned_variables(&otherwise.statements, out);
            }
            _ => {}
        }
    }
}

/// Returns the name of the generated helper function for `function` with the type `generic`.
fn callee_function_name(function: &Function, generic: PrimitiveType) -> Ident {
    format_ident!("{}_of_{}", function.name, generic.name())
}

fn number_literal_tokens(digits: &str, ty: PrimitiveType, span: Span) -> TokenStream {
    let text = format!("{digits}{}", ty.name());
    match text.parse::<Literal>() {
        Ok(mut literal) => {
            literal.set_span(span);
            quote!(#literal)
        }
        Err(_) => syn::Error::new(span, "not a literal").to_compile_error(),
    }
}

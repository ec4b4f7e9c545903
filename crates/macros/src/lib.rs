//! The macros `cuprum::kernel!` and `#[cuprum::numpy(..)]`.
//!
//! `kernel!` defines operations once in Rust for CPU and GPU. The module `parse` converts the functions of a block to typed trees, from
//! which `rust_codegen` generates Rust for the CPU backend and `cuda_codegen` generates CUDA C++. This file generates the definition of the
//! operation (`OpDef`) and the public function. The module `numpy_attribute` implements `#[numpy(..)]`.

mod cuda_codegen;
mod numpy_attribute;
mod parse;
mod rust_codegen;
mod syntax_tree;
mod type_inference;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;

use crate::syntax_tree::{Cost, Function, ParameterKind, ReductionIdentity};
use crate::type_inference::Type;

/// Defines elementwise operations and reductions. The facade crate re-exports this macro as `cuprum::kernel!`, with full documentation.
#[proc_macro]
pub fn kernel(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand_kernel(input.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Declares a function under NumPy's name. The facade crate re-exports this attribute as `cuprum::numpy`, with full documentation.
///
/// `#[numpy("path(parameters)", options)]` takes the options `aliases(..)`, `method`, `receiver = ".."`, `differs = ".."`
/// and `call = ..`.
/// Parameters can have the attributes `#[read(T)]` and `#[name("n")]`.
#[proc_macro_attribute]
pub fn numpy(declaration: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    numpy_attribute::expand_numpy(declaration.into(), item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// Adds free functions to an `impl NdArray` block: one for each method with `#[numpy(..)]`. Only `cuprum-core` uses this attribute.
///
/// The function has the method's name, visibility and summary. Its parameters are in NumPy's order.
#[proc_macro_attribute]
pub fn free_functions(_arguments: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    numpy_attribute::expand_free_functions(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

fn expand_kernel(input: TokenStream) -> syn::Result<TokenStream> {
    let file: syn::File = syn::parse2(input)?;
    let tables: Vec<syn::ItemConst> =
        file.items.iter().filter_map(|item| if let syn::Item::Const(table) = item { Some(table.clone()) } else { None }).collect();
    let functions = parse::convert_functions(file)?;
    let mut sources: Vec<(&Function, String)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for function in &functions {
        let (name, text) = cuda_codegen::write_function(function, &sources);
        sources.push((function, name));
        texts.push(text);
    }
    let called: Vec<usize> = functions.iter().flat_map(|f| f.calls.iter().copied()).collect();
    // A private function that other functions call is a helper, so no operation is generated for it.
    let is_helper = |n: &usize| {
        let function = &functions[*n];
        let is_private = matches!(function.vis, syn::Visibility::Inherited);
        function.is_helper || called.contains(n) && is_private && function.identity.is_none()
    };
    let operations = functions.iter().enumerate().filter(|(n, _)| !is_helper(n)).map(|(n, function)| {
        let mut needed = Vec::new();
        collect_callees(&functions, n, &mut needed);
        let loops = needed.iter().any(|&n| sources[n].0.body.contains_loop());
        let mut constants: Vec<(String, String)> = Vec::new();
        for table in needed.iter().flat_map(|&n| &functions[n].tables) {
            let written = cuda_codegen::write_constant_table(table);
            if !constants.contains(&written) {
                constants.push(written);
            }
        }
        let constants = constants.iter().map(|(name, text)| quote!((#name, #text)));
        let source = needed.iter().map(|&n| {
            let (name, text) = (&sources[n].1, &texts[n]);
            quote!((#name, #text))
        });
        let source = constants.chain(source);
        generate_operation(function, &functions, quote!(&[#(#source),*]), loops)
    });
    let operations: TokenStream = operations.collect();
    Ok(quote! { #(#[allow(dead_code, clippy::excessive_precision, clippy::approx_constant)] #tables)* #operations })
}

/// Appends to `out` the direct and indirect callees of the function with index `caller`, then the function itself.
fn collect_callees(functions: &[Function], caller: usize, out: &mut Vec<usize>) {
    if out.contains(&caller) {
        return;
    }
    functions[caller].calls.iter().for_each(|&callee| collect_callees(functions, callee, out));
    out.push(caller);
}

/// Generates the definition (`OpDef`) of the operation `function`, and the Rust function that applies the operation. `source`
/// holds the CUDA code of the function, its callees and tables. `loops` states whether one of these functions has a loop.
fn generate_operation(function: &Function, functions: &[Function], source: TokenStream, loops: bool) -> TokenStream {
    let Function { attrs, vis, name, .. } = function;
    let row = format_ident!("__CUPRUM_ROW_OF_{}", name.unraw());
    let given: Vec<_> = function.parameters.iter().filter(|p| !matches!(p.kind, ParameterKind::Index(_))).collect();
    let names: Vec<&Ident> = given.iter().map(|p| &p.name).collect();
    let signature = given.iter().map(|p| p.name.unraw().to_string()).collect::<Vec<_>>().join(", ");
    let parameters = function.parameters.iter().map(|p| {
        let (name, ty) = (p.name.unraw().to_string(), parameter_type_tokens(p.ty));
        let kind = match p.kind {
            ParameterKind::Each => quote!(Each),
            ParameterKind::Whole => quote!(Whole),
            ParameterKind::Index(axis) => quote!(Index(#axis)),
        };
        quote!(body::Parameter { name: #name, of: #ty, kind: body::ParameterKind::#kind })
    });
    let bound = Ident::new(function.bound.map_or("Number", |b| b.name()), Span::call_site());
    let result = parameter_type_tokens(function.result);
    let cost = Ident::new(
        match function.cost {
            Cost::Cheap => "Cheap",
            Cost::Medium => "Medium",
            Cost::Expensive => "Expensive",
        },
        Span::call_site(),
    );
    let native = rust_codegen::write_loop_selector(function, functions);
    let is_reduction = function.identity.is_some();
    let reduction = match function.identity {
        None => quote!(::core::option::Option::None),
        Some(identity) => {
            let identity = match identity {
                ReductionIdentity::Int(n) => {
                    quote!(Value(::cuprum::Scalar::Int(#n)))
                }
                ReductionIdentity::Float(x) => quote!(Value(::cuprum::Scalar::Float(#x))),
                ReductionIdentity::Bool(b) => quote!(Value(::cuprum::Scalar::Bool(#b))),
                ReductionIdentity::Lowest => quote!(Lowest),
                ReductionIdentity::Highest => quote!(Highest),
            };
            quote!(::core::option::Option::Some(&op::ReductionDef::user_defined_reduction(op::ReductionIdentity::#identity)))
        }
    };
    let (family, arity, call, signature) = if is_reduction {
        (quote!(Reduce), quote!(1), quote!(call_reduction), "a, axis=None, *, keepdims=False".to_owned())
    } else {
        (quote!(Map), quote!(body::OperationBody::total_argument_count(KERNEL_PARAMETERS)), quote!(call_elementwise), signature)
    };
    let native_type = if is_reduction { quote!(NativeReductionSelector) } else { quote!(NativeLoopSelector) };
    let caller = if is_reduction {
        quote! {
            #vis fn #name(
                values: impl ::core::convert::Into<::cuprum::Operand>,
                over: impl ::core::convert::Into<::cuprum::AxisOptions>,
            ) -> ::cuprum::Result<::cuprum::NdArray> {
                ::cuprum::core::body::reduce(::cuprum::Op(&#row), &values.into(), &over.into())
            }
        }
    } else {
        quote! {
            #[allow(clippy::too_many_arguments)]
            #vis fn #name(#(#names: impl ::core::convert::Into<::cuprum::Operand>),*) -> ::cuprum::Result<::cuprum::NdArray> {
                ::cuprum::core::body::apply(::cuprum::Op(&#row), &[#(#names.into()),*])
            }
        }
    };
    let text = name.unraw().to_string();
    let doc = first_documentation_line(attrs);
    // A function with `#[numpy("path(parameters)")]` is already declared for `eval`, so `kernel!` does not declare it again.
    let is_declared = function.is_rust_only || attrs.iter().any(|a| a.path().segments.last().is_some_and(|s| s.ident == "numpy"));
    let declaration = (!is_declared).then(|| {
        quote! {
            ::cuprum::inventory::submit! {
                ::cuprum::function::Function {
                    namespace: "",
                    name: #text,
                    aliases: &[],
                    parameters: {
                        static PARAMETERS: ::cuprum::function::Parameters = ::cuprum::function::Parameters::new(#signature);
                        &PARAMETERS
                    },
                    doc: #doc,
                    rust: ::core::concat!(::core::module_path!(), "::", #text),
                    is_method: false,
                    differs: "",
                    updates_argument: false,
                    call: |args| ::cuprum::core::body::#call(::cuprum::Op(&#row), args),
                }
            }
        }
    });
    quote! {
        #[doc(hidden)]
        #[allow(non_upper_case_globals)]
        static #row: ::cuprum::core::op::OpDef = {
            use ::cuprum::core::{body, op};
            static NATIVE_LOOPS: ::cuprum::backend_cpu::user_kernels::#native_type = #native;
            static KERNEL_PARAMETERS: &[body::Parameter] = &[#(#parameters),*];
            static KERNEL_BODY: body::OperationBody = body::OperationBody {
                parameters: KERNEL_PARAMETERS,
                bound: body::GenericBound::#bound,
                result: #result,
                source: #source,
                loops: #loops,
                native: &NATIVE_LOOPS,
            };
            op::OpDef {
                name: #text,
                family: op::Family::#family,
                arity: #arity,
                index: ::core::primitive::u16::MAX,
                rule: ::core::option::Option::None,
                cost: op::Cost::#cost,
                composite: ::core::option::Option::None,
                body: ::core::option::Option::Some(&KERNEL_BODY),
                reduction: #reduction,
            }
        };
        ::cuprum::inventory::submit! { ::cuprum::core::body::DeclaredOperation(::cuprum::Op(&#row)) }
        #declaration

        #(#attrs)*
        #[allow(dead_code)]
        #caller
    }
}

fn parameter_type_tokens(ty: Type) -> TokenStream {
    match ty {
        Type::Generic => quote!(body::BodyDType::Generic),
        Type::Primitive(p) => {
            let dtype = Ident::new(p.dtype_name(), Span::call_site());
            quote!(body::BodyDType::Fixed(::cuprum::DType::#dtype))
        }
    }
}

/// Returns the first line of the documentation in `attrs`, which `eval` lists.
fn first_documentation_line(attrs: &[syn::Attribute]) -> String {
    let lines = attrs.iter().filter_map(|a| match &a.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::syntax_tree::{MethodKind, NUMBER_METHODS};

    /// Expands `block` and returns, for each error, its line in the block (from 1), column (from 0) and message.
    fn errors(block: &str) -> Vec<(usize, usize, String)> {
        let error = match block.parse::<TokenStream>().map_err(syn::Error::from).and_then(expand_kernel) {
            Ok(_) => return Vec::new(),
            Err(error) => error,
        };
        error.into_iter().map(|e| (e.span().start().line, e.span().start().column, e.to_string())).collect()
    }

    fn one(block: &str) -> (usize, usize, String) {
        let [error] = errors(block).try_into().unwrap();
        error
    }

    #[test]
    fn errors_point_at_the_source() {
        let expected = |line, column, text: &str| (line, column, text.to_owned());
        assert_eq!(
            one("fn f<T: Float>(x: T, n: i32) -> T {\n    x + n\n}"),
            expected(2, 8, "mismatched types: expected the generic type (any Float), found `i32`; convert one with `as`")
        );
        assert_eq!(
            one("fn f<T: Float>(x: T) -> T {\n    let y = x * z;\n    y\n}"),
            expected(2, 16, "`z` is not a variable of this kernel")
        );
        assert_eq!(
            one("fn f(x: f64) -> f64 {\n    if x { 1.0 } else { 2.0 }\n}"),
            expected(2, 7, "mismatched types: expected `bool`, found `f64`")
        );
        assert_eq!(one("fn f<T: Integer>(x: T) -> T { x.sqrt() }").2, "`sqrt` takes a float, found the generic type (any Integer)");
        assert_eq!(
            one("fn f<T: Number>(x: T) -> T { x * 0.5 }").2,
            "mismatched types: expected the generic type (any Number), found a float"
        );
        assert_eq!(one("fn f(x: f64) -> f64 { x = 2.0; x }").2, "`x` is not mutable: declare it with `let mut`");
        assert_eq!(one("fn f(x: f64) -> f64 { x.exp(); x }").2, "this value is not used");
        assert_eq!(one("fn f(x: f64) -> f64 { x.exp() x }").0, 1, "a missing operator is a syntax error");
        assert_eq!(
            one("fn f(x: f64) -> f64 { let y = x + 1.0; }").2,
            "the function ends without a value: an expression without `;`, or a `return`"
        );
        assert!(errors("fn f(x: f64) -> bool { x > 1 }").is_empty(), "an integer literal can have any numeric type");
    }

    #[test]
    fn unsupported_syntax_is_an_error() {
        let text = |block: &str| one(block).2;
        assert!(text("fn f(x: f64) -> f64 { let mut y = x; while y > 1.0 { y = y / 2.0; } y }").contains("loops of kernels are bounded"));
        assert!(text("fn f(x: f64) -> f64 { vec![x][0] }").contains("only parameters of type `&[T]`"));
        assert!(text("fn f(x: &mut [f64]) -> f64 { x[0] }").contains("cannot be changed"));
        assert!(text("fn f(x: f64) -> f64 { x.gamma() }").contains("no method of kernels"));
        assert!(text("fn f(x: String) -> f64 { 1.0 }").contains("types of kernels are"));
        assert!(text("fn f<T>(x: T) -> T { x }").contains("one generic type, `T: Float`"));
        assert!(text("fn f<T: Float, U: Float>(x: T, y: U) -> T { x }").contains("has one generic type"));
        assert!(text("fn f(x: f64) { }").contains("returns a number"));
        assert!(text("fn f(x: f64) -> f64 { g(x) }").contains("`g` is not a function defined above"));
        assert!(text("struct S;").contains("a kernel is a function"));
        assert!(text("fn f(a: &[f64], b: &[f64], c: &[f64], d: &[f64], x: f64) -> f64 { x }").contains("9 arguments, at most 8"));
        assert!(text("#[reduction(identity = 0)] fn f<T: Number>(a: T) -> T { a }").contains("combines two values"));
        assert!(text("#[reduction(start = 0)] fn f<T: Number>(a: T, b: T) -> T { a + b }").contains("identity = 0"));
        assert!(
            text("fn f(x: f64) -> f64 { let mut s = x; let y = if x > 0.0 { s = 1.0; 2.0 } else { 3.0 }; s + y }")
                .contains("inside an expression")
        );
        assert!(text("fn f(x: f64, n: i64) -> f64 { for i in 0..=n { } x }").contains("an exclusive end"));
        assert!(text("fn f<T: Float>(x: f64) -> T { 1.0 }").contains("no parameter has the type `T`"));
        assert!(text("fn f(x: f64) -> f64 { let mut s = x; { s += 1.0; } s }").contains("a block without a value"));
        assert!(text("fn f(x: f64) -> f64 { let mut s = x; (s += 1.0) + s }").contains("an assignment is a statement"));
        assert!(text("fn f(x: f64) -> f64 { x.powi(0) }").contains("a literal exponent of 1 or more"));
        assert_eq!(errors("fn f(x: f64) -> f64 { y }\nfn g(x: f64) -> f64 { z }").len(), 2, "the errors of both functions are reported");
    }

    #[test]
    fn wrong_tables_are_errors() {
        let text = |block: &str| one(block).2;
        assert!(text("const C: f64 = 1.0;").contains("a table of kernels is"));
        assert!(text("const C: [bool; 1] = [true];").contains("a table of kernels is"));
        assert!(text("const C: [f64; 0] = [];").contains("at least one element"));
        assert!(text("const C: [[f64; 2]; 2] = [[1.0, 2.0], [3.0]];").contains("the same length"));
        assert!(text("const C: [f64; 1] = [f(1)];").contains("are numbers"));
        assert!(text("const C: [[f64; 1]; 1] = [[1.0]]; fn f(x: f64) -> f64 { x + C[0] }").contains("one index for each dimension"));
        assert!(text("const C: [[f64; 1]; 1] = [[1.0]]; fn f(x: f64) -> f64 { x.polynomial(C) }").contains("takes the coefficients"));
        assert!(text("const C: [f64; 1] = [1.0]; fn f(x: f32) -> f32 { x.polynomial(C) }").contains("expected `f64`, found `f32`"));
        assert!(text("fn f(x: f64) -> f64 { x.polynomial([]) }").contains("at least one coefficient"));
        assert!(text("#[helper] pub fn f(x: f64) -> f64 { x }").contains("private"));
    }

    #[test]
    fn tables_in_cuda() {
        let block = "const C: [[f64; 2]; 2] = [[1.0, -2.5], [3.0, 4e-9]]; fn f(x: f64, n: i64) -> f64 { x.polynomial(C[n]) + C[n][1] }";
        let functions = parse::convert_functions(syn::parse_str(block).unwrap()).unwrap();
        let (name, table) = cuda_codegen::write_constant_table(&functions[0].tables[0]);
        assert_eq!(table, format!("__device__ const f64 {name}[4] = {{1.0, -2.5, 3.0, 4e-9}};\n"));
        let (_, code) = cuda_codegen::write_function(&functions[0], &[]);
        assert!(code.contains(&format!("user_defined::polynomial<2>(v0_x, user_defined::row_address<2>({name}, 2ll, v1_n))")), "{code}");
        assert!(
            code.contains(&format!("user_defined::at(user_defined::row_address<2>({name}, 2ll, v1_n), 2ll, static_cast<i32>(1))")),
            "{code}"
        );
    }

    #[test]
    fn attributes_are_allowed_before_functions_only() {
        let at = |block: &str| {
            let (line, column, text) = one(block);
            assert!(text.contains("before functions only"), "{text}");
            (line, column)
        };
        assert_eq!(at("fn f(x: f64) -> f64 {\n    #[allow(unused)] let y = x; y\n}"), (2, 4));
        assert_eq!(at("fn f(x: f64) -> f64 {\n    x +\n#[cold] (x)\n}"), (3, 0));
        assert_eq!(at("fn f(x: f64) -> f64 {\n    x.max(#[cold] 1.0)\n}"), (2, 10));
        assert_eq!(at("fn f(x: f64) -> f64 {\n    if #[cold] true { x } else { x }\n}"), (2, 7));
        assert_eq!(at("fn f(x: f64) -> f64 {\n    /// What x is.\n    x\n}").0, 2);
        assert_eq!(at("fn f(\n#[cold] x: f64) -> f64 { x }"), (2, 0));
        assert_eq!(at("fn f<#[cold] T: Float>(x: T) -> T { x }"), (1, 5));
        assert_eq!(at("fn f(x: f64) -> f64 {\n #![cold] x }"), (2, 1));
        assert_eq!(at("#![cold]\nfn f(x: f64) -> f64 { x }"), (1, 0));
        assert!(errors("/// Itself.\n#[must_use]\nfn f(x: f64) -> f64 { x }").is_empty());
    }

    fn text(block: &str) -> (String, String) {
        let functions = parse::convert_functions(syn::parse_str(block).unwrap()).unwrap();
        cuda_codegen::write_function(&functions[0], &[])
    }

    #[test]
    fn literals_in_cuda() {
        let value = |block: &str| {
            let (_, text) = text(block);
            text.split_once("return ").and_then(|(_, value)| value.split_once(';')).map(|(value, _)| value.to_owned()).unwrap()
        };
        assert_eq!(value("fn f(x: f64) -> f64 { -0 }"), "op::negative(static_cast<f64>(0))", "a float's zero has a sign");
        assert_eq!(value("fn f(x: i8) -> i8 { -128 }"), "static_cast<i8>(-128ll)");
        assert_eq!(value("fn f(x: i64) -> i64 { -9223372036854775808 }"), "static_cast<i64>(-9223372036854775807ll - 1)");
        assert_eq!(value("fn f(x: f32) -> f32 { -18446744073709551615 }"), "-18446744073709551615.0f");
        assert_eq!(value("fn f(c: &[f32], n: u64) -> f32 { c[n] }"), "user_defined::at(v0_c, v0_c_len, v1_n)");
    }

    #[test]
    fn powi_is_repeated_squaring() {
        let (_, text) = text("fn f(x: f64) -> f64 { x.powi(13) }");
        let lines = ["v1_square = op::multiply(v0_x, v0_x);", "v2_square = op::multiply(v1_square, v1_square);"];
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        assert!(text.contains("= op::multiply(op::multiply(v0_x, v2_square), op::multiply(v2_square, v2_square));"), "{text}");
    }

    /// Compares the list of methods with the CPU backend, the CUDA prelude, the documentation and the test of all methods.
    #[test]
    fn all_lists_of_methods_agree() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let file = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
            text.split_once(from).and_then(|(_, rest)| rest.split_once(to)).unwrap().0
        }
        let names = |wanted: &dyn Fn(MethodKind) -> bool| -> BTreeSet<String> {
            NUMBER_METHODS.iter().filter(|m| wanted(m.kind)).map(|m| m.name.to_owned()).collect()
        };

        let own = file("crates/backend-cpu/src/user_kernels.rs");
        let functions = |head: &str| -> BTreeSet<String> {
            let declared = between(&own, head, "\n}\n").split("    fn ").skip(1);
            declared.map(|f| f.split(['<', '(']).next().unwrap().to_owned()).collect()
        };
        let operators: BTreeSet<String> = ["add", "sub", "mul", "div", "rem", "neg"].map(str::to_owned).into();
        assert_eq!(&functions("pub trait Number") - &operators, names(&|kind| kind == MethodKind::Number));
        assert_eq!(functions("pub trait Math"), names(&|kind| kind != MethodKind::Number));

        let documented = file("src/lib.rs").replace("///", " ");
        let documented = between(&documented, "methods of Rust's numbers: `", "`");
        let documented: BTreeSet<String> = documented.split_whitespace().map(str::to_owned).collect();
        let mut known = names(&|_| true);
        assert_eq!(documented, known); // `powi` is documented separately, as its exponent is a literal
        known.insert("powi".to_owned());

        let tests = file("tests/chain/kernel_macro.rs");
        let body = between(&tests, "pub fn methods", "\n    }\n");
        assert_eq!(known.iter().filter(|name| !body.contains(&format!(".{name}("))).collect::<Vec<_>>(), Vec::<&String>::new());

        let folder = root.join("crates/backend-cuda/src/codegen/prelude");
        let prelude = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let prelude: String = prelude.collect();
        let words: BTreeSet<&str> = prelude.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let missing: Vec<&str> =
            NUMBER_METHODS.iter().map(|m| m.cuda).filter(|f| !words.contains(f.rsplit("::").next().unwrap())).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    #[test]
    fn affine_indices_in_bounds_are_not_clamped() {
        let (_, dot) = text(
            "fn dot<T: Float>(x: &[T], y: &[T]) -> T { let mut s = x[0] * 0; for i in 0..x.len() as i32 / 2 { s += x[2 * i + 1] * y[i]; } s }",
        );
        let head = "    if (user_defined::is_affine_range_in_bounds<2, 1>(begin_v3_i, end_v3_i, v0_x_len) && user_defined::is_affine_range_in_bounds<1, 0>(begin_v3_i, end_v3_i, v1_y_len)) {\n";
        assert!(dot.contains(head), "{dot}");
        let fast = "op::multiply(v0_x[2ll * v3_i + 1], v1_y[1ll * v3_i + 0])";
        let clamped = "op::multiply(user_defined::at(v0_x, v0_x_len, op::add(op::multiply(static_cast<i32>(2), v3_i), static_cast<i32>(1))), user_defined::at(v1_y, v1_y_len, v3_i))";
        assert!(dot.find(fast).is_some_and(|at| dot.find(clamped).is_some_and(|other| at < other)), "{dot}");
        // Accesses by these indices are clamped: they are not affine, have a negative or too large coefficient, or depend on another
        // variable.
        for index in ["i - 1", "n", "i * n", "i / 2", "-i", "i + (-1)", "70000 * i"] {
            let (_, text) = text(&format!("fn f(x: &[f32], n: i32) -> f32 {{ let mut s = 0.0; for i in 0..n {{ s += x[{index}]; }} s }}"));
            assert!(!text.contains("in_bounds"), "{index}: {text}");
        }
        let (_, nested) =
            text("fn f(x: &[f32], n: i32) -> f32 { let mut s = 0.0; for i in 0..n { for j in 0..i { s += x[i] * x[j]; } } s }");
        assert_eq!(nested.matches("user_defined::is_affine_range_in_bounds").count(), 1, "{nested}");
        assert!(nested.contains("user_defined::at(v0_x, v0_x_len, v3_i), v0_x[1ll * v4_j + 0]"), "{nested}");
    }

    #[test]
    fn equal_bodies_have_equal_source_and_name() {
        let (name, cuda) =
            text("fn f<T: Float>(x: T, n: i32) -> T { let mut s = x; for i in 0..n { if s > 2.5 { break; } s += i as T; } s }");
        assert_eq!(
            text("fn f<T: Float>(x: T, n: i32) -> T {\n let mut s = x; for i in 0..n { if s > 2.5 { break; } s += i as T; } s }").0,
            name
        );
        let expected = format!(
            "template <class T> __device__ inline T {name}(const T v0_x, const i32 v1_n) {{
    [[maybe_unused]] T v2_s = v0_x;
    const i32 begin_v3_i = static_cast<i32>(0), end_v3_i = v1_n;
    for (i32 v3_i = begin_v3_i; v3_i < end_v3_i; v3_i++) {{
        if ((v2_s > user_defined::literal<T>(2.5f, 2.5))) {{
            break;
        }}
        v2_s = op::add(v2_s, cast<T>(v3_i));
    }}
    return v2_s;
}}
"
        );
        assert_eq!(cuda, expected);
        let (_, chosen) = text("fn f(x: f32) -> f32 { let y = if x > 0.0 { let z = x * x; z + 1.0 } else { -x }; y }");
        assert!(
            chosen.contains(
                "    f32 chosen1;\n    if ((v0_x > 0.0f)) {\n        [[maybe_unused]] const f32 v1_z = op::multiply(v0_x, v0_x);"
            ),
            "{chosen}"
        );
    }
}

//! `#[numpy(..)]`: declares a Rust function under NumPy's name.
//!
//! The attribute adds one item to the body of the function: an `inventory` submission of a `cuprum::function::Function`. The attribute also
//! wraps the body, so that errors contain the function's name. The field `call` of the `Function` reads each Rust parameter from
//! Python-like arguments (`Args`) and converts the result to a `Value`.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, FnArg, GenericArgument, Lit, LitStr, Pat, PathArguments, Token, Type, TypeParamBound};

/// The parsed arguments of the attribute `#[numpy(..)]`.
struct NumpyDeclaration {
    signature: LitStr,
    aliases: Vec<LitStr>,
    is_method: bool,
    receiver: Option<LitStr>,
    differs: Option<LitStr>,
    call: Option<Expr>,
}

impl Parse for NumpyDeclaration {
    fn parse(input: ParseStream) -> syn::Result<NumpyDeclaration> {
        let signature = input.parse()?;
        let mut declaration =
            NumpyDeclaration { signature, aliases: Vec::new(), is_method: false, receiver: None, differs: None, call: None };
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let option: syn::Ident = input.parse()?;
            match option.to_string().as_str() {
                "aliases" => {
                    let list;
                    syn::parenthesized!(list in input);
                    declaration.aliases = Punctuated::<LitStr, Token![,]>::parse_terminated(&list)?.into_iter().collect();
                }
                "method" => declaration.is_method = true,
                "receiver" => {
                    input.parse::<Token![=]>()?;
                    declaration.receiver = Some(input.parse()?);
                }
                "differs" => {
                    input.parse::<Token![=]>()?;
                    declaration.differs = Some(input.parse()?);
                }
                "call" => {
                    input.parse::<Token![=]>()?;
                    declaration.call = Some(input.parse()?);
                }
                _ => {
                    let expected = "expected `aliases(..)`, `method`, `receiver = \"..\"`, `differs = \"..\"` or `call = ..`";
                    return Err(syn::Error::new(option.span(), expected));
                }
            }
        }
        Ok(declaration)
    }
}

/// Splits a NumPy signature such as `linalg.trace(x, /, *, offset=0)` into its path and its parameters.
fn split_signature(signature: &LitStr) -> syn::Result<(String, String)> {
    let text = signature.value();
    let parts = text.trim().strip_suffix(')').and_then(|t| t.split_once('('));
    let Some((path, parameters)) = parts else {
        return Err(syn::Error::new(signature.span(), "expected NumPy's signature, such as \"trace(a, offset=0)\""));
    };
    Ok((path.trim().to_owned(), parameters.trim().to_owned()))
}

/// Returns the names of the parameters in order, without `*`, `/` and defaults. A comma inside parentheses, brackets or quotes belongs
/// to a default.
fn parameter_names(parameters: &str) -> Vec<String> {
    let (mut depth, mut quote) = (0usize, None);
    let parts = parameters.split(|c: char| {
        match (quote, c) {
            (Some(open), _) => quote = (c != open).then_some(open),
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0 && quote.is_none()
    });
    let each = parts.map(|p| p.split('=').next().unwrap_or(p).trim().trim_start_matches('*').to_owned());
    each.filter(|p| !p.is_empty() && p != "/").collect()
}

/// Returns the first paragraph of the documentation in `attributes`, with links replaced by their text.
fn documentation_summary(attributes: &[Attribute]) -> String {
    strip_doc_links(documentation_summary_lines(attributes).join(" ").trim())
}

/// Returns the lines of the first paragraph of the documentation in `attributes`.
fn documentation_summary_lines(attributes: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        if let syn::Meta::NameValue(doc) = &attribute.meta
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &doc.value
        {
            let line = text.value().trim().to_owned();
            if line.is_empty() && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
    }
    lines
}

/// Returns `text` with "[`a`]" and "[`a`](b)" replaced by "`a`".
fn strip_doc_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("[`") {
        let Some(end) = rest[start..].find("`]").map(|n| start + n) else { break };
        out.push_str(&rest[..start]);
        out.push_str(&rest[start + 1..=end]);
        rest = &rest[end + 2..];
        if rest.starts_with('(')
            && let Some(close) = rest.find(')')
        {
            rest = &rest[close + 1..];
        }
    }
    out + rest
}

/// Generated code for one parameter of the Rust function, in the closure that calls this function with Python-like arguments (`Args`).
struct ArgumentCode {
    /// Statement that reads the argument with the parameter's NumPy name into a variable.
    read: TokenStream,
    /// Expression that becomes the argument of the Rust function. It uses the variable that the statement `read` declares.
    pass: TokenStream,
}

/// Returns the type `T` of a bound `Into<T>`, if `bounds` has one.
fn target_of_into_bound(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<Type> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        generic_argument(bound.path.segments.last()?, "Into")
    })
}

/// Returns the type `Vec<T>` for a bound `IntoIterator<Item: AsRef<T>>`, if `bounds` has one.
fn vec_type_of_iterator_bound(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<TokenStream> {
    bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let segment = bound.path.segments.last().filter(|segment| segment.ident == "IntoIterator")?;
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
        let Some(GenericArgument::Constraint(item)) = arguments.args.first() else { return None };
        let of = item.bounds.iter().find_map(|bound| match bound {
            TypeParamBound::Trait(bound) => generic_argument(bound.path.segments.last()?, "AsRef"),
            _ => None,
        })?;
        Some(quote!(::std::vec::Vec<#of>))
    })
}

/// Returns the type `T` if `segment` is `name<T>`.
fn generic_argument(segment: &syn::PathSegment, name: &str) -> Option<Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(target) if segment.ident == name => Some(target.clone()),
        _ => None,
    }
}

/// Returns the owned type that is read for a parameter of type `ty`, and the expression that passes a variable of this type, `value`, to
/// the function.
fn owned_type_and_argument(ty: &Type, value: &syn::Ident) -> syn::Result<(TokenStream, TokenStream)> {
    match ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => {
                let element = &slice.elem;
                Ok((quote!(::std::vec::Vec<#element>), quote!(&#value)))
            }
            Type::Path(path) if path.path.is_ident("str") => Ok((quote!(::std::string::String), quote!(&#value))),
            owned => Ok((quote!(#owned), quote!(&#value))),
        },
        Type::ImplTrait(of) => {
            match target_of_into_bound(&of.bounds).map(|t| quote!(#t)).or_else(|| vec_type_of_iterator_bound(&of.bounds)) {
                Some(target) => Ok((target, quote!(#value))),
                None => Err(syn::Error::new_spanned(
                    ty,
                    "this type cannot be read from an argument; name one that can, such as `#[read(Vec<usize>)]`, before the parameter",
                )),
            }
        }
        Type::Path(path) => {
            let optional = path.path.segments.last().and_then(|segment| generic_argument(segment, "Option"));
            if let Some(Type::Reference(inner)) = &optional {
                let (owned, _) = owned_type_and_argument(&Type::Reference(inner.clone()), value)?;
                let borrowed = match &*inner.elem {
                    Type::Slice(_) => quote!(#value.as_deref()),
                    Type::Path(path) if path.path.is_ident("str") => quote!(#value.as_deref()),
                    _ => quote!(#value.as_ref()),
                };
                return Ok((quote!(::core::option::Option<#owned>), borrowed));
            }
            Ok((quote!(#ty), quote!(#value)))
        }
        _ => Err(syn::Error::new_spanned(ty, "this type cannot be read from an argument; implement `FromArgs` for it, or use `call = ..`")),
    }
}

/// Removes `#[read(T)]` and `#[name("n")]` from a parameter's attributes. Returns the type `T` and the name, or `None` for a missing
/// attribute.
fn take_parameter_options(attributes: &mut Vec<Attribute>) -> syn::Result<(Option<Type>, Option<LitStr>)> {
    let (mut read, mut name) = (None, None);
    for attribute in attributes.iter() {
        if attribute.path().is_ident("read") {
            read = Some(attribute.parse_args()?);
        } else if attribute.path().is_ident("name") {
            name = Some(attribute.parse_args()?);
        }
    }
    attributes.retain(|a| !a.path().is_ident("read") && !a.path().is_ident("name"));
    Ok((read, name))
}

/// Expands `#[numpy(declaration)] item`: adds the `inventory` submission of a `Function` to the item.
pub(crate) fn expand_numpy(declaration: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let declaration: NumpyDeclaration = syn::parse2(declaration)?;
    let mut function: syn::ImplItemFn = syn::parse2(item)?;
    let (path, parameters) = split_signature(&declaration.signature)?;
    let known = parameter_names(&parameters);
    let (namespace, name) = path.rsplit_once('.').unwrap_or(("", &path));
    let doc = documentation_summary(&function.attrs);
    if doc.is_empty() {
        return Err(syn::Error::new(
            function.sig.ident.span(),
            "a declared function needs a doc comment: its first paragraph is shown to users",
        ));
    }

    let mut arguments = Vec::new();
    let mut has_receiver = false;
    let mut updated = None;
    for (n, input) in function.sig.inputs.iter_mut().enumerate() {
        let value = format_ident!("argument_{n}");
        match input {
            FnArg::Receiver(_) if declaration.call.is_some() => {}
            FnArg::Receiver(receiver) => {
                has_receiver = true;
                let named = declaration.receiver.as_ref().map(LitStr::value);
                let Some(first) = named.as_ref().or(known.first()) else {
                    return Err(syn::Error::new_spanned(receiver, "the signature has no parameter for `self`"));
                };
                updated = receiver.mutability.is_some().then(|| value.clone());
                let read = quote!(let #value: ::cuprum::NdArray = ::cuprum::function::FromArgs::from_args(args, #first)?;);
                let pass = match &receiver.reference {
                    Some(_) if updated.is_some() => quote!(&mut #value),
                    Some(_) => quote!(&#value),
                    None => quote!(#value),
                };
                arguments.push(ArgumentCode { read, pass });
            }
            FnArg::Typed(typed) => {
                let (as_type, named) = take_parameter_options(&mut typed.attrs)?;
                let Pat::Ident(pattern) = &*typed.pat else {
                    return Err(syn::Error::new_spanned(&typed.pat, "a parameter of a declared function is a plain name"));
                };
                let parameter = named.map_or_else(|| pattern.ident.to_string(), |n| n.value());
                let parameter = parameter.trim_start_matches("r#");
                let is_mutable = matches!(&*typed.ty, Type::Reference(reference) if reference.mutability.is_some());
                if is_mutable && (n > 0 || as_type.is_some()) {
                    return Err(syn::Error::new_spanned(&typed.ty, "only the first parameter, an array, can be updated"));
                }
                let (target, pass) = match as_type {
                    Some(target) if matches!(&*typed.ty, Type::Reference(_)) => (quote!(#target), quote!(&#value)),
                    Some(target) => (quote!(#target), quote!(#value)),
                    None if declaration.call.is_some() => {
                        updated = is_mutable.then(|| value.clone()).or(updated);
                        continue;
                    }
                    None if is_mutable => {
                        updated = Some(value.clone());
                        (quote!(::cuprum::NdArray), quote!(&mut #value))
                    }
                    None => owned_type_and_argument(&typed.ty, &value)?,
                };
                let read = quote!(let #value: #target = ::cuprum::function::FromArgs::from_args(args, #parameter)?;);
                arguments.push(ArgumentCode { read, pass });
            }
        }
    }

    let ident = &function.sig.ident;
    let called = if has_receiver { quote!(::cuprum::NdArray::#ident) } else { quote!(#ident) };
    let call = match &declaration.call {
        Some(call) => quote!(#call),
        None => {
            let (reads, passes): (Vec<_>, Vec<_>) = arguments.into_iter().map(|a| (a.read, a.pass)).unzip();
            match &updated {
                None => quote!(|args: &::cuprum::Args| {
                    #(#reads)*
                    ::core::result::Result::Ok(::cuprum::function::IntoValue::into_value(#called(#(#passes),*)?))
                }),
                Some(updated) => quote!(|args: &::cuprum::Args| {
                    #(#reads)*
                    let mut #updated = #updated;
                    #called(#(#passes),*)?;
                    ::core::result::Result::Ok(::cuprum::function::IntoValue::into_value(#updated))
                }),
            }
        }
    };
    let updates_argument = updated.is_some();
    let aliases = &declaration.aliases;
    let is_method = declaration.is_method;
    let rust_name = ident.to_string();
    let differs = declaration.differs.as_ref().map_or_else(String::new, LitStr::value);
    let submission = quote! {
        ::cuprum::inventory::submit! {
            ::cuprum::function::Function {
                namespace: #namespace,
                name: #name,
                aliases: &[#(#aliases),*],
                parameters: {
                    static PARAMETERS: ::cuprum::function::Parameters = ::cuprum::function::Parameters::new(#parameters);
                    &PARAMETERS
                },
                doc: #doc,
                rust: concat!(module_path!(), "::", #rust_name),
                is_method: #is_method,
                differs: #differs,
                updates_argument: #updates_argument,
                call: #call,
            }
        }
    };
    let statement: syn::Stmt = syn::parse2(submission).map_err(|e| syn::Error::new(Span::call_site(), e))?;
    name_function_in_errors(&mut function, name);
    function.block.stmts.insert(0, statement);
    Ok(quote!(#function))
}

/// Wraps the body of a function that returns a `Result`, so that errors about arguments contain the name of this function, not that of a
/// function that it calls.
fn name_function_in_errors(function: &mut syn::ImplItemFn, name: &str) {
    let syn::ReturnType::Type(_, output) = &function.sig.output else { return };
    let Type::Path(path) = &**output else { return };
    if path.path.segments.last().is_none_or(|segment| segment.ident != "Result") {
        return;
    }
    let body = &function.block;
    function.block = syn::parse_quote!({
        #[allow(unused_mut)] // an updated parameter is changed through a reference
        let mut body = move || -> #output { #body };
        body().map_err(|error| error.with_function_name(#name))
    });
}

/// Expands `#[free_functions] impl NdArray { .. }` to the block and a free function for each method with `#[numpy(..)]`.
pub(crate) fn expand_free_functions(item: TokenStream) -> syn::Result<TokenStream> {
    let block: syn::ItemImpl = syn::parse2(item)?;
    let methods = block.items.iter().filter_map(|item| if let syn::ImplItem::Fn(method) = item { Some(method) } else { None });
    let functions: Vec<TokenStream> = methods.map(generate_free_function).collect::<syn::Result<_>>()?;
    Ok(quote!(#block #(#functions)*))
}

/// Returns the free function for a method with `#[numpy(..)]`, with the parameters in NumPy's order. Returns no tokens if NumPy has only an
/// `ndarray` method of this name.
fn generate_free_function(method: &syn::ImplItemFn) -> syn::Result<TokenStream> {
    for attribute in method.attrs.iter().filter(|a| a.path().is_ident("numpy")) {
        let declaration: NumpyDeclaration = attribute.parse_args()?;
        let (path, parameters) = split_signature(&declaration.signature)?;
        if path.starts_with("ndarray.") || method.sig.receiver().is_none() {
            continue;
        }
        let known = parameter_names(&parameters);
        let array = declaration.receiver.map(|n| n.value()).or(known.first().cloned()).unwrap_or_default();
        let position = known.iter().position(|name| *name == array).unwrap_or(0);
        let array = format_ident!("{}", array);
        let (mut typed, mut names) = (Vec::new(), Vec::new());
        for input in &method.sig.inputs {
            let FnArg::Typed(parameter) = input else { continue };
            let mut parameter = parameter.clone();
            take_parameter_options(&mut parameter.attrs)?;
            names.push(parameter.pat.to_token_stream());
            typed.push(parameter.to_token_stream());
        }
        typed.insert(position.min(typed.len()), quote!(#array: &NdArray));
        let (vis, ident, generics, output) = (&method.vis, &method.sig.ident, &method.sig.generics, &method.sig.output);
        let doc = documentation_summary_lines(&method.attrs).join("\n");
        let rest = format!("The function form of [`NdArray::{ident}`].\n\n# Errors\nThe errors of [`NdArray::{ident}`].");
        return Ok(quote! {
            #[doc = #doc]
            #[doc = ""]
            #[doc = #rest]
            #vis fn #ident #generics (#(#typed),*) #output {
                #array.#ident(#(#names),*)
            }
        });
    }
    Ok(TokenStream::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_have_a_path_and_parameters() {
        let literal = LitStr::new("linalg.trace(x, /, *, offset=0)", Span::call_site());
        let (path, parameters) = split_signature(&literal).unwrap();
        assert_eq!((path.as_str(), parameters.as_str()), ("linalg.trace", "x, /, *, offset=0"));
        assert_eq!(parameter_names(&parameters), ["x", "offset"]);
        assert!(split_signature(&LitStr::new("trace", Span::call_site())).is_err());
    }

    #[test]
    fn summaries_replace_links_by_their_text() {
        assert_eq!(strip_doc_links("See [`a`], [`b`](c) and [d]."), "See `a`, `b` and [d].");
    }

    #[test]
    fn free_functions_have_parameters_in_numpys_order() {
        let block = quote! {
            impl NdArray {
                /// Selects.
                #[numpy("compress(condition, a, axis=None)", receiver = "a")]
                pub fn compress(&self, condition: &NdArray, #[name("axis")] along: isize) -> Result<NdArray> { todo() }
                /// Conjugates.
                #[numpy("ndarray.conj(a)")]
                pub fn conj(&self) -> Result<NdArray> { todo() }
            }
        };
        let text = expand_free_functions(block).unwrap().to_string().replace(' ', "");
        let function = "pubfncompress(condition:&NdArray,a:&NdArray,along:isize)->Result<NdArray>{a.compress(condition,along)}";
        assert!(text.ends_with(function), "{text}");
    }

    #[test]
    fn a_function_without_documentation_is_an_error() {
        let error = expand_numpy(
            quote!("f(a)"),
            quote!(
                pub fn f(a: &NdArray) -> Result<NdArray> {
                    a.copy()
                }
            ),
        )
        .unwrap_err();
        assert!(error.to_string().contains("doc comment"), "{error}");
    }

    #[test]
    fn defaults_may_contain_commas() {
        let names = parameter_names("m, /, k=1, axes=(0, 1), *, sep=', ', parts=[(1, 2), 3]");
        assert_eq!(names, ["m", "k", "axes", "sep", "parts"]);
    }

    #[test]
    fn a_parameter_that_cannot_be_read_is_an_error() {
        let item = quote! {
            /// Documented.
            pub fn f(shape: impl IntoShape) -> Result<NdArray> { zeros(shape, DType::F64) }
        };
        let error = expand_numpy(quote!("f(shape)"), item).unwrap_err();
        assert!(error.to_string().contains("#[read("), "{error}");
    }
}

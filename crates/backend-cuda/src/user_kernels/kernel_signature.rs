//! A parser of kernel declarations, so that arguments of the wrong kind, dtype or mutability are errors.
//!
//! The parser recognises types that have one meaning in every program (`const float*`, `int`, `uint8_t`, ...). Arguments of other types are
//! checked by size only. A declaration that cannot be parsed disables the checks, but never prevents a launch.

use cuprum_core::DType;

/// A parameter in the declaration of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// The text of the declaration.
    pub text: String,
    pub kind: ParameterKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    /// A pointer or reference. `element` is `None` if the element type is not known, as for `void*` and types that the user's source
    /// defines. `writes` tells whether the kernel may write through the pointer.
    Pointer { element: Option<DType>, writes: bool },
    /// A value. The dtype is `None` if the type is not known, as for types that the user's source defines.
    Value(Option<DType>),
}

/// Parses parameters such as `const float* x, float* y, int n`. Returns `None` if a macro or a pack may stand for several parameters.
pub(super) fn parse_parameters(parameters: &str) -> Option<Vec<Parameter>> {
    let pieces: Vec<_> = split_at_commas(parameters).into_iter().map(str::trim).filter(|p| !p.is_empty() && *p != "void").collect();
    if pieces.iter().any(|piece| may_be_several_parameters(piece)) {
        return None;
    }
    let one = |text: &str| Parameter { text: text.split_whitespace().collect::<Vec<_>>().join(" "), kind: parse_parameter_kind(text) };
    Some(pieces.into_iter().map(one).collect())
}

/// Returns whether `piece`, the text between two commas, may be several parameters. The text may be a pack (`Ts... all`), a macro (a single
/// word or call such as `PARAMS` or `PARAMS(float)`), or contain a preprocessor directive.
fn may_be_several_parameters(piece: &str) -> bool {
    let head = piece.strip_suffix(')').and_then(|call| call.split('(').next()).unwrap_or(piece).trim_end();
    let is_macro = || head.chars().all(is_identifier_char) && dtype_of_cpp_type(piece).is_none();
    piece.contains("...") || piece.contains('#') || is_macro()
}

/// Returns the parameters of a kernel that `source` declares. `name` is the name or name expression of the kernel. Returns `None` if there
/// is no such kernel, if it has several declarations with different parameters, or if [`parse_parameters`] returns `None` for its
/// declaration.
pub(super) fn find_kernel_parameters(source: &str, name: &str) -> Option<Vec<Parameter>> {
    let base = name.split('<').next().unwrap_or(name).rsplit("::").next().unwrap_or(name).trim();
    let source = remove_comments(source);
    let mut found: Option<Vec<Parameter>> = None;
    for (at, keyword) in source.match_indices("__global__") {
        let Some((declared, parameters)) = parse_declaration(&source[at + keyword.len()..]) else { continue };
        if declared != base {
            continue;
        }
        let parameters = parse_parameters(parameters)?;
        let kinds = |list: &[Parameter]| list.iter().map(|p| p.kind).collect::<Vec<_>>();
        if found.as_ref().is_some_and(|other| kinds(other) != kinds(&parameters)) {
            return None;
        }
        found = Some(parameters);
    }
    found
}

/// Returns the name and the parameters of the kernel declaration in `text`, which is the source after a `__global__`. Returns `None` if the
/// declaration has no parameter list.
fn parse_declaration(text: &str) -> Option<(&str, &str)> {
    /// CUDA and compiler attributes that have parentheses.
    const ATTRIBUTES_WITH_PARENTHESES: [&str; 6] =
        ["__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__block_size__", "__attribute__", "alignas"];
    let mut from = 0;
    loop {
        let open = from + text[from..].find(['(', ';', '{'])?;
        if !text[open..].starts_with('(') {
            return None;
        }
        let close = open + find_closing_parenthesis(&text[open..])?;
        let before = text[..open].trim_end();
        let word = &before[before.trim_end_matches(is_identifier_char).len()..];
        if !ATTRIBUTES_WITH_PARENTHESES.contains(&word) {
            return (!word.is_empty()).then(|| (word, &text[open + 1..close]));
        }
        from = close + 1;
    }
}

/// Returns the index of the parenthesis that closes the first parenthesis of `text`, or `None` if there is none.
fn find_closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Splits `parameters` at the commas that are not within brackets.
fn split_at_commas(parameters: &str) -> Vec<&str> {
    let (mut depth, mut start, mut pieces) = (0, 0, Vec::new());
    for (at, c) in parameters.char_indices() {
        match c {
            '(' | '<' | '[' | '{' => depth += 1,
            ')' | '>' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(&parameters[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(&parameters[start..]);
    pieces
}

/// Returns `source` with comments replaced by spaces. Text in string literals that looks like a comment is replaced too, which does not
/// matter for declarations.
fn remove_comments(source: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(source.len()), source);
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        out.push_str(before);
        let end = match comment.as_bytes().get(1) {
            Some(b'/') => comment.find('\n').unwrap_or(comment.len()),
            Some(b'*') => comment[2..].find("*/").map_or(comment.len(), |end| end + 4),
            _ => {
                out.push('/');
                rest = &comment[1..];
                continue;
            }
        };
        out.push(' ');
        rest = &comment[end..];
    }
    out.push_str(rest);
    out
}

/// Returns the kind of the parameter that is declared by `text`.
fn parse_parameter_kind(text: &str) -> ParameterKind {
    // The default value of a C++ parameter (`int n = 1`) is not part of its type.
    let text = text.split('=').next().unwrap_or(text);
    let is_array = text.contains('[');
    let text = text.split('[').next().unwrap_or(text);
    match text.rfind('*') {
        // The parameter `float* x[]` is a pointer to pointers, so its element type `float*` keeps the `*`.
        Some(last) => parse_pointer_kind(if is_array { &text[..=last] } else { &text[..last] }),
        None if is_array => parse_pointer_kind(if dtype_of_cpp_type(text).is_some() { text } else { remove_parameter_name(text) }),
        None if text.contains('&') => ParameterKind::Pointer { element: None, writes: !text.contains("const") },
        None => ParameterKind::Value(dtype_of_cpp_type(text).or_else(|| dtype_of_cpp_type(remove_parameter_name(text)))),
    }
}

/// Returns the kind of a parameter that is a pointer to the C++ type `target`.
fn parse_pointer_kind(target: &str) -> ParameterKind {
    let writes = !split_identifiers(target).any(|w| w == "const");
    ParameterKind::Pointer { element: if target.contains('*') { None } else { dtype_of_cpp_type(target) }, writes }
}

/// Returns a parameter's declaration `text` without its last word, the name of the parameter.
fn remove_parameter_name(text: &str) -> &str {
    text.trim_end().trim_end_matches(is_identifier_char)
}

fn split_identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_identifier_char(c)).filter(|w| !w.is_empty())
}

/// Returns whether `c` may be part of a C++ identifier, which may have letters of any script.
fn is_identifier_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the dtype of `cpp_type`, if this C++ type has one meaning in every program. Integer sizes are those of 64-bit Linux.
fn dtype_of_cpp_type(cpp_type: &str) -> Option<DType> {
    let cpp_type = cpp_type.replace("cuda::std::", "").replace("std::", "").replace("thrust::", "");
    let complex: String = cpp_type.chars().filter(|c| !c.is_whitespace()).collect();
    let complex = complex.trim_start_matches("const");
    match complex.trim_end_matches("const") {
        "complex<float>" => return Some(DType::C64),
        "complex<double>" => return Some(DType::C128),
        _ => {}
    }
    if let Some((_, own)) = cpp_type.split_once("cuprum::") {
        let own = split_identifiers(own).next().unwrap_or_default();
        return DType::ALL.into_iter().find(|&d| crate::codegen::ctype(d) == own);
    }
    if cpp_type.contains(['<', ':', '&', '*']) {
        return None;
    }
    const IGNORED_QUALIFIERS: [&str; 5] = ["const", "volatile", "__restrict__", "__grid_constant__", "int"];
    let mut is_int = false;
    let mut rest: Vec<&str> =
        split_identifiers(&cpp_type).inspect(|w| is_int |= *w == "int").filter(|w| !IGNORED_QUALIFIERS.contains(w)).collect();
    rest.sort_unstable();
    Some(match (rest.as_slice(), is_int) {
        (["bool"], false) => DType::Bool,
        (["char"] | ["char", "signed"] | ["int8_t"], false) => DType::I8,
        (["char", "unsigned"] | ["uint8_t"], false) => DType::U8,
        (["short"] | ["short", "signed"], _) | (["int16_t"], false) => DType::I16,
        (["short", "unsigned"], _) | (["uint16_t"], false) => DType::U16,
        ([], true) | (["signed"], _) | (["int32_t"], false) => DType::I32,
        (["unsigned"], _) | (["uint32_t"], false) => DType::U32,
        (["long"] | ["long", "long"] | ["long", "signed"] | ["long", "long", "signed"], _) => DType::I64,
        (["int64_t"] | ["ptrdiff_t"] | ["ssize_t"] | ["intptr_t"], false) => DType::I64,
        (["long", "unsigned"] | ["long", "long", "unsigned"], _) => DType::U64,
        (["uint64_t"] | ["size_t"] | ["uintptr_t"], false) => DType::U64,
        (["__half"] | ["half"], false) => DType::F16,
        (["__nv_bfloat16"] | ["nv_bfloat16"], false) => DType::BF16,
        (["float"], false) => DType::F32,
        (["double"], false) => DType::F64,
        (["cuComplex"] | ["cuFloatComplex"], false) => DType::C64,
        (["cuDoubleComplex"], false) => DType::C128,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(parameters: &str) -> Vec<ParameterKind> {
        parse_parameters(parameters).unwrap().into_iter().map(|p| p.kind).collect()
    }

    const fn reads(dtype: DType) -> ParameterKind {
        ParameterKind::Pointer { element: Some(dtype), writes: false }
    }

    const fn writes(dtype: DType) -> ParameterKind {
        ParameterKind::Pointer { element: Some(dtype), writes: true }
    }

    const fn value(dtype: DType) -> ParameterKind {
        ParameterKind::Value(Some(dtype))
    }

    #[test]
    fn pointers_and_values_of_known_types() {
        let spmv = "const int *row, const int* __restrict__ col, float const* data, const float x[], float *y, int n";
        let expected = [reads(DType::I32), reads(DType::I32), reads(DType::F32), reads(DType::F32), writes(DType::F32), value(DType::I32)];
        assert_eq!(kinds(spmv), expected);
        let text = "unsigned char* a, long long b, unsigned c, size_t d, std::uint16_t const e, signed char f, unsigned long int*g, bool h";
        let expected = [
            writes(DType::U8),
            value(DType::I64),
            value(DType::U32),
            value(DType::U64),
            value(DType::U16),
            value(DType::I8),
            writes(DType::U64),
            value(DType::Bool),
        ];
        assert_eq!(kinds(text), expected);
        let addresses = |writes| ParameterKind::Pointer { element: None, writes };
        assert_eq!(kinds("const float* x[], float* y[4], float* const* z"), [addresses(false), addresses(true), addresses(false)]);
        assert_eq!(kinds("const cuda::std::complex<float>* z, complex<double> w"), [reads(DType::C64), value(DType::C128)]);
        assert_eq!(
            kinds("const cuprum::bf16* p, cuprum::c64 z, cuprum::own s"),
            [reads(DType::BF16), value(DType::C64), ParameterKind::Value(None)]
        );
        assert_eq!(
            kinds("__half* const p, const __nv_bfloat16* q, double = 2.0"),
            [writes(DType::F16), reads(DType::BF16), value(DType::F64)]
        );
        assert_eq!(
            kinds("unsigned, int, const float*, double[]"),
            [value(DType::U32), value(DType::I32), reads(DType::F32), writes(DType::F64)]
        );
    }

    #[test]
    fn unknown_types_are_taken_as_they_come() {
        let any = |writes| ParameterKind::Pointer { element: None, writes };
        let text = "T* a, const void* b, float4* c, Params p, const __grid_constant__ Params q, float** r, T s, pair<int, float> t";
        let none = ParameterKind::Value(None);
        assert_eq!(kinds(text), [any(true), any(false), any(true), none, none, any(true), none, none]);
        assert_eq!([parse_parameters(""), parse_parameters(" void ")], [Some(vec![]), Some(vec![])]);
        assert_eq!(parse_parameters("const  float *\n x").unwrap()[0].text, "const float * x");
    }

    #[test]
    fn what_may_be_several_parameters_is_not_counted() {
        for several in
            ["PARAMS", "int n, PARAMS", "PARAMS(float, 3), int n", "Ts... all", "Ts *... all, int n", "int a,\n#ifdef B\nint b\n#endif"]
        {
            assert_eq!(parse_parameters(several), None, "{several}");
        }
        assert_eq!(kinds("alignas(16) Own p, unsigned"), [ParameterKind::Value(None), value(DType::U32)]);
        let source = "__global__ void k(PARAMS) {} template <class... Ts> __global__ void pack(int n, Ts... all) {}";
        assert_eq!([find_kernel_parameters(source, "k"), find_kernel_parameters(source, "pack<int, float>")], [None, None]);
    }

    #[test]
    fn names_of_every_script() {
        let none = ParameterKind::Value(None);
        assert_eq!(kinds("Params α, T λ, const float* größe, int 数"), [none, none, reads(DType::F32), value(DType::I32)]);
        assert_eq!(parse_parameters("λ"), None);
        let source = "__global__ void naïve(float* x) {} __global__ __launch_bounds__(β(λ)) void k(int é) {} /* ü */ __global__ é(";
        assert_eq!(find_kernel_parameters(source, "naïve").unwrap()[0].kind, writes(DType::F32));
        assert_eq!(find_kernel_parameters(source, "k").unwrap()[0].kind, value(DType::I32));
        assert_eq!(find_kernel_parameters(source, "ve"), None);
    }

    #[test]
    fn kernels_are_found_by_name() {
        let source = r#"
            // __global__ void k(double* commented_out);
            template <class T> __global__ void __launch_bounds__(256, 2) scale(T* x, float by) { use(x); }
            namespace my { extern "C" __global__ __launch_bounds__(N(3)) void k(const float* x, /* of y */ float* y, int n) {} }
            static __global__ void twice(int a); __global__ void twice(float a) {}
            __global__ void same(int a); __global__ void same(int b) { int q = 1 / 2; }
            __global__ KERNEL;
        "#;
        assert_eq!(
            find_kernel_parameters(source, "k").unwrap().iter().map(|p| p.kind).collect::<Vec<_>>(),
            kinds("const float*, float*, int")
        );
        assert_eq!(find_kernel_parameters(source, "scale<float>").unwrap().len(), 2);
        assert_eq!(find_kernel_parameters(source, "my::k").unwrap().len(), 3);
        assert_eq!(find_kernel_parameters(source, "same").unwrap()[0].text, "int b");
        assert_eq!(
            [
                find_kernel_parameters(source, "twice"),
                find_kernel_parameters(source, "none"),
                find_kernel_parameters("__global__ void open(", "open")
            ],
            [None, None, None]
        );
        assert_eq!(find_kernel_parameters("/* never closed", "k"), None);
    }
}

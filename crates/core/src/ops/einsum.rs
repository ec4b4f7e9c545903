//! `einsum` and `einsum_path`: parses subscripts, chooses the order of pairwise contractions, and runs them.

use std::fmt;

use smallvec::SmallVec;

use crate::array::NdArray;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{Dims, check_ndim};
use crate::ops::contract::{EINSUM, LabeledOperand, align_axes_with_output, contract_pair, simplify_contraction_operand};
use crate::ops::function::IntoValue;
use crate::ops::manipulation::with_array_refs;
use crate::ops::python_value::{Args, Value};
use crate::plan::contract::Mode;
use cuprum_macros::numpy;

/// Calls [`einsum`] with Python-like arguments. The argument `optimize` has no effect, because pairs of operands are always chosen by cost.
fn einsum_from_args(args: &Args) -> Result<Value> {
    let (subscripts, operands) = read_einsum_arguments(args)?;
    einsum(&subscripts, operands).map(Value::Array)
}

/// Reads subscripts and operands. In NumPy's second form, a list of integers follows each operand, and another list can follow for the
/// output.
fn read_einsum_arguments(args: &Args) -> Result<(String, Vec<NdArray>)> {
    let op = args.op();
    let first = match args.get("subscripts") {
        Some(Value::Str(subscripts)) => {
            return Ok((subscripts.clone(), args.rest().iter().map(|v| v.array(op)).collect::<Result<_>>()?));
        }
        first => first,
    };
    let values: Vec<&Value> = first.into_iter().chain(args.rest()).collect();
    let (pairs, output) = values.as_chunks::<2>();
    if pairs.is_empty() {
        return Err(Error::value(op, "expected subscripts and operands, or operands that are each followed by a list of integers"));
    }
    let letters = |list: &Value| -> Result<String> {
        let subscripts = if matches!(list, Value::Scalar(_)) { None } else { list.to_isizes(op).ok() };
        let subscripts = subscripts.ok_or_else(|| Error::value(op, "the subscripts of an operand must be integers in a list"))?;
        // Letters in the order of their codes, because the axes of an implicit output are in that order.
        let letter = |n: isize| match n {
            0..26 => Ok(char::from(b'A' + n as u8)),
            26..52 => Ok(char::from(b'a' + (n - 26) as u8)),
            _ => Err(Error::value(op, format!("subscript {n} is not in the range from 0 to 51"))),
        };
        subscripts.into_iter().map(letter).collect()
    };
    let terms = pairs.iter().map(|[_, list]| letters(list)).collect::<Result<Vec<_>>>()?.join(",");
    let subscripts = match output.first() {
        Some(list) => format!("{terms}->{}", letters(list)?),
        None => terms,
    };
    Ok((subscripts, pairs.iter().map(|[operand, _]| operand.array(op)).collect::<Result<_>>()?))
}

/// Parsed subscripts: the modes of each operand and of the output, and the extent of each mode.
struct ParsedEinsumSubscripts {
    /// The modes (einsum subscripts) of each operand, one per axis. Axes in `stretched` have none.
    inputs: Vec<SmallVec<[Mode; 6]>>,
    /// For each operand, the axes of extent 1 that would broadcast against a larger extent of the same mode. They are removed before the
    /// contraction.
    stretched: Vec<Dims>,
    output: SmallVec<[Mode; 6]>,
    extents: Dims,
}

/// Returns an error that quotes `subscripts` and gives the reason `why`.
fn einsum_subscripts_error(subscripts: &str, why: impl std::fmt::Display) -> Error {
    Error::value("einsum", format!("'{subscripts}': {why}"))
}

/// The subscripts of one operand or of the output: letters before and after an optional ellipsis.
struct EinsumTerm {
    before: Vec<char>,
    after: Option<Vec<char>>,
}

/// Parses `text`, one term of `subscripts`.
fn parse_einsum_term(subscripts: &str, text: &str) -> Result<EinsumTerm> {
    let letters = |part: &str| -> Result<Vec<char>> {
        match part.chars().find(|c| !c.is_ascii_alphabetic()) {
            Some('.') => Err(einsum_subscripts_error(subscripts, "an ellipsis is three dots, at most one per term")),
            Some(c) => Err(einsum_subscripts_error(subscripts, format!("'{c}' is not a subscript; use letters"))),
            None => Ok(part.chars().collect()),
        }
    };
    match text.split_once("...") {
        None => Ok(EinsumTerm { before: letters(text)?, after: None }),
        Some((before, after)) => Ok(EinsumTerm { before: letters(before)?, after: Some(letters(after)?) }),
    }
}

/// Maximum number of operands. The time to choose the order of the pairwise contractions grows with about the cube
/// of this number.
const MAX_EINSUM_OPERANDS: usize = 512;

/// Parses subscripts and checks them against the operands' shapes.
fn parse_subscripts(subscripts: &str, operands: &[&NdArray]) -> Result<ParsedEinsumSubscripts> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (text.as_str(), None),
    };
    if operands.len() > MAX_EINSUM_OPERANDS {
        return Err(einsum_subscripts_error(
            subscripts,
            format!("{} operands are too many (at most {MAX_EINSUM_OPERANDS})", operands.len()),
        ));
    }
    let terms: Vec<EinsumTerm> = left.split(',').map(|t| parse_einsum_term(subscripts, t)).collect::<Result<_>>()?;
    if terms.len() != operands.len() {
        return Err(einsum_subscripts_error(subscripts, format!("{} terms for {} operands", terms.len(), operands.len())));
    }
    let mut letters: Vec<char> = Vec::new();
    let mut mode_of = |c: char| match letters.iter().position(|l| *l == c) {
        Some(i) => i as Mode,
        None => {
            letters.push(c);
            letters.len() as Mode - 1
        }
    };
    // Ellipsis axes are numbered from the right, so that they broadcast. Modes 0 to 51 are letters, and modes from 52 on
    // are ellipsis axes.
    let mut widest = 0;
    let mut inputs = Vec::new();
    for (t, a) in terms.iter().zip(operands) {
        let named = t.before.len() + t.after.as_ref().map_or(0, Vec::len);
        let dots = match (&t.after, a.ndim().checked_sub(named)) {
            (Some(_), Some(d)) => d,
            (None, Some(0)) => 0,
            _ => return Err(einsum_subscripts_error(subscripts, format!("{named} subscripts for an operand of {} dimensions", a.ndim()))),
        };
        widest = widest.max(dots);
        let mut modes: SmallVec<[Mode; 6]> = t.before.iter().map(|&c| mode_of(c)).collect();
        modes.extend((0..dots).map(|i| (52 + dots - 1 - i) as Mode));
        modes.extend(t.after.iter().flatten().map(|&c| mode_of(c)));
        inputs.push(modes);
    }
    let dots = (0..widest).rev().map(|i| (52 + i) as Mode);
    let output: SmallVec<[Mode; 6]> = match right {
        Some(r) => {
            let t = parse_einsum_term(subscripts, r)?;
            let all: Vec<char> = t.before.iter().chain(t.after.iter().flatten()).copied().collect();
            if let Some(c) = all.iter().find(|c| !letters.contains(c)) {
                return Err(einsum_subscripts_error(subscripts, format!("output subscript '{c}' is in no operand")));
            }
            if let Some(c) = all.iter().enumerate().find(|(i, c)| all[..*i].contains(c)).map(|(_, c)| c) {
                return Err(einsum_subscripts_error(subscripts, format!("output subscript '{c}' appears twice")));
            }
            if widest > 0 && t.after.is_none() {
                return Err(einsum_subscripts_error(subscripts, "operands have axes under an ellipsis, so the output needs one"));
            }
            let mode_of = |c: &char| letters.iter().position(|l| l == c).unwrap_or(0) as Mode;
            let middle: Vec<Mode> = if t.after.is_some() { dots.collect() } else { vec![] };
            t.before.iter().map(mode_of).chain(middle).chain(t.after.iter().flatten().map(mode_of)).collect()
        }
        None => {
            let count = |m: Mode| inputs.iter().flatten().filter(|x| **x == m).count();
            let mut once: Vec<(char, Mode)> =
                letters.iter().enumerate().map(|(i, c)| (*c, i as Mode)).filter(|(_, m)| count(*m) == 1).collect();
            once.sort_unstable();
            dots.chain(once.into_iter().map(|(_, m)| m)).collect()
        }
    };
    check_ndim("einsum", output.len())?;
    let mut extents: Dims = SmallVec::from_elem(1, 52 + widest);
    for (modes, a) in inputs.iter().zip(operands) {
        for (axis, (&mode, &n)) in modes.iter().zip(a.shape()).enumerate() {
            // Axes of different operands broadcast against each other. But if a subscript repeats within one operand, its axes must have
            // equal extents.
            if let Some(first) = modes[..axis].iter().position(|&m| m == mode)
                && a.shape()[first] != n
            {
                let message = format!("'{subscripts}': a repeated subscript has extents {} and {n} in one operand", a.shape()[first]);
                return Err(Error::shape("einsum", message, &[a.shape()]));
            }
            let have = &mut extents[mode as usize];
            if *have == 1 {
                *have = n;
            } else if n != 1 && n != *have {
                let shapes: Vec<_> = operands.iter().map(|o| o.shape()).collect();
                return Err(Error::shape("einsum", format!("'{subscripts}': a subscript has extents {have} and {n}"), &shapes));
            }
        }
    }
    let mut stretched = Vec::with_capacity(inputs.len());
    for (modes, a) in inputs.iter_mut().zip(operands) {
        let axes: Dims = (0..modes.len()).filter(|&axis| a.shape()[axis] == 1 && extents[modes[axis] as usize] != 1).collect();
        *modes = (0..modes.len()).filter(|axis| !axes.contains(axis)).map(|axis| modes[axis]).collect();
        stretched.push(axes);
    }
    Ok(ParsedEinsumSubscripts { inputs, stretched, output, extents })
}

/// Evaluates Einstein summation over one or more operands (`numpy.einsum`).
///
/// Subscripts may repeat (diagonals), contain ellipses, and omit the output. The operands are any list of arrays or references. They are
/// converted to their promoted dtype, which is also the dtype of the result. More than two operands are contracted in pairs, in the order
/// that [`einsum_path`] returns. Intermediate results of float16 and bfloat16 are float32.
///
/// In `eval`, lists of integers can take the place of subscripts: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
///
/// # Errors
/// More than 512 operands, subscripts that do not match the operands, extents of one subscript that do not broadcast, or arrays on
/// different devices.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, einsum};
/// # fn main() -> cuprum::Result<()> {
/// let a = NdArray::from_vec([1.0f64, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(einsum("ij,jk->ik", [&a, &a])?.to_vec::<f64>()?, [7.0, 10.0, 15.0, 22.0]);
/// assert_eq!(einsum("ii", [&a])?.item()?, 5.0);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "einsum(subscripts, *operands, optimize=True)",
    differs = "without the keywords of ufuncs such as `dtype`, and without `...` in lists of integers",
    call = einsum_from_args
)]
pub fn einsum(subscripts: &str, operands: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<NdArray> {
    with_array_refs("einsum", operands, |operands| contract_operands(subscripts, operands))
}

fn contract_operands(subscripts: &str, operands: &[&NdArray]) -> Result<NdArray> {
    if operands.is_empty() {
        return Err(Error::value("einsum", "at least one operand is needed"));
    }
    let ParsedEinsumSubscripts { inputs, stretched, output, extents } = parse_subscripts(subscripts, operands)?;
    let dtype = DType::promote_all(operands.iter().map(|a| a.dtype())).unwrap_or(DType::F64);
    // Intermediate results of a 16-bit dtype could overflow and would be rounded. NumPy computes in float32 and rounds once.
    let has_intermediate = match &inputs[..] {
        [_] => false,
        [a, b] => [(a, b), (b, a)].iter().any(|(x, y)| x.iter().any(|m| !y.contains(m) && !output.contains(m))),
        _ => true,
    };
    let computed = if dtype.is_float() && dtype.itemsize() == 2 && has_intermediate { DType::F32 } else { dtype };
    let promoted = |((a, modes), stretched): ((&&NdArray, _), Dims)| {
        let a = if stretched.is_empty() { (*a).clone() } else { a.squeeze(&stretched[..])? };
        Ok(LabeledOperand { array: a.astype(computed)?, modes })
    };
    let mut terms: Vec<LabeledOperand> = operands.iter().zip(inputs).zip(stretched).map(promoted).collect::<Result<_>>()?;
    let mut modes: Vec<SmallVec<[Mode; 6]>> = terms.iter().map(|term| term.modes.clone()).collect();
    while terms.len() > 1 {
        let (i, j) = choose_greedy_pair(&modes, &output, &extents);
        let kept = replace_pair_by_contraction(&mut modes, i, j, &output);
        let (b, a) = (terms.remove(j), terms.remove(i));
        let array = contract_pair(EINSUM, a, b, &kept, &extents)?;
        terms.push(LabeledOperand { array, modes: kept });
    }
    let Some(last) = terms.pop() else { return Err(Error::value("einsum", "no operand is left")) };
    let last = simplify_contraction_operand(last, &[], &output, &extents, computed)?;
    let shape: Dims = output.iter().map(|&m| extents[m as usize]).collect();
    align_axes_with_output(&last, &output)?.broadcast_to(shape)?.astype(dtype)
}

/// The modes (einsum subscripts) of an operand, one for each axis.
type OperandModes = SmallVec<[Mode; 6]>;

/// Returns the modes of the pair `a`, `b` that also occur in `output` or in one of the remaining operands `rest`, in order of appearance.
fn modes_kept_by_contraction<'a>(
    a: &[Mode],
    b: &[Mode],
    rest: impl Iterator<Item = &'a OperandModes> + Clone,
    output: &[Mode],
) -> OperandModes {
    let mut kept = SmallVec::new();
    for &m in a.iter().chain(b) {
        if !kept.contains(&m) && (output.contains(&m) || rest.clone().any(|modes| modes.contains(&m))) {
            kept.push(m);
        }
    }
    kept
}

/// Removes the operands `i < j` from `terms`, and appends the modes of their contraction. Returns these modes.
fn replace_pair_by_contraction(terms: &mut Vec<OperandModes>, i: usize, j: usize, output: &[Mode]) -> OperandModes {
    let (b, a) = (terms.remove(j), terms.remove(i));
    let kept = if terms.is_empty() { output.into() } else { modes_kept_by_contraction(&a, &b, terms.iter(), output) };
    terms.push(kept.clone());
    kept
}

/// Returns the product of the extents of the einsum subscripts `modes`.
fn total_mode_extent(modes: &[Mode], extents: &[usize]) -> f64 {
    modes.iter().map(|&m| extents[m as usize] as f64).product()
}

/// Returns the number of index combinations that a contraction of `a` and `b` visits.
fn index_combination_count(a: &[Mode], b: &[Mode], extents: &[usize]) -> f64 {
    let mut all: SmallVec<[Mode; 12]> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    all.dedup();
    total_mode_extent(&all, extents)
}

/// Returns the pair of `terms` whose contraction reduces the total size of the operands most. Among pairs with the same reduction, returns
/// the one with the fewest index combinations.
///
/// This is the greedy strategy of opt_einsum (Smith and Gray, "opt_einsum", JOSS 3(26), 2018).
fn choose_greedy_pair(terms: &[OperandModes], output: &[Mode], extents: &[usize]) -> (usize, usize) {
    let size = |modes: &[Mode]| total_mode_extent(modes, extents);
    let sizes: Vec<f64> = terms.iter().map(|modes| size(modes)).collect();
    // Number of uses of each mode (einsum subscript) by the terms and the output. A contraction keeps a mode that another term or the
    // output also uses.
    let mut uses: Vec<usize> = vec![0; extents.len()];
    for &m in terms.iter().flatten().chain(output) {
        uses[m as usize] += 1;
    }
    let mut best = ((0, 1), (f64::INFINITY, f64::INFINITY));
    for i in 0..terms.len() {
        for j in i + 1..terms.len() {
            let (a, b) = (&terms[i], &terms[j]);
            let own_uses = |m: Mode| a.iter().chain(b).filter(|x| **x == m).count();
            let mut kept = OperandModes::new();
            for &m in a.iter().chain(b) {
                if uses[m as usize] > own_uses(m) && !kept.contains(&m) {
                    kept.push(m);
                }
            }
            let reduction = size(&kept) - sizes[i] - sizes[j];
            if reduction > best.1.0 {
                continue;
            }
            let score = (reduction, index_combination_count(a, b, extents));
            if score < best.1 {
                best = ((i, j), score);
            }
        }
    }
    best.0
}

/// The order in which [`einsum`] contracts its operands, as [`einsum_path`] returns it.
#[derive(Clone, Debug, PartialEq)]
pub struct EinsumPath {
    /// For each contraction, the positions of its operands in the current list of operands. The contraction removes them from the list, and
    /// appends its result.
    pub contractions: Vec<Vec<usize>>,
    /// Number of multiplications and additions if one loop combines all operands.
    pub naive_operations: f64,
    /// Number of multiplications and additions of all [`contractions`](EinsumPath::contractions).
    pub operations: f64,
    /// Number of elements of the largest array that a contraction produces, including the output.
    pub largest_intermediate: f64,
    subscripts: String,
}

impl fmt::Display for EinsumPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  Complete contraction:  {}", self.subscripts)?;
        writeln!(f, "      Naive FLOP count:  {:.3e}", self.naive_operations)?;
        writeln!(f, "  Optimized FLOP count:  {:.3e}", self.operations)?;
        writeln!(f, "   Theoretical speedup:  {:.3e}", self.naive_operations / self.operations)?;
        write!(f, "  Largest intermediate:  {:.3e} elements", self.largest_intermediate)
    }
}

impl IntoValue for EinsumPath {
    fn into_value(self) -> Value {
        let text = self.to_string();
        let pairs = self.contractions.into_iter().map(|pair| Value::tuple(pair.into_iter().map(Value::from)));
        let list: Vec<Value> = std::iter::once(Value::Str("einsum_path".into())).chain(pairs).collect();
        Value::tuple([Value::List(list.into()), Value::Str(text)])
    }
}

fn einsum_path_from_args(args: &Args) -> Result<Value> {
    let (subscripts, operands) = read_einsum_arguments(args)?;
    einsum_path(&subscripts, operands).map(IntoValue::into_value)
}

/// Returns the order in which [`einsum`] contracts these operands in pairs, and its cost (`numpy.einsum_path`). Nothing is computed.
///
/// The result prints as a report. In `eval`, the function returns a tuple: the list `['einsum_path', (0, 1), ..]` and the report.
///
/// # Errors
/// The errors of [`einsum`] for subscripts and shapes.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{DType, einsum_path, ones};
/// # fn main() -> cuprum::Result<()> {
/// let (a, b, c) = (ones((2, 9), DType::F64)?, ones((9, 8), DType::F64)?, ones((8, 2), DType::F64)?);
/// let path = einsum_path("ij,jk,kl->il", [&a, &b, &c])?;
/// assert_eq!(path.contractions, [[0, 1], [0, 1]]);
/// assert!(path.operations < path.naive_operations);
/// # Ok(())
/// # }
/// ```
#[numpy(
    "einsum_path(subscripts, *operands, optimize='greedy')",
    differs = "the greedy order of `einsum` for every `optimize`, and a shorter report",
    call = einsum_path_from_args
)]
pub fn einsum_path(subscripts: &str, operands: impl IntoIterator<Item: AsRef<NdArray>>) -> Result<EinsumPath> {
    with_array_refs("einsum_path", operands, |operands| {
        if operands.is_empty() {
            return Err(Error::value("einsum_path", "at least one operand is needed"));
        }
        let ParsedEinsumSubscripts { inputs: mut terms, output, extents, .. } = parse_subscripts(subscripts, operands)?;
        let all: Vec<Mode> = terms.iter().flatten().copied().collect();
        // Each index combination takes a multiplication for each factor after the first, and an addition if an index is summed.
        let cost = |a: &[Mode], b: &[Mode], factors: usize, kept: &[Mode]| {
            let is_sum = a.iter().chain(b).any(|m| !kept.contains(m));
            index_combination_count(a, b, &extents) * (factors.saturating_sub(1) + usize::from(is_sum)).max(1) as f64
        };
        let mut path = EinsumPath {
            naive_operations: cost(&all, &[], terms.len(), &output),
            operations: 0.0,
            largest_intermediate: total_mode_extent(&output, &extents),
            contractions: Vec::new(),
            subscripts: subscripts.chars().filter(|c| !c.is_whitespace()).collect(),
        };
        if let [only] = &terms[..] {
            path.contractions.push(vec![0]);
            path.operations = cost(only, &[], 1, &output);
        }
        while terms.len() > 1 {
            let (i, j) = choose_greedy_pair(&terms, &output, &extents);
            let (a, b) = (terms[i].clone(), terms[j].clone());
            let kept = replace_pair_by_contraction(&mut terms, i, j, &output);
            path.operations += cost(&a, &b, 2, &kept);
            path.largest_intermediate = path.largest_intermediate.max(total_mode_extent(&kept, &extents));
            path.contractions.push(vec![i, j]);
        }
        Ok(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_subscripts_are_errors() {
        for text in ["ij,jk", "i->j", "i1", "i..j", "ii->ii", ""] {
            assert!(parse_subscripts(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn many_operands_have_a_path() {
        let path = |count: usize| {
            let a = NdArray::from_vec(vec![1.0; 4], [2, 2])?;
            let pairs: Vec<&str> = ["ab", "bc", "cd", "da"].into_iter().cycle().take(count).collect();
            einsum_path(&format!("{}->", pairs.join(",")), vec![&a; count])
        };
        assert_eq!(path(200).unwrap().contractions.len(), 199);
        assert!(path(MAX_EINSUM_OPERANDS + 1).is_err());
    }

    #[test]
    fn pairs_keep_the_modes_that_others_use() {
        let terms: Vec<OperandModes> = [[0, 1], [1, 2], [2, 3]].into_iter().map(|modes| modes.into_iter().collect()).collect();
        // The second pair has the smallest result: 2 x 3 elements instead of 9 x 5.
        assert_eq!(choose_greedy_pair(&terms, &[0, 3], &[9, 2, 5, 3]), (1, 2));
    }
}

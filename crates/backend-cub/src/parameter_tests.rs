//! Compares the parameter structs with the kernels of the CUDA sources.

use std::collections::BTreeMap;

use crate::kernel_parameter_lists::{KernelParameters, ParameterCheck};
use crate::{histogram, reduce, scan, segment, select, sort};

fn declared<P: KernelParameters>() -> (&'static str, Vec<ParameterCheck>) {
    (P::KERNEL_NAME, P::declaration())
}

/// The parameter lists of all kernels, by kernel name.
fn declarations() -> BTreeMap<&'static str, Vec<ParameterCheck>> {
    BTreeMap::from([
        declared::<histogram::launch::HistogramParams>(),
        declared::<reduce::launch::ReduceChunksParams>(),
        declared::<reduce::launch::BlockPerRowParams>(),
        declared::<reduce::launch::WarpPerRowParams>(),
        declared::<reduce::launch::EightLanesPerRowParams>(),
        declared::<scan::launch::ScanRowsParams>(),
        declared::<scan::launch::ScanColumnsParams>(),
        declared::<segment::launch::FindTileSegmentsParams>(),
        declared::<segment::launch::ReduceSegmentTilesParams>(),
        declared::<segment::launch::CombineSegmentPartialsParams>(),
        declared::<select::launch::SelectParams>(),
        declared::<sort::launch::SortRowsParams>(),
        declared::<sort::launch::SelectDigitParams>(),
        declared::<sort::launch::GatherTopElementsParams>(),
        declared::<sort::launch::RankTopElementsParams>(),
        declared::<sort::launch::CountPartitionElementsParams>(),
        declared::<sort::launch::WritePartitionsParams>(),
        declared::<sort::launch::CountDigitsParams>(),
        declared::<sort::launch::DigitOffsetsParams>(),
        declared::<sort::launch::SortPassParams>(),
    ])
}

/// Splits a C++ parameter list into types and names.
fn split_parameters(list: &str) -> Vec<(String, String)> {
    let (mut depth, mut parts) = (0, vec![String::new()]);
    for c in list.chars() {
        depth += i32::from(c == '<') - i32::from(c == '>');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().unwrap().push(c),
        }
    }
    let qualifiers = ["const", "__restrict__", "__grid_constant__"];
    let words = |part: &str| part.split_whitespace().filter(|w| !qualifiers.contains(w)).map(str::to_owned).collect::<Vec<_>>();
    let split = |part: String| {
        let mut words = words(&part);
        let name = words.pop().unwrap();
        (words.join(" "), name)
    };
    parts.into_iter().map(split).collect()
}

/// The kernels of a CUDA source, with their parameter lists.
fn kernels(source: &str) -> Vec<(String, Vec<(String, String)>)> {
    let kernel = |text: &str| {
        let text = match text.trim_start().strip_prefix("void") {
            Some(text) => text.trim_start(),
            None => panic!("not a kernel: {text}"),
        };
        let text = text.strip_prefix("__launch_bounds__").map_or(text, |bounds| bounds.split_once(')').unwrap().1);
        let (name, rest) = text.split_once('(').unwrap();
        (name.trim().to_owned(), split_parameters(rest.split_once(')').unwrap().0))
    };
    source.split("extern \"C\" __global__").skip(1).map(kernel).collect()
}

#[test]
fn parameter_structs_match_the_cuda_sources() {
    let declarations = declarations();
    let mut found = BTreeMap::new();
    for (name, source) in crate::sources_for_compile_check() {
        for (kernel, parameters) in kernels(&source) {
            let declared = declarations.get(kernel.as_str()).unwrap_or_else(|| panic!("{name}: no parameter struct for {kernel}"));
            let names = |list: &[ParameterCheck]| list.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
            assert_eq!(names(declared), parameters.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>(), "{kernel}");
            for ((field, matches), (cuda_type, _)) in declared.iter().zip(&parameters) {
                assert!(matches(cuda_type), "{kernel}: {field} is {cuda_type}");
            }
            found.insert(kernel, ());
        }
    }
    assert_eq!(found.len(), declarations.len(), "a parameter struct without a kernel");
}

#[test]
fn parameter_lists_are_split_at_top_level_commas() {
    let list = split_parameters("Params p, const __grid_constant__ Axes<Index, RANK, INPUTS> axes, const u32* __restrict__ from");
    let pairs = [("Params", "p"), ("Axes<Index, RANK, INPUTS>", "axes"), ("u32*", "from")];
    assert_eq!(list, pairs.map(|(a, b)| (a.to_owned(), b.to_owned())));
}

//! Checks that views share the buffer of their base.

use std::sync::Arc;

use cuprum::{DType, NdArray, Result, arange_as, broadcast_to, expand_dims, flip, moveaxis, s};

use crate::checks::Check;

type View = fn(&NdArray) -> Result<NdArray>;

const VIEWS: [(&str, View); 13] = [
    ("transpose", |a| a.t()),
    ("permute_dims", |a| a.transpose([2, 0, 1])),
    ("swapaxes", |a| a.swapaxes(0, -1)),
    ("moveaxis", |a| moveaxis(a, 0, 2)),
    ("reshape", |a| a.reshape([6, 4])),
    ("ravel", |a| a.ravel()),
    ("reshape of rows", |a| a.index(s![.., .., ..;2])?.reshape([6, 2])),
    ("squeeze", |a| a.index(s![..1])?.squeeze(None)),
    ("expand_dims", |a| expand_dims(a, (0, 4))),
    ("flip", |a| flip(a, None)),
    ("broadcast_to", |a| broadcast_to(a, [5, 2, 3, 4])),
    ("diagonal", |a| a.diagonal(1, 0, 2)),
    ("index", |a| a.index(s![1, ..;-1, 1..3])),
];

pub fn checks() -> Vec<Check> {
    let shared = VIEWS.iter().map(|(name, view)| {
        Check::plain(format!("views: {name} shares the buffer"), move |_| {
            let a = arange_as(0, 24, 1, DType::F32).and_then(|a| a.reshape([2, 3, 4])).map_err(|e| e.to_string())?;
            let buffers = (|| Ok((a.stored()?, view(&a)?.stored()?)))().map_err(|e: cuprum::Error| e.to_string())?;
            if Arc::ptr_eq(buffers.0.buffer(), buffers.1.buffer()) { Ok(()) } else { Err("it is a copy".into()) }
        })
    });
    let copies = Check::plain("views: a reshape that no view can do copies", |_| {
        let copied = || {
            let a = arange_as(0, 24, 1, DType::F32)?.reshape([4, 6])?;
            let (b, c) = (a.t()?.reshape([24])?, a.t()?.contiguous()?);
            Ok::<_, cuprum::Error>((b.to_vec::<f32>()?, c.to_vec::<f32>()?))
        };
        let (reshaped, contiguous) = copied().map_err(|e| e.to_string())?;
        crate::checks::same(reshaped, contiguous)
    });
    shared.chain([copies]).collect()
}

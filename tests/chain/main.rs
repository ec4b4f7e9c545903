//! The chain, tested with made-up accelerators: who is asked, in which order, what is told, and what happens when all decline.

mod answers;
mod auto;
mod devices;
mod environment;
mod graphs;
mod made_up;
mod order;
mod own_kernels;
mod profiler;
mod registration;
mod table;
mod takes;
mod third_party_op;

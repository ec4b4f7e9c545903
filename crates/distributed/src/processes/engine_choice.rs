//! The choice of the communication engine, which rank 0 makes from the offers of all ranks.

use cuprum_core::Device;
use cuprum_core::device::collectives::CollectiveLibrary;
use cuprum_core::settings::mesh::MeshEngine;

use crate::processes::handshake::LibraryOffer;

/// The communication engine of a mesh over several processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    /// TCP, with the reason why no communication library is used.
    Tcp { reason: String },
    /// The communication library of the devices, such as NCCL, with the identifier of the group that the ranks join.
    Library { name: String, id: Vec<u8> },
}

/// Returns the [`LibraryOffer`] of a rank on `device`. Loads the communication library of the device, unless `setting` selects TCP.
pub(crate) fn make_library_offer(device: Device, setting: MeshEngine) -> LibraryOffer {
    let kind = device.kind().name();
    let none = |detail: String| LibraryOffer { kind: kind.into(), detail, ..LibraryOffer::default() };
    if setting == MeshEngine::Tcp {
        return none("CUPRUM_MESH_ENGINE is tcp".into());
    }
    let Some(library) = CollectiveLibrary::library_for_device_kind(kind) else {
        return none(format!("devices of kind {kind} have no such library"));
    };
    let device_id = || (library.device_id)(device).map_err(|e| e.to_string());
    match (library.load)().and_then(|version| Ok((version, device_id()?))) {
        Ok((detail, device_id)) => LibraryOffer { kind: kind.into(), library: library.name.into(), detail, device_id },
        Err(reason) => none(reason),
    }
}

/// Returns why the ranks with these offers cannot use a communication library, or `None` if they can.
pub(crate) fn reason_library_is_unusable(offers: &[LibraryOffer]) -> Option<String> {
    let first = offers.first()?;
    for (rank, offer) in offers.iter().enumerate() {
        if offer.library.is_empty() {
            return Some(format!("rank {rank}: {}", offer.detail));
        }
        if (&offer.library, &offer.kind, &offer.detail) != (&first.library, &first.kind, &first.detail) {
            return Some(format!("rank {rank} has {} {}, rank 0 has {} {}", offer.library, offer.detail, first.library, first.detail));
        }
        if let Some(other) = offers[..rank].iter().position(|other| other.device_id == offer.device_id) {
            return Some(format!("ranks {other} and {rank} are on the same device"));
        }
    }
    None
}

/// Returns the communication engine that all ranks can use, given their offers by rank.
pub(crate) fn choose_engine(offers: &[LibraryOffer]) -> EngineChoice {
    if let Some(reason) = reason_library_is_unusable(offers) {
        return EngineChoice::Tcp { reason };
    }
    let library = offers.first().and_then(|offer| CollectiveLibrary::library_for_device_kind(&offer.kind));
    match library.map(|library| (library.name, (library.new_group_id)())) {
        Some((name, Ok(id))) => EngineChoice::Library { name: name.into(), id },
        Some((name, Err(e))) => EngineChoice::Tcp { reason: format!("rank 0: {name}: {e}") },
        None => EngineChoice::Tcp { reason: "rank 0: the library is not registered".into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(id: u8) -> LibraryOffer {
        LibraryOffer { kind: "gpu".into(), library: "lib".into(), detail: "2.1".into(), device_id: vec![id] }
    }

    #[test]
    fn a_library_needs_equal_versions_and_different_devices() {
        let reason = |offers: &[LibraryOffer]| reason_library_is_unusable(offers).unwrap_or_default();
        assert_eq!(reason(&[offer(1), offer(2)]), "");
        assert_eq!(reason(&[offer(1), offer(2), offer(1)]), "ranks 0 and 2 are on the same device");
        let missing = LibraryOffer { library: String::new(), detail: "libx.so is missing".into(), ..offer(2) };
        assert_eq!(reason(&[offer(1), missing.clone()]), "rank 1: libx.so is missing");
        assert_eq!(reason(&[offer(1), LibraryOffer { detail: "2.2".into(), ..offer(2) }]), "rank 1 has lib 2.2, rank 0 has lib 2.1");
        assert_eq!(choose_engine(&[missing]), EngineChoice::Tcp { reason: "rank 0: libx.so is missing".into() });
        let unknown = EngineChoice::Tcp { reason: "rank 0: the library is not registered".into() };
        assert_eq!(choose_engine(&[offer(1), offer(2)]), unknown);
    }

    #[test]
    fn the_host_has_no_library() {
        assert_eq!(make_library_offer(Device::CPU, MeshEngine::Auto).detail, "devices of kind cpu have no such library");
        assert_eq!(make_library_offer(Device::CPU, MeshEngine::Tcp).detail, "CUPRUM_MESH_ENGINE is tcp");
    }
}

//! The names of variables that a script changes.

/// The variables that scripts have assigned or updated in place.
#[derive(Default)]
pub(crate) struct AssignedNames {
    /// Each name once, in order of first assignment.
    pub names: Vec<String>,
    /// The last name of the current statement.
    pub last: Option<String>,
}

impl AssignedNames {
    pub(crate) fn record(&mut self, name: &str) {
        if !self.names.iter().any(|assigned| assigned == name) {
            self.names.push(name.into());
        }
        self.last = Some(name.into());
    }
}

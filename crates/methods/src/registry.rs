//! The methods by name. A new method is its file, its preset and one line in [`BUILT_IN`].

use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use engine::{Result, StoreBuilder};

use crate::config::MethodConfig;
use crate::method::Method;
use crate::names::UnknownName;

/// Whether a file has a tensor whose name begins with a prefix.
pub type HasTensor<'a> = &'a dyn Fn(&str) -> bool;

/// What a method is, before a network is built.
#[derive(Debug)]
pub struct Registration {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// The name in tables.
    pub title: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Its published settings: TOML over the defaults.
    pub preset: &'static str,
    /// Declares its layers on top of a backbone; refuses a configuration it cannot work with.
    pub init: fn(&MethodConfig, &mut StoreBuilder) -> Result<Box<dyn Method>>,
    /// Whether it is told the motion between the views, so that it is to learn poses. (A supervised network: by its task.)
    pub learns_pose: bool,
    /// Whether a file with such tensors is of this method.
    pub recognise: fn(HasTensor<'_>) -> bool,
}

/// The methods of the paper, in the order of its tables.
const BUILT_IN: [&Registration; 9] = [
    &crate::supervised::METHOD,
    &crate::vicreg::METHOD,
    &crate::simclr::METHOD,
    &crate::simclr_augself::METHOD,
    &crate::sen::METHOD,
    &crate::equimod::METHOD,
    &crate::sie::METHOD,
    &crate::capsie::METHOD,
    &crate::equicaps::METHOD,
];

/// Methods that others have added.
static ADDED: RwLock<Vec<&'static Registration>> = RwLock::new(Vec::new());

/// Adds a method to those that configurations can name. One of the same name must not exist.
pub fn register(method: &'static Registration) -> std::result::Result<MethodName, String> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if BUILT_IN.iter().chain(added.iter()).any(|known| known.name == method.name) {
        return Err(format!("there is a method {:?} already", method.name));
    }
    added.push(method);
    Ok(MethodName(method))
}

/// A method.
#[derive(Clone, Copy)]
pub struct MethodName(&'static Registration);

impl MethodName {
    /// One network per task, trained end to end.
    pub const SUPERVISED: Self = Self(&crate::supervised::METHOD);
    /// Invariance with variance and covariance regularisation.
    pub const VICREG: Self = Self(&crate::vicreg::METHOD);
    /// Contrastive.
    pub const SIMCLR: Self = Self(&crate::simclr::METHOD);
    /// Contrastive, with a head that predicts the transformation.
    pub const SIMCLR_AUGSELF: Self = Self(&crate::simclr_augself::METHOD);
    /// Contrastive on the predictor's output.
    pub const SEN: Self = Self(&crate::sen::METHOD);
    /// Contrastive twice: an invariant and an equivariant embedding.
    pub const EQUIMOD: Self = Self(&crate::equimod::METHOD);
    /// Split representation, hypernetwork predictor.
    pub const SIE: Self = Self(&crate::sie::METHOD);
    /// Capsules with SIE's hypernetwork.
    pub const CAPSIE: Self = Self(&crate::capsie::METHOD);
    /// Capsules whose poses are transformed directly.
    pub const EQUICAPS: Self = Self(&crate::equicaps::METHOD);

    /// All of them: those of the paper in its order, then those added.
    pub fn all() -> Vec<Self> {
        let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
        BUILT_IN.iter().chain(added.iter()).map(|&method| Self(method)).collect()
    }

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The name in tables.
    pub fn title(self) -> &'static str {
        self.0.title
    }

    /// What it is, in a line.
    pub fn summary(self) -> &'static str {
        self.0.summary
    }

    /// Its published settings: TOML over the defaults.
    pub fn preset(self) -> &'static str {
        self.0.preset
    }

    /// Whether it is told the motion between the views.
    pub fn learns_pose(self) -> bool {
        self.0.learns_pose
    }

    /// Whether a file with such tensors is of this method.
    pub fn recognises(self, has: HasTensor<'_>) -> bool {
        (self.0.recognise)(has)
    }

    /// Declares its layers on top of a backbone.
    pub(crate) fn init(self, config: &MethodConfig, builder: &mut StoreBuilder) -> Result<Box<dyn Method>> {
        (self.0.init)(config, builder)
    }
}

impl PartialEq for MethodName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for MethodName {}

impl std::fmt::Debug for MethodName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0.title)
    }
}

impl std::fmt::Display for MethodName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.0.name)
    }
}

impl FromStr for MethodName {
    type Err = UnknownName;

    fn from_str(name: &str) -> std::result::Result<Self, UnknownName> {
        let all = Self::all();
        all.iter().copied().find(|method| method.name() == name).ok_or_else(|| UnknownName {
            what: "method",
            name: name.to_owned(),
            known: all.iter().map(|method| method.name()).collect(),
        })
    }
}

crate::serde_by_name!(MethodName);

//! Objects in the form that a GPU renders.

use std::sync::Arc;

use render::cuda::Shot;
use scene::Latents;

use crate::object::Object;
use crate::source::CpuRenderer;
use crate::work::{Failure, ViewSource};

/// Objects for a GPU; images on the host are for people to look at, and rendered there.
#[derive(Debug)]
pub struct DeviceObjects {
    /// Loads the objects.
    pub loader: CpuRenderer,
}

/// An object as a GPU wants it.
#[derive(Debug)]
pub struct DeviceObject {
    id: Object,
    object: Arc<render::cuda::Object>,
}

impl DeviceObject {
    /// One view of it.
    pub fn shot(&self, latents: Latents) -> Shot {
        Shot { object: Some(Arc::clone(&self.object)), latents }
    }
}

impl ViewSource for DeviceObjects {
    type Prepared = DeviceObject;

    fn prepare(&self, object: &Object) -> std::result::Result<DeviceObject, String> {
        let mesh = self.loader.load(object)?;
        Ok(DeviceObject { id: object.clone(), object: Arc::new(render::cuda::Object::of(&mesh)) })
    }

    fn render(
        &self,
        prepared: &DeviceObject,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let mesh = self.loader.prepare(&prepared.id).map_err(Failure::Object)?;
        self.loader.render(&mesh, latents, side)
    }

    fn objects(&self) -> Option<&CpuRenderer> {
        Some(&self.loader)
    }
}

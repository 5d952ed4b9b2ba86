//! Objects as a GPU renders them.

use std::sync::Arc;

use dataset::work::{Failure, ViewSource};
use dataset::{Object, ObjectSet};
use render::{PreparedMesh, Quality};
use scene::Latents;

/// Objects for a GPU; pictures on the host are for people to look at.
#[derive(Debug)]
pub struct DeviceObjects {
    /// The objects.
    pub set: ObjectSet,
    /// How well they are rendered.
    pub quality: Quality,
}

/// An object as the GPU wants it.
#[derive(Debug)]
pub struct DeviceObject {
    id: Object,
    pub(super) object: Arc<render::cuda::Object>,
}

impl ViewSource for DeviceObjects {
    type Prepared = DeviceObject;

    fn prepare(&self, object: &Object) -> std::result::Result<DeviceObject, String> {
        let mesh = self.set.load(object, |_| ())?;
        Ok(DeviceObject { id: object.clone(), object: Arc::new(render::cuda::Object::of(&mesh)) })
    }

    fn render(
        &self,
        prepared: &DeviceObject,
        latents: &[Latents],
        side: usize,
    ) -> std::result::Result<Vec<u8>, Failure> {
        let mesh = self.set.load(&prepared.id, |_| ()).map_err(Failure::Object)?;
        let mesh = PreparedMesh::new(&mesh);
        let picture = |latents| render::render(Some(&mesh), latents, side as u32, self.quality).pixels;
        Ok(latents.iter().flat_map(picture).collect())
    }
}

//! Live views: the objects of the data, ready to be rendered at any pose. Data whose objects are not here (photographs,
//! datasets without their meshes) have no stage.

use std::collections::HashMap;

use dataset::work::ViewSource;
use dataset::{CpuRenderer, CudaRenderer, Object, ObjectSet, OnTheFly, OnTheFlyOptions, Views};
use render::Quality;
use scene::{LatentRanges, Latents};

use crate::error::{Error, Result};

/// Objects kept ready, the ones used last.
const KEPT_OBJECTS: usize = 48;

/// Objects that can be rendered.
pub struct Stage {
    objects: Objects,
    /// The number of each of the data's objects among those here.
    numbers: Vec<Option<usize>>,
}

enum Objects {
    Cpu(OnTheFly<CpuRenderer>),
    /// One quality for all: it is fast enough.
    Cuda(OnTheFly<CudaRenderer>),
}

impl Stage {
    /// A stage with the objects `set` for `views`, on the GPU of `renderer` or on the CPU.
    pub fn new(set: ObjectSet, views: &dyn Views, renderer: Option<render::cuda::Renderer>) -> Result<Self> {
        let ids = set.ids();
        let options = OnTheFlyOptions {
            views: 1,
            held_out_views: 0,
            side: views.side(),
            seed: 0,
            ranges: LatentRanges::BENCH,
            memory: 0,
            prepared: KEPT_OBJECTS,
            ready: true,
        };
        let loader = CpuRenderer::new(set, Quality::Standard);
        let objects = match renderer {
            None => Objects::Cpu(OnTheFly::new(loader, &ids, options)),
            Some(renderer) => {
                Objects::Cuda(OnTheFly::new(CudaRenderer::new(loader, renderer)?, &ids, options))
            }
        };
        let here = match &objects {
            Objects::Cpu(objects) => objects.objects(),
            Objects::Cuda(objects) => objects.objects(),
        };
        let by_id: HashMap<String, usize> =
            here.iter().enumerate().map(|(number, object)| (object.id(), number)).collect();
        let number = |object: &Object| by_id.get(&object.id()).copied();
        let numbers: Vec<Option<usize>> = views.objects().iter().map(number).collect();
        if numbers.iter().all(Option::is_none) {
            return Err(Error::Request(
                "none of the data's objects is among the meshes: live views need the same CLASS/OBJECT names"
                    .to_owned(),
            ));
        }
        Ok(Self { objects, numbers })
    }

    /// Whether the data's object of this number can be rendered.
    pub fn has(&self, object: usize) -> bool {
        self.numbers.get(object).copied().flatten().is_some()
    }

    /// The object at this pose, `side * side` RGB pixels.
    pub fn render(&self, object: usize, latents: &Latents, side: usize, quality: Quality) -> Result<Vec<u8>> {
        let number = self.numbers.get(object).copied().flatten();
        let number = number.ok_or_else(|| Error::Request(format!("object {object} has no mesh here")))?;
        match &self.objects {
            Objects::Cpu(objects) => {
                let prepared = objects.prepared(number)?;
                Ok(render::render(Some(&prepared), latents, side as u32, quality).pixels)
            }
            Objects::Cuda(objects) => {
                let prepared = objects.prepared(number)?;
                let rendered = objects.source().render(&prepared, std::slice::from_ref(latents), side);
                rendered.map_err(|failure| Error::Request(failure.to_string()))
            }
        }
    }
}

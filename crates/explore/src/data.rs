//! The data that the runs are looked at with: views, what is known about them, and a stage where their objects are here.

use std::path::Path;
use std::sync::Arc;

use dataset::card::{Card, Format};
use dataset::jpeg::{self, ChannelOrder};
use dataset::{DataSpec, Split, Views};
use evaluate::GroundTruth;
use evaluate::features::data_key;
use pose::{Deformation, Part, Space, ViewPose};
use render::Quality;
use scene::Latents;
use serde_json::{Value, json};
use train::Config;

use crate::error::{Error, Result};
use crate::run::space_name;
use crate::scene_query::SceneQuery;
use crate::stage::Stage;

/// All views, and the objects behind them.
pub struct Data {
    /// The views.
    pub views: Arc<dyn Views>,
    /// What is known about them; rows are in its order.
    pub truth: GroundTruth,
    /// Where they can be rendered anew.
    pub stage: Option<Stage>,
    /// A hash of them.
    pub key: String,
    /// What they are called on a command line.
    name: String,
    /// Whether every view is a file `CLASS/OBJECT/image_N.jpg`.
    is_files: bool,
}

impl Data {
    /// Opens the data that `config` names. `meshes` is where the meshes of a dataset lie, for live views.
    pub fn open(
        config: &Config,
        meshes: Option<&Path>,
        renderer: Option<render::cuda::Renderer>,
        warn: &mut dyn FnMut(String),
    ) -> Result<Self> {
        let views = train::data::open_views(config, warn)?;
        let truth = GroundTruth::read(&*views);
        // Photographs have no objects behind them, even where they are pictures of some.
        let set = match views.space() {
            Space::Object => train::objects::behind(config, meshes)?,
            Space::Image => None,
        };
        let stage = set.map(|set| Stage::new(set, &*views, renderer)).transpose()?;
        let key = data_key(&*views)?;
        let is_files = match config.data.parse() {
            Ok(DataSpec::Folder(folder)) => Card::read(&folder).ok().flatten().is_some_and(|card| {
                card.settings.format == Format::Files && card.settings.imported().is_none()
            }),
            _ => false,
        };
        Ok(Self { views, truth, stage, key, name: config.data.clone(), is_files })
    }

    /// The pixels of a view, `side * side` RGB: the stored image, or a live one.
    pub fn pixels(
        &self,
        query: &SceneQuery,
        latents: &Latents,
        side: usize,
        quality: Quality,
    ) -> Result<Vec<u8>> {
        match (query.view, &self.stage) {
            (Some(view), _) => {
                let mut pixels = vec![0; side * side * 3];
                self.views.image(query.object, view, side, &mut pixels)?;
                Ok(pixels)
            }
            (None, Some(stage)) => stage.render(query.object, latents, side, quality),
            (None, None) => Err(Error::Request(self.not_live().unwrap_or_default().to_owned())),
        }
    }

    /// The pose of a view: of a stored one as the data know it.
    pub fn pose(&self, query: &SceneQuery, latents: &Latents) -> ViewPose {
        match query.view {
            Some(view) => self.truth.poses[self.truth.row(query.object, view)],
            None => latents.pose(),
        }
    }

    /// Why views cannot be rendered at other poses, where they cannot.
    pub fn not_live(&self) -> Option<&'static str> {
        match (&self.stage, self.truth.space) {
            (Some(_), _) => None,
            (None, Space::Object) => Some(
                "these data have no meshes here, so only their stored views can be shown (--meshes names them)",
            ),
            (None, Space::Image) => Some(
                "these data are photographs, so only their stored views (warps that are known) can be shown",
            ),
        }
    }

    /// What the page needs to know about the data.
    pub fn describe(&self) -> Value {
        let views = &*self.views;
        let object = |(number, object): (usize, &dataset::Object)| {
            json!({
                "id": object.id(),
                "class": object.label,
                "views": views.views_in(number),
                "held_out_from": views.views_of(Split::Val, number).start,
                "held_out": views.split(Split::Val).contains(&number),
                "live": self.stage.as_ref().is_some_and(|stage| stage.has(number)),
            })
        };
        let classes: Vec<&str> = views.classes().iter().map(|class| class.name.as_str()).collect();
        // The largest angle about an axis among the stored views: beyond it a network is asked for something new.
        let angles = self.truth.poses.iter().flat_map(|pose| pose.rotation.to_radians());
        let most_degrees = angles.map(|angle| angle.abs().to_degrees()).fold(0.0, f64::max);
        let render = match self.name.parse() {
            Ok(DataSpec::Procedural(size)) => Some(format!(
                "equicaps render --procedural {}x{} --size {} --out views",
                size.classes,
                size.objects,
                views.side()
            )),
            _ => None,
        };
        json!({
            "name": self.name,
            "word": dataset::shell_word(Path::new(&self.name)).to_string(),
            "description": views.description(),
            "split": views.split_by().name(),
            "side": views.side(),
            "live": self.stage.is_some(),
            "not_live": self.not_live(),
            "space": space_name(self.truth.space),
            "parts": Part::ALL.into_iter().filter(|part| self.truth.has[*part]).collect::<Vec<_>>(),
            "uniform_scale": self.truth.poses.iter().all(|pose| is_uniform(&pose.deformation)),
            "has_light": views.has_light(),
            "has_poses": self.truth.has_poses,
            "files": self.is_files,
            "most_degrees": most_degrees,
            "render": render,
            "classes": classes,
            "objects": views.objects().iter().enumerate().map(object).collect::<Vec<_>>(),
            "rows": self.truth.index.total(),
        })
    }
}

/// Whether one number is the scale along all axes.
fn is_uniform(deformation: &Deformation) -> bool {
    let [x, y, z] = deformation.log_scale;
    (x - y).abs() < 1e-9 && (x - z).abs() < 1e-9
}

/// A JPEG of `side * side` RGB pixels.
pub fn to_jpeg(pixels: &[u8], side: usize) -> Result<Vec<u8>> {
    let side = u16::try_from(side).map_err(|_| Error::Request(format!("{side} pixels are too many")))?;
    jpeg::encode(pixels, side, ChannelOrder::Rgb).map_err(Error::Request)
}

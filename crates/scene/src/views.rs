//! Lists of views with given latents: a JSON array of records, each naming the image to make, the mesh (or none:
//! the empty scene) and the scene parameters. The reference renders are described this way, and so are views that
//! a person wants to see again.
//!
//! Paths are relative to a root that the reader of the file chooses; absolute paths and `..` are refused.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::camera::Camera;
use crate::latents::{LatentError, Latents, Shape};

/// One view to render.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewRecord {
    /// Where the image belongs, relative to the root.
    pub image: PathBuf,
    /// The mesh file, relative to the root; `None` is the empty scene.
    pub mesh: Option<PathBuf>,
    /// Object rotation about X, Y, Z in radians (extrinsic xyz).
    pub rotation_xyz: [f64; 3],
    /// Hue of the floor in `[0, 1]`.
    pub floor_hue: f64,
    /// Polar angle of the spot light from +Z.
    pub spot_theta: f64,
    /// Azimuth of the spot light.
    pub spot_phi: f64,
    /// Hue of the spot light in `[0, 1]`.
    pub spot_hue: f64,
    /// Object-frame translation; missing in 3DIEBench.
    #[serde(default)]
    pub translation_xyz: Option<[f64; 3]>,
    /// Factors along X, Y, Z; missing where the object keeps its shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_xyz: Option<[f64; 3]>,
    /// Shears xy, xz, yz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shear: Option<[f64; 3]>,
    /// Distance of the camera from the origin; the published one where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_distance: Option<f64>,
    /// Angle of the camera above the floor in radians; the published one where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub camera_elevation: Option<f64>,
    /// Samples a pixel of the renderer that made the reference; kept, not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
    /// What kind of object it shows (`plain`, `special` ...), where the list says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// Why a list of views cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ViewsError {
    /// The file cannot be read.
    #[error("cannot read the views file {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not a list of view records.
    #[error("{path} is not a list of views (expected a JSON array of records): {source}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Line, column and what was wrong.
        source: serde_json::Error,
    },
    /// A path leaves the root.
    #[error("{path}, record {index}: the {field} path {value} must be relative and must not contain `..`")]
    Path {
        /// The file.
        path: PathBuf,
        /// Position in the list, from 0.
        index: usize,
        /// `image` or `mesh`.
        field: &'static str,
        /// The refused path.
        value: PathBuf,
    },
    /// A latent is not a finite number, or a scale not above zero.
    #[error("{path}, record {index}: the latents must be finite numbers, and scales above 0")]
    Latents {
        /// The file.
        path: PathBuf,
        /// Position in the list, from 0.
        index: usize,
    },
    /// A camera from which nothing can be seen.
    #[error("{path}, record {index}: {source}")]
    Camera {
        /// The file.
        path: PathBuf,
        /// Position in the list, from 0.
        index: usize,
        /// What is wrong with it.
        source: LatentError,
    },
}

impl ViewRecord {
    /// The scene parameters of this view.
    pub fn latents(&self) -> Latents {
        Latents {
            rotation: self.rotation_xyz,
            floor_hue: self.floor_hue,
            spot_theta: self.spot_theta,
            spot_phi: self.spot_phi,
            spot_hue: self.spot_hue,
            translation: self.translation_xyz,
            shape: (self.scale_xyz.is_some() || self.shear.is_some())
                .then(|| Shape { scale: self.scale_xyz.unwrap_or([1.0; 3]), shear: self.shear }),
            camera: (self.camera_distance.is_some() || self.camera_elevation.is_some()).then(|| Camera {
                distance: self.camera_distance.unwrap_or(Camera::PUBLISHED.distance),
                elevation: self.camera_elevation.unwrap_or(Camera::PUBLISHED.elevation),
            }),
        }
    }

    fn is_finite(&self) -> bool {
        let scalars = [self.floor_hue, self.spot_theta, self.spot_phi, self.spot_hue];
        let translation = self.translation_xyz.unwrap_or_default();
        let (scale, shear) = (self.scale_xyz.unwrap_or([1.0; 3]), self.shear.unwrap_or_default());
        let all = scalars.iter().chain(&self.rotation_xyz).chain(&translation).chain(&scale).chain(&shear);
        all.clone().all(|value| value.is_finite()) && scale.iter().all(|factor| *factor > 0.0)
    }
}

/// Reads the list of views in `path`.
pub fn read_views(path: &Path) -> Result<Vec<ViewRecord>, ViewsError> {
    let bytes =
        std::fs::read(path).map_err(|source| ViewsError::Read { path: path.to_path_buf(), source })?;
    parse_views(&bytes, path)
}

/// Parses a list of views; `path` names it in errors.
pub fn parse_views(bytes: &[u8], path: &Path) -> Result<Vec<ViewRecord>, ViewsError> {
    let records: Vec<ViewRecord> = serde_json::from_slice(bytes)
        .map_err(|source| ViewsError::Format { path: path.to_path_buf(), source })?;
    for (index, record) in records.iter().enumerate() {
        let refuse = |field, value: &Path| ViewsError::Path {
            path: path.to_path_buf(),
            index,
            field,
            value: value.to_path_buf(),
        };
        if !stays_below_root(&record.image) {
            return Err(refuse("image", &record.image));
        }
        if let Some(mesh) = record.mesh.as_deref().filter(|mesh| !stays_below_root(mesh)) {
            return Err(refuse("mesh", mesh));
        }
        if !record.is_finite() {
            return Err(ViewsError::Latents { path: path.to_path_buf(), index });
        }
        record.latents().check_camera().map_err(|source| ViewsError::Camera {
            path: path.to_path_buf(),
            index,
            source,
        })?;
    }
    Ok(records)
}

/// Whether `path` names a file below the folder it is relative to, whatever the platform's separators.
fn stays_below_root(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let foreign = text.contains('\\') || text.contains(':');
    let normal = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    !foreign && normal && path.file_name().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<ViewRecord>, ViewsError> {
        parse_views(text.as_bytes(), Path::new("views.json"))
    }

    fn record(image: &str, mesh: &str) -> String {
        format!(
            r#"[{{"image": "{image}", "mesh": {mesh}, "rotation_xyz": [1, 2, 3], "floor_hue": 0.1,
               "spot_theta": 0.2, "spot_phi": 0.3, "spot_hue": 0.4, "samples": 100}}]"#
        )
    }

    #[test]
    fn records_become_latents() {
        let views = parse(&record("png/a.png", "\"meshes/a.obj\"")).unwrap();
        assert_eq!(views[0].mesh.as_deref(), Some(Path::new("meshes/a.obj")));
        let latents = views[0].latents();
        assert_eq!((latents.rotation, latents.spot_hue, latents.translation), ([1.0, 2.0, 3.0], 0.4, None));
        assert!(parse(&record("a.png", "null")).unwrap()[0].mesh.is_none());
        let scaled = record("a.png", "null").replace("\"samples\"", "\"scale_xyz\": [1, 2, 3], \"samples\"");
        let shape = parse(&scaled).unwrap()[0].latents().shape.unwrap();
        assert_eq!((shape.scale, shape.shear), ([1.0, 2.0, 3.0], None));
        let flat = scaled.replace("[1, 2, 3], \"samples\"", "[1, 0, 3], \"samples\"");
        assert!(parse(&flat).unwrap_err().to_string().contains("scales above 0"));
        let above = record("a.png", "null").replace("\"samples\"", "\"camera_elevation\": 1.5, \"samples\"");
        let camera = parse(&above).unwrap()[0].latents().camera.unwrap();
        assert_eq!((camera.distance, camera.elevation), (2.5, 1.5));
        let below = parse(&above.replace("1.5", "-1.5")).unwrap_err().to_string();
        assert!(
            below.contains("record 0: the camera at") && below.ends_with("is below the floor"),
            "{below}"
        );
    }

    #[test]
    fn paths_that_leave_the_root_are_refused() {
        for bad in ["/a.png", "../a.png", "b/../../a.png", "", "."] {
            assert!(
                matches!(parse(&record(bad, "null")), Err(ViewsError::Path { field: "image", .. })),
                "{bad}"
            );
        }
        let error = parse(&record("a.png", "\"/etc/a.obj\"")).unwrap_err();
        assert!(error.to_string().contains("record 0") && error.to_string().contains("/etc/a.obj"));
        assert!(parse(&record("a.png", "\"c:\\\\a.obj\"")).is_err());
    }

    #[test]
    fn malformed_files_say_where() {
        assert!(parse("{}").unwrap_err().to_string().contains("line 1"));
        assert!(parse(&record("a.png", "null").replace("0.1", "\"red\"")).is_err());
        assert!(parse(&record("a.png", "null").replace("0.1", "1e999")).is_err());
        let slip = record("a.png", "null").replace("\"samples\"", "\"camera_elevatoin\": 1.5, \"samples\"");
        let error = parse(&slip).unwrap_err().to_string();
        assert!(error.contains("`camera_elevatoin`") && error.contains("`camera_elevation`"), "{error}");
    }
}

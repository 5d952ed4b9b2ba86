//! Folders in the format of the BOP challenge: scenes with `scene_gt.json` beside `rgb/`. A pose is from the model to an
//! OpenCV camera, in millimetres; an object is a model (`obj_id`), in a class of its own. Images are cut around the box of
//! `scene_gt_info.json` where there is one, and views of which less than a tenth is seen are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::image_file::read_regular;
use crate::import::fit::Region;
use crate::import::rotation::{Conventions, Given, PoseFrame};
use crate::import::rows::{Row, Rows};

const TRUTH: &str = "scene_gt.json";
const INFO: &str = "scene_gt_info.json";
/// The share of an object that must be seen.
const LEAST_VISIBLE: f64 = 0.1;

/// One object in one image.
#[derive(Deserialize)]
#[allow(non_snake_case)]
struct Truth {
    cam_R_m2c: Vec<f64>,
    cam_t_m2c: Vec<f64>,
    obj_id: u64,
}

/// Where it is seen.
#[derive(Deserialize)]
struct Info {
    bbox_obj: [f64; 4],
    #[serde(default)]
    visib_fract: Option<f64>,
}

/// The scenes in `root`: itself, or the folders in it.
fn scenes(root: &Path) -> Vec<PathBuf> {
    if root.join(TRUTH).is_file() {
        return vec![root.to_path_buf()];
    }
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut scenes: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.join(TRUTH).is_file()).collect();
    scenes.sort();
    scenes
}

/// Whether `root` is such a folder.
pub fn is_bop(root: &Path) -> bool {
    !scenes(root).is_empty()
}

/// All objects in all images of all scenes below `root`.
pub fn read(root: &Path) -> Result<Rows> {
    let conventions = Conventions { frame: PoseFrame::Opencv, scale: 0.001, ..Conventions::default() };
    let mut found = Found::default();
    for scene in scenes(root) {
        found.scene(root, &scene, &conventions)?;
    }
    let Found { rows, hidden, boxed, whole } = found;
    // How many, the card says when it is known which of them can be used.
    if rows.is_empty() {
        return Err(Error::content(root, "its scenes show no objects"));
    }
    let mut notes = Vec::new();
    if boxed {
        notes.push(format!("views are cut around the object's box (bbox_obj of {INFO})"));
    }
    if whole {
        notes.push(format!("views of scenes without {INFO} are whole images"));
    }
    if hidden > 0 {
        notes.push(format!(
            "{hidden} views are left out, of which less than a tenth is seen (visib_fract of {INFO})"
        ));
    }
    Ok(Rows {
        source: root.to_path_buf(),
        folder: root.to_path_buf(),
        rows,
        convention:
            "cam_R_m2c, from the object to a camera with x right, y down, z forward (OpenCV); cam_t_m2c in \
                     millimetres, stored in metres"
                .to_owned(),
        notes,
        prefers_views: true,
    })
}

#[derive(Default)]
struct Found {
    rows: Vec<Row>,
    hidden: usize,
    boxed: bool,
    whole: bool,
}

impl Found {
    fn scene(&mut self, root: &Path, scene: &Path, conventions: &Conventions) -> Result<()> {
        let truth_path = scene.join(TRUTH);
        let truth: BTreeMap<u64, Vec<Truth>> = read_json(&truth_path)?;
        let info_path = scene.join(INFO);
        let info: Option<BTreeMap<u64, Vec<Info>>> =
            if info_path.is_file() { Some(read_json(&info_path)?) } else { None };
        for (image, objects) in truth {
            let infos = match &info {
                None => None,
                Some(all) => {
                    Some(all.get(&image).filter(|infos| infos.len() == objects.len()).ok_or_else(|| {
                        let message = format!(
                            "expected {} boxes for image {image}, as {TRUTH} has objects",
                            objects.len()
                        );
                        Error::content(&info_path, message)
                    })?)
                }
            };
            let file = image_file(root, scene, image)?;
            for (index, object) in objects.iter().enumerate() {
                let place = format!("image {image}, object {index}");
                let wrong = |message: String| Error::content(&truth_path, format!("{place}: {message}"));
                let numbers = |values: &[f64], expected: usize, name: &str| match values {
                    values if values.len() == expected && values.iter().all(|value| value.is_finite()) => {
                        Ok(())
                    }
                    _ => Err(wrong(format!("{name} has {} numbers, expected {expected}", values.len()))),
                };
                numbers(&object.cam_R_m2c, 9, "cam_R_m2c")?;
                numbers(&object.cam_t_m2c, 3, "cam_t_m2c")?;
                let matrix = std::array::from_fn(|i| std::array::from_fn(|j| object.cam_R_m2c[3 * i + j]));
                let translation = std::array::from_fn(|k| object.cam_t_m2c[k]);
                let pose = conventions
                    .pose(Given::Matrix(matrix), Some(translation))
                    .map_err(|message| wrong(message.replace("r11 to r33 are", "cam_R_m2c is")))?;
                let info = infos.map(|infos| &infos[index]);
                if info.is_some_and(|info| info.visib_fract.is_some_and(|seen| seen < LEAST_VISIBLE)) {
                    self.hidden += 1;
                    continue;
                }
                match info {
                    Some(_) => self.boxed = true,
                    None => self.whole = true,
                }
                let name = format!("obj_{:06}", object.obj_id);
                self.rows.push(Row {
                    place: format!(
                        "{}, {place}",
                        scene.strip_prefix(root).unwrap_or(scene).join(TRUTH).display()
                    ),
                    file: file.clone(),
                    class: name.clone(),
                    object: name,
                    // Several of one model may be in an image.
                    view: Some(self.rows.len() as u64),
                    split: None,
                    pose: Some(pose),
                    light: None,
                    region: info.map(|info| Region(info.bbox_obj)),
                });
            }
        }
        Ok(())
    }
}

/// The image of a number, relative to `root`; where there is none, what it should be called.
fn image_file(root: &Path, scene: &Path, image: u64) -> Result<String> {
    let names = ["rgb", "gray"].iter().flat_map(|folder| {
        ["png", "jpg", "jpeg", "webp"].map(|extension| format!("{folder}/{image:06}.{extension}"))
    });
    let found = names.map(|name| scene.join(name)).find(|path| path.is_file());
    let found = found.unwrap_or_else(|| scene.join(format!("rgb/{image:06}.png")));
    let relative = found.strip_prefix(root).unwrap_or(&found);
    let text = relative.to_str().ok_or_else(|| Error::content(&found, "its name is not UTF-8"))?;
    Ok(text.to_owned())
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = read_regular(path)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::content(path, format!("not as BOP has it: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: &str = "[1, 0, 0, 0, 1, 0, 0, 0, 1]";

    fn scene(truth: &str, info: Option<&str>, images: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let scene = root.path().join("000002");
        std::fs::create_dir_all(scene.join("rgb")).unwrap();
        std::fs::write(scene.join(TRUTH), truth).unwrap();
        info.into_iter().for_each(|info| std::fs::write(scene.join(INFO), info).unwrap());
        images.iter().for_each(|name| std::fs::write(scene.join("rgb").join(name), b"x").unwrap());
        root
    }

    #[test]
    fn poses_boxes_and_files_are_those_of_the_scene() {
        let object = |id: u64| {
            format!("{{\"cam_R_m2c\": {IDENTITY}, \"cam_t_m2c\": [10.0, 20.0, 500.0], \"obj_id\": {id}}}")
        };
        let truth = format!("{{\"0\": [{}, {}], \"12\": [{}]}}", object(5), object(7), object(5));
        let info = r#"{"0": [{"bbox_obj": [1, 2, 30, 40], "visib_fract": 1.0}, {"bbox_obj": [-1, -1, -1, -1], "visib_fract": 0.0}],
                       "12": [{"bbox_obj": [5, 6, 7, 8], "visib_fract": 0.5, "px_count_all": 3}]}"#;
        let root = scene(&truth, Some(info), &["000000.png", "000012.jpg"]);
        assert!(
            is_bop(root.path())
                && is_bop(&root.path().join("000002"))
                && !is_bop(&root.path().join("000002/rgb"))
        );
        let rows = read(root.path()).unwrap();
        let names: Vec<(&str, &str)> =
            rows.rows.iter().map(|row| (row.object.as_str(), row.file.as_str())).collect();
        assert_eq!(names, [("obj_000005", "000002/rgb/000000.png"), ("obj_000005", "000002/rgb/000012.jpg")]);
        assert_eq!(rows.rows[0].region, Some(Region([1.0, 2.0, 30.0, 40.0])));
        // R is the identity, so the object's frame is the camera's; metres.
        let t = rows.rows[0].pose.unwrap().translation.unwrap();
        assert!(t.iter().zip([0.01, 0.02, 0.5]).all(|(a, b)| (a - b).abs() < 1e-12), "{t:?}");
        assert_eq!(rows.notes.len(), 2, "{:?}", rows.notes);
        let plain = scene(&truth, None, &["000000.png", "000012.jpg"]);
        let rows = read(plain.path()).unwrap();
        assert!(rows.rows.len() == 3 && rows.rows.iter().all(|row| row.region.is_none()));
        assert!(rows.notes[0].contains("views of scenes without scene_gt_info.json are whole images"));
    }

    #[test]
    fn what_is_not_as_it_should_be_is_named() {
        let wrong =
            |truth: &str, images: &[&str]| read(scene(truth, None, images).path()).unwrap_err().to_string();
        let matrix =
            |m: &str| format!("{{\"0\": [{{\"cam_R_m2c\": {m}, \"cam_t_m2c\": [0, 0, 1], \"obj_id\": 1}}]}}");
        let short = wrong(&matrix("[1, 0]"), &["000000.png"]);
        assert!(
            short.ends_with("scene_gt.json: image 0, object 0: cam_R_m2c has 2 numbers, expected 9"),
            "{short}"
        );
        let sheared = wrong(&matrix("[1, 1, 0, 0, 1, 0, 0, 0, 1]"), &["000000.png"]);
        assert!(sheared.contains("image 0, object 0: cam_R_m2c is not a rotation matrix"), "{sheared}");
        // A missing image is looked for later, with those of other sources.
        let rows = read(scene(&matrix(IDENTITY), None, &[]).path()).unwrap();
        assert_eq!(rows.rows[0].file, "000002/rgb/000000.png");
        assert!(wrong("{\"0\": 3}", &[]).contains("not as BOP has it"));
    }
}

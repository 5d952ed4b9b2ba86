//! Material libraries of OBJ files, read the way the published generator's importer read them.
//!
//! Base colour is `Kd`, or `map_Kd` alone where there is one; roughness `1 - sqrt(clamp(Ns, 0, 1000) / 1000)`;
//! specular the mean of `Ks`, or `map_Ks`; alpha `d`, or `map_d`; emission `Ke`, or `map_Ke`. Without `Ks` a material is
//! matt unless `illum 2` asks for a highlight. `illum` 3 to 8 make it metallic by the mean of `Ka`, or wholly where there
//! is none. `map_bump` is a map of normals. Anything else (`Tr`, `Tf`, `Ni`, `map_Ns`) is ignored, as it was there; what
//! would show of it is named in a warning.

use super::files::Files;
use super::lines::{LineError, Lines, number, shown, word};
use super::map_statement::MapStatement;
use super::obj::MAX_MATERIALS;
use super::texture::Role;
use crate::{Map, Material};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// One `newmtl` block before its texture is loaded.
#[derive(Clone, Default)]
struct Entry {
    diffuse: Option<[f32; 3]>,
    specular: Option<f32>,
    exponent: Option<f32>,
    alpha: Option<f32>,
    ambient: Option<f32>,
    emission: [f32; 3],
    highlight: bool,
    reflection: bool,
    maps: [Option<MapStatement>; MAPS.len()],
    /// Statements of [`LEFT_OUT`]: which, their number (1 where there is none), their line.
    left_out: Vec<(usize, f32, u64)>,
}

/// The maps that count, with what their images are taken for.
const MAPS: [(&[&[u8]], Role); 5] = [
    (&[b"map_kd"], Role::Colour),
    (&[b"map_d", b"map_tr"], Role::Opacity),
    (&[b"map_ks"], Role::Specular),
    (&[b"map_ke"], Role::Colour),
    (&[b"map_bump", b"bump"], Role::Plain),
];
/// Statements that are not made, and where one shows: for this material and this number.
const LEFT_OUT: [(&str, Shows); 23] = [
    // The importer of the published generator has a way of its own to take these two, and takes none of the others.
    ("map_refl", ALWAYS),
    ("refl", ALWAYS),
    ("decal", ALWAYS),
    ("disp", ALWAYS),
    ("map_aniso", ALWAYS),
    ("map_decal", ALWAYS),
    ("map_disp", ALWAYS),
    ("map_Ns", ALWAYS),
    ("map_Pc", ALWAYS),
    ("map_Pcr", ALWAYS),
    ("map_Pm", ALWAYS),
    ("map_Pr", ALWAYS),
    ("map_Ps", ALWAYS),
    ("map_norm", WITHOUT_BUMP),
    ("norm", WITHOUT_BUMP),
    ("aniso", WHERE_SET),
    ("anisor", |entry, value| value != 0.0 && entry.has_left_out("aniso")),
    ("Pc", WHERE_SET),
    ("Pcr", |entry, value| value != 0.0 && entry.has_left_out("Pc")),
    ("Pm", |entry, value| value != 0.0 && !entry.reflection),
    ("Pr", |entry, _| entry.exponent.is_none()),
    ("Ps", WHERE_SET),
    ("Tr", |entry, value| value > 0.0 && value < 1.0 && entry.alpha.is_none()),
];

type Shows = fn(&Entry, f32) -> bool;
const ALWAYS: Shows = |_, _| true;
const WHERE_SET: Shows = |_, value| value != 0.0;
const WITHOUT_BUMP: Shows = |entry, _| entry.maps[4].is_none();

/// The materials of all libraries that a mesh names, by name.
#[derive(Default)]
pub(super) struct Library {
    entries: HashMap<Vec<u8>, (Entry, PathBuf)>,
    read: HashSet<PathBuf>,
}

impl Library {
    /// Adds the blocks of the file at `path`, once. What is wrong in it becomes warnings.
    pub fn read(&mut self, path: &Path, files: &mut Files) {
        if !self.read.insert(path.to_owned()) {
            return;
        }
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) => return files.warn(format!("{}: {error}; its materials are grey", path.display())),
        };
        let mut lines = Lines::new(file);
        let mut current: Option<Vec<u8>> = None;
        loop {
            let (line, text) = match lines.next() {
                Ok(Some(next)) => next,
                Ok(None) => return,
                Err(LineError::Io(error)) => return files.warn(format!("{}: {error}", path.display())),
                Err(LineError::TooLong(line)) => {
                    return files.warn(format!("{}:{line}: the line is too long", path.display()));
                }
            };
            let mut rest = text;
            let Some(keyword) = word(&mut rest) else { continue };
            if keyword.eq_ignore_ascii_case(b"newmtl") {
                if self.entries.len() >= MAX_MATERIALS {
                    return files.warn(format!("{}:{line}: the rest is left out", path.display()));
                }
                let name = rest.trim_ascii().to_vec();
                self.entries.insert(name.clone(), (Entry::default(), path.to_owned()));
                current = Some(name);
                continue;
            }
            let Some((entry, _)) = current.as_ref().and_then(|name| self.entries.get_mut(name)) else {
                continue;
            };
            if let Err(message) = entry.set(keyword, rest, line) {
                files.warn(format!("{}:{line}: {message}", path.display()));
            }
        }
    }

    /// The material of that name with its texture; plain grey, and a warning, where no library has it.
    pub fn material(&self, name: &[u8], files: &mut Files) -> Material {
        let shown_name = String::from_utf8_lossy(name).into_owned();
        let Some((entry, path)) = self.entries.get(name) else {
            files.warn(format!(
                "{}: no library has the material {shown_name:?}, using grey",
                files.path.display()
            ));
            return Material { name: shown_name, ..Material::default() };
        };
        entry.warn_of_left_out(path, files);
        let mut maps = [const { None }; MAPS.len()];
        for ((statement, (_, role)), map) in entry.maps.iter().zip(MAPS).zip(&mut maps) {
            let Some(statement) = statement else { continue };
            let folder = path.parent().unwrap_or(Path::new("."));
            let image = files.resolve(folder, &statement.file).and_then(|file| {
                files.textures.load_as(&file, role).map_err(|reason| format!("{}: {reason}", file.display()))
            });
            match image {
                Ok(image) => *map = Some(statement.map(image)),
                Err(reason) => {
                    files.warn(format!("{}:{}: texture left out: {reason}", path.display(), statement.line));
                }
            }
        }
        entry.material(shown_name, maps)
    }
}

impl Entry {
    fn set(&mut self, keyword: &[u8], rest: &[u8], line: u64) -> Result<(), String> {
        match keyword.to_ascii_lowercase().as_slice() {
            b"kd" => self.diffuse = Some(colour(rest)?),
            b"ks" => self.specular = Some(colour(rest)?.iter().sum::<f32>() / 3.0),
            b"ns" => self.exponent = Some(first(rest)?),
            b"d" => self.alpha = Some(first(rest)?),
            b"ka" => self.ambient = Some(colour(rest)?.iter().sum::<f32>() / 3.0),
            b"ke" => self.emission = colour(rest)?,
            b"illum" => {
                // The last statement counts; some files write a fraction.
                let model = first(rest)? as i32;
                self.highlight = model == 2;
                self.reflection = (3..=8).contains(&model);
            }
            name => {
                let is_it = |(left_out, _): &(&str, Shows)| left_out.as_bytes().eq_ignore_ascii_case(name);
                if let Some(which) = LEFT_OUT.iter().position(is_it) {
                    self.left_out.push((which, first(rest).unwrap_or(1.0), line));
                }
                if let Some(which) = MAPS.iter().position(|(names, _)| names.contains(&name)) {
                    let statement = MapStatement::parse(rest, line);
                    if statement.file.is_empty() {
                        return Err(format!("{} names no file", shown(keyword)));
                    }
                    self.maps[which] = Some(statement);
                }
            }
        }
        Ok(())
    }

    /// Whether there is a statement of [`LEFT_OUT`] that is more than zero.
    fn has_left_out(&self, name: &str) -> bool {
        self.left_out.iter().any(|&(which, value, _)| LEFT_OUT[which].0 == name && value != 0.0)
    }

    /// Names what is not made of this material, of the library at `path`, once for all materials.
    fn warn_of_left_out(&self, path: &Path, files: &mut Files) {
        for &(which, value, line) in &self.left_out {
            let (name, shows) = LEFT_OUT[which];
            if shows(self, value) {
                let message = format!("{}:{line}: {name} is not supported and left out", path.display());
                files.warn_once(name, message);
            }
        }
        for statement in self.maps.iter().flatten() {
            for option in &statement.left_out {
                let message = format!(
                    "{}:{}: the option {option} of a map is not supported and left out",
                    path.display(),
                    statement.line
                );
                files.warn_once(option, message);
            }
        }
    }

    fn material(&self, name: String, maps: [Option<Map>; MAPS.len()]) -> Material {
        let glossy = self.specular.is_some() || self.highlight;
        let roughness = match self.exponent {
            Some(exponent) => 1.0 - (exponent.clamp(0.0, 1000.0) / 1000.0).sqrt(),
            None if glossy => 0.0,
            None => 1.0,
        };
        let [texture, opacity, surface_map, emission_map, normal_map] = maps;
        let specular = self.specular.unwrap_or(if self.highlight { 1.0 } else { 0.0 });
        let is_clear = |map: &Map| map.pixels.iter().any(|pixel| pixel[3] < 255);
        Material {
            name,
            base_colour: self.diffuse.unwrap_or([0.8; 3]).map(|channel| channel.clamp(0.0, 1.0)),
            texture,
            roughness,
            // Maps replace the numbers.
            specular: if surface_map.is_some() { 1.0 } else { specular.clamp(0.0, 1.0) },
            metallic: if self.reflection { self.ambient.unwrap_or(1.0).clamp(0.0, 1.0) } else { 0.0 },
            alpha: if opacity.is_some() { 1.0 } else { self.alpha.unwrap_or(1.0).clamp(0.0, 1.0) },
            opacity: opacity.filter(is_clear),
            emission: match emission_map {
                Some(_) => [1.0; 3],
                None => self.emission.map(|channel| channel.clamp(0.0, 1e6)),
            },
            emission_map,
            surface_map,
            normal_strength: self.maps[4].as_ref().map_or(1.0, |bump| bump.strength),
            normal_map,
        }
    }
}

/// `r g b`, or one number for all three.
fn colour(mut rest: &[u8]) -> Result<[f32; 3], String> {
    let red = first(rest)?;
    word(&mut rest);
    match (word(&mut rest), word(&mut rest)) {
        (Some(green), Some(blue)) if !green.starts_with(b"#") => {
            Ok([red, number(green)? as f32, number(blue)? as f32])
        }
        _ => Ok([red; 3]),
    }
}

/// The first number of a line; options such as `d -halo` are passed over.
fn first(mut rest: &[u8]) -> Result<f32, String> {
    while let Some(text) = word(&mut rest) {
        if let [b'-', second, ..] = text
            && second.is_ascii_alphabetic()
        {
            continue;
        }
        return number(text).map(|value| value as f32);
    }
    Err("a number is missing".to_owned())
}

/// The library files of a `mtllib` statement: the whole rest of the line where there is such a file (names may
/// contain blanks), else every word of it.
pub(super) fn read_libraries(library: &mut Library, names: &[u8], line: u64, files: &mut Files) {
    let names = super::map_statement::unquoted(names.trim_ascii());
    let folder = files.folder().to_owned();
    if let Ok(path) = files.resolve(&folder, names) {
        return library.read(&path, files);
    }
    let mut rest = names;
    while let Some(name) = word(&mut rest) {
        match files.resolve(&folder, name) {
            Ok(path) => library.read(&path, files),
            Err(reason) => {
                let reason = format!("{}:{line}: material library {reason}", files.path.display());
                files.warn(reason);
            }
        }
    }
    if names.is_empty() {
        files.warn(format!("{}:{line}: mtllib names no file ({})", files.path.display(), shown(names)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn material(lines: &[&str]) -> Material {
        let mut entry = Entry::default();
        for line in lines {
            let mut rest = line.as_bytes();
            let keyword = word(&mut rest).expect("a keyword");
            entry.set(keyword, rest, 1).expect("a good line");
        }
        entry.material(String::new(), [const { None }; MAPS.len()])
    }

    #[test]
    fn statements_become_the_principled_parameters() {
        let m = material(&["Kd 0.1 0.2 0.3", "Ks 0.3 0.4 0.5", "Ns 10", "d 0.25", "illum 2"]);
        assert_eq!(m.base_colour, [0.1, 0.2, 0.3]);
        assert!((m.specular - 0.4).abs() < 1e-6 && (m.roughness - 0.9).abs() < 1e-6 && m.alpha == 0.25);
        // The importer knows no Tr.
        assert_eq!(material(&["Tr 0.25"]).alpha, 1.0);
        assert_eq!(material(&["illum 3"]).metallic, 1.0);
        assert_eq!(material(&["Ka 0.2 0.4 0.6", "illum 5"]).metallic, 0.4);
        assert_eq!(material(&["Ka 1 1 1", "illum 2"]).metallic, 0.0);
        assert_eq!(material(&["illum 9"]).metallic, 0.0);
        assert_eq!(material(&["Ke 2 0.5 -1"]).emission, [2.0, 0.5, 0.0]);
        assert_eq!(material(&["d -halo 0.5"]).alpha, 0.5);
        assert_eq!(material(&["Ks 0 0 0", "Ns -5"]).roughness, 1.0);
        assert_eq!(material(&["Ks 0 0 0", "Ns 5000"]).roughness, 0.0);
        assert_eq!(material(&["Kd 0.5"]).base_colour, [0.5; 3]);
        let bare = material(&[]);
        assert_eq!((bare.base_colour, bare.alpha), ([0.8; 3], 1.0));
        assert_eq!((bare.specular, bare.roughness), (0.0, 1.0));
    }

    #[test]
    fn what_is_not_made_is_told_from_what_would_not_show() {
        let shown = |lines: &[&str]| -> Vec<&str> {
            let mut entry = Entry::default();
            for line in lines {
                let mut rest = line.as_bytes();
                let keyword = word(&mut rest).expect("a keyword");
                entry.set(keyword, rest, 1).expect("a good line");
            }
            let all = entry.left_out.iter().map(|&(which, value, _)| (LEFT_OUT[which], value));
            all.filter(|((_, shows), value)| shows(&entry, *value)).map(|((name, _), _)| name).collect()
        };
        let exported = ["Pr 0.5", "Pm 0", "Ps 0.0", "Pc 0", "Pcr 0.03", "aniso 0", "anisor 0", "Ns 250"];
        assert_eq!(shown(&exported), Vec::<&str>::new());
        assert_eq!(shown(&["Pr 0.5", "Pc 1", "Pcr 0.03", "Pm 1"]), ["Pr", "Pc", "Pcr", "Pm"]);
        assert_eq!(shown(&["Pm 1", "illum 3"]), Vec::<&str>::new());
        assert_eq!(shown(&["aniso 0.5", "disp -mm 0 1 a.png", "decal b.png"]), ["aniso", "disp", "decal"]);
        assert_eq!(shown(&["Tr 0", "Tr 1", "Tf 0.5 0.5 0.5", "Ni 1.5"]), Vec::<&str>::new());
        assert_eq!((shown(&["Tr 0.5"]), shown(&["Tr 0.5", "d 0.5"])), (vec!["Tr"], vec![]));
        assert_eq!((shown(&["norm a.png"]), shown(&["norm a.png", "bump a.png"])), (vec!["norm"], vec![]));
    }

    #[test]
    fn bad_numbers_are_reported() {
        let mut entry = Entry::default();
        for (keyword, rest) in [("Kd", "red"), ("Ns", ""), ("d", "nan"), ("map_Kd", "  "), ("Kd", "1 x 1")] {
            assert!(entry.set(keyword.as_bytes(), rest.as_bytes(), 1).is_err(), "{keyword} {rest}");
        }
    }
}

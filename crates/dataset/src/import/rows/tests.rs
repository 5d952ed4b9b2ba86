//! Rows of small tables, and the sentences that wrong ones get.

use super::*;
use crate::import::rotation::{AngleUnit, PoseFrame};

fn read_text(text: &str, conventions: &Conventions) -> Result<Rows> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, conventions)
}

fn rows(text: &str) -> Rows {
    read_text(text, &Conventions::default()).unwrap()
}

fn refusal(text: &str) -> String {
    let message = read_text(text, &Conventions::default()).unwrap_err().to_string();
    message.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn what_is_known_of_an_image() {
    let found = rows(
        "file,class,object,view,split,qx,qy,qz,qw,tx,ty,tz,weather\n\
         a/1.jpg,cup,red,3,train,0,0,0,1,1,2,3,fine\n\
         a/2.jpg,cup,red,1,test,,,,,,,,fine\n",
    );
    let row = &found.rows[0];
    assert_eq!((row.file.as_str(), row.class.as_str(), row.object.as_str()), ("a/1.jpg", "cup", "red"));
    assert_eq!((row.view, row.split), (Some(3), Some(Split::Train)));
    assert_eq!(row.pose, Some(Pose { rotation: [0.0; 3], translation: Some([1.0, 2.0, 3.0]) }));
    assert_eq!(
        (found.rows[1].pose, found.rows[1].split, found.rows[1].light),
        (None, Some(Split::Val), None)
    );
    assert_eq!(found.rows[1].place, "line 3");
    assert_eq!(found.notes, ["columns that are not used: weather"]);
    assert_eq!(found.convention, "qx qy qz qw, from the object to the renderer's world");
}

#[test]
fn own_latents_are_taken_as_they_are() {
    let names = NAMES_LINE.trim_end();
    let found = rows(&format!("file,{names}\na.jpg,0.1,-0.2,0.3,0.4,0.5,0.6,0.7,0.08,0.09,0.1\n"));
    let row = &found.rows[0];
    let pose = Pose { rotation: [0.1, -0.2, 0.3], translation: Some([0.08, 0.09, 0.1]) };
    assert_eq!((row.pose, row.light), (Some(pose), Some([0.4, 0.5, 0.6, 0.7])));
    // No class and no object: one object, as there are poses.
    assert_eq!((row.class.as_str(), row.object.as_str(), found.notes.len()), ("images", "images", 2));
}

const NAMES_LINE: &str = "rot_x,rot_y,rot_z,floor_hue,spot_theta,spot_phi,spot_hue,trans_x,trans_y,trans_z\n";

#[test]
fn without_poses_an_image_is_an_object() {
    let found = rows("file,class\nx/1.jpg,cup\n./y/1.png,pan\n");
    let objects: Vec<&str> = found.rows.iter().map(|row| row.object.as_str()).collect();
    assert_eq!((objects, found.convention.as_str()), (vec!["x_1", "y_1"], ""));
}

#[test]
fn different_images_are_different_objects_whatever_they_are_called() {
    let found = rows("file\na_b.jpg\na/b.jpg\nc.jpg\nc.png\nd.jpg\n");
    let objects: Vec<&str> = found.rows.iter().map(|row| row.object.as_str()).collect();
    assert_eq!(objects, ["a_b.jpg", "a_b.jpg_2", "c.jpg", "c.png", "d"]);
}

#[test]
fn what_is_asked_of_angles_needs_angles_and_a_scale_is_told() {
    let angles = Conventions {
        order: Some("zxy".parse().unwrap()),
        unit: Some(AngleUnit::Degrees),
        ..Conventions::default()
    };
    for text in ["file,qx,qy,qz,qw\na,0,0,0,1\n", "file\na.jpg\n"] {
        let message = read_text(text, &angles).unwrap_err().to_string();
        assert!(
            message.ends_with("there are no columns rx ry rz or r1 r2 r3, which --angles and --unit are for"),
            "{message}"
        );
    }
    let scaled = Conventions { scale: 0.001, ..Conventions::default() };
    let found = read_text("file,qx,qy,qz,qw,tx,ty,tz\na,0,0,0,1,1,2,3\n", &scaled).unwrap();
    assert!(
        found.convention.ends_with("to the renderer's world; translations times 0.001"),
        "{}",
        found.convention
    );
}

#[test]
fn angles_are_taken_by_name_or_by_number() {
    let conventions = Conventions {
        order: Some("zxy".parse().unwrap()),
        unit: Some(AngleUnit::Degrees),
        frame: PoseFrame::World,
        ..Conventions::default()
    };
    let named = read_text("file,rx,ry,rz\na,10,20,30\n", &conventions).unwrap();
    let numbered = read_text("file,r1,r2,r3\na,30,10,20\n", &conventions).unwrap();
    assert_eq!(named.rows[0].pose, numbered.rows[0].pose);
    assert!(named.convention.contains("degrees, order zxy"), "{}", named.convention);
    let twice = Conventions { order: Some("zxz".parse().unwrap()), ..conventions };
    let message = read_text("file,rx,ry,rz\na,10,20,30\n", &twice).unwrap_err().to_string();
    assert!(message.contains("the order zxz turns about one axis twice"), "{message}");
    assert!(read_text("file,r1,r2,r3\na,10,20,30\n", &twice).is_ok());
}

#[test]
fn wrong_tables_get_a_sentence() {
    for (text, expected) in [
        ("class\ncup\n", "t.csv: there is no column file, only class"),
        ("file,clas\na,cup\n", "t.csv: there is a column \"clas\": is it class? Rename it, or leave it out"),
        (
            "file,q_x,qy,qz,qw\na,0,0,0,1\n",
            "t.csv: there is a column \"q_x\": is it qx? Rename it, or leave it out",
        ),
        ("file,qx,qy,qz\na,0,0,0\n", "t.csv: there is a column qx, but no column qw"),
        (
            "file,rx,ry,rz\na,0,0,0\n",
            "t.csv: the angles rx ry rz can be read in many ways: give --angles ORDER",
        ),
        ("file,tx,ty,tz\na,0,0,0\n", "t.csv: there is a translation, but no rotation"),
        ("file,qx,qy,qz,qw\na,0,0,zero,1\n", "t.csv: line 2: qz is \"zero\", expected a number"),
        ("file,qx,qy,qz,qw\na,0,0,inf,1\n", "t.csv: line 2: qz is \"inf\", expected a number"),
        ("file,qx,qy,qz,qw\na,0,0,0,1\nb,0,0,,1\n", "t.csv: line 3: qz has no number, but qx has one"),
        (
            "file,qx,qy,qz,qw\na,0,0,0,2\n",
            "t.csv: line 2: the quaternion (0, 0, 0, 2) has length 2.0000, expected 1",
        ),
        ("file,view\na,front\n", "t.csv: line 2: view is \"front\", expected a whole number"),
        ("file,view\na,1.5\n", "t.csv: line 2: view is \"1.5\", expected a whole number"),
        ("file,split\na,tests\n", "t.csv: line 2: split is \"tests\", expected train, val or test"),
        ("file,class\n,cup\n", "t.csv: line 2: file is empty"),
        ("file,class\na,\n", "t.csv: line 2: class is empty"),
        (
            "file,qx,qy,qz,qw,r1,r2,r3\na,0,0,0,1,0,0,0\n",
            "t.csv: there are two rotations, qx qy qz qw and r1 r2 r3",
        ),
        (
            "file,qx,qy,qz,qw,trans_x,trans_y,trans_z\na,0,0,0,1,0,0,0\n",
            "t.csv: rot_x rot_y rot_z go with trans_x",
        ),
        (
            "file,r11,r12,r13,r21,r22,r23,r31,r32,r33\na,1,0,0,0,1,0,0,0,1\nb,1,0,0,0,1,0,0,0,-1\n",
            "t.csv: line 3: r11 to r33 are not a rotation matrix",
        ),
    ] {
        let message = refusal(text);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
}

#[test]
fn many_places_are_not_all_named() {
    let lines: Vec<String> = (1..=8).map(|line| format!("line {line}")).collect();
    assert_eq!(places(lines.iter().take(2).map(String::as_str)), "line 1, line 2");
    assert!(places(lines.iter().map(String::as_str)).ends_with("line 5 and 3 more"));
}

//! The classes: their names, and the code that builds each.

mod airplane;
mod appliances;
mod audio;
mod bag;
mod bed;
mod bench;
mod bowls;
mod bus;
mod car;
mod chair;
mod clock;
mod containers;
mod cookers;
mod earphone;
mod faucet;
mod firearms;
mod fittings;
mod guitar;
mod handhelds;
mod headwear;
mod houses;
mod hull;
mod knife;
mod lamp;
mod laptop;
mod locomotives;
mod motorbike;
mod phones;
mod piano;
mod pots;
mod rifle;
mod rocket;
mod screens;
mod skateboard;
mod sofa;
mod storage;
mod table;
mod tower;
mod train;
mod vessels;
mod watercraft;

use crate::Class;
use crate::builder::{Builder, Paint};
use crate::colour::Colour;
use crate::parts::*;
use crate::solid::Solid;
use fittings::{Wheel, array, bar_handle, dial, knob, leg, turned_leg};
use vessels::{dipped, hollow, patch, print};

const fn class(label: usize, synset: &'static str, name: &'static str) -> Class {
    Class { label, synset, name }
}

/// Label order, synset ids and names of ShapeNetCore.
pub const CLASSES: [Class; 55] = [
    class(0, "02691156", "airplane"),
    class(1, "02747177", "trash bin"),
    class(2, "02773838", "bag"),
    class(3, "02801938", "basket"),
    class(4, "02808440", "bathtub"),
    class(5, "02818832", "bed"),
    class(6, "02828884", "bench"),
    class(7, "02843684", "birdhouse"),
    class(8, "02871439", "bookshelf"),
    class(9, "02876657", "bottle"),
    class(10, "02880940", "bowl"),
    class(11, "02924116", "bus"),
    class(12, "02933112", "cabinet"),
    class(13, "02942699", "camera"),
    class(14, "02946921", "can"),
    class(15, "02954340", "cap"),
    class(16, "02958343", "car"),
    class(17, "02992529", "cellphone"),
    class(18, "03001627", "chair"),
    class(19, "03046257", "clock"),
    class(20, "03085013", "keyboard"),
    class(21, "03207941", "dishwasher"),
    class(22, "03211117", "display"),
    class(23, "03261776", "earphone"),
    class(24, "03325088", "faucet"),
    class(25, "03337140", "file cabinet"),
    class(26, "03467517", "guitar"),
    class(27, "03513137", "helmet"),
    class(28, "03593526", "jar"),
    class(29, "03624134", "knife"),
    class(30, "03636649", "lamp"),
    class(31, "03642806", "laptop"),
    class(32, "03691459", "loudspeaker"),
    class(33, "03710193", "mailbox"),
    class(34, "03759954", "microphone"),
    class(35, "03761084", "microwave"),
    class(36, "03790512", "motorbike"),
    class(37, "03797390", "mug"),
    class(38, "03928116", "piano"),
    class(39, "03938244", "pillow"),
    class(40, "03948459", "pistol"),
    class(41, "03991062", "flowerpot"),
    class(42, "04004475", "printer"),
    class(43, "04074963", "remote control"),
    class(44, "04090263", "rifle"),
    class(45, "04099429", "rocket"),
    class(46, "04225987", "skateboard"),
    class(47, "04256520", "sofa"),
    class(48, "04330267", "stove"),
    class(49, "04379243", "table"),
    class(50, "04401088", "telephone"),
    class(51, "04460130", "tower"),
    class(52, "04468005", "train"),
    class(53, "04530566", "watercraft"),
    class(54, "04554684", "washer"),
];

/// The code of every class, in label order.
pub const BUILDERS: [fn(&mut Builder); 55] = [
    airplane::airplane,
    containers::trash_bin,
    bag::bag,
    containers::basket,
    containers::bathtub,
    bed::bed,
    bench::bench,
    houses::birdhouse,
    storage::bookshelf,
    vessels::bottle,
    bowls::bowl,
    bus::bus,
    storage::cabinet,
    handhelds::camera,
    bowls::can,
    headwear::cap,
    car::car,
    phones::cellphone,
    chair::chair,
    clock::clock,
    screens::keyboard,
    appliances::dishwasher,
    screens::display,
    earphone::earphone,
    faucet::faucet,
    storage::file_cabinet,
    guitar::guitar,
    headwear::helmet,
    pots::jar,
    knife::knife,
    lamp::lamp,
    laptop::laptop,
    audio::loudspeaker,
    houses::mailbox,
    audio::microphone,
    cookers::microwave,
    motorbike::motorbike,
    vessels::mug,
    piano::piano,
    bed::pillow,
    firearms::pistol,
    pots::flowerpot,
    screens::printer,
    handhelds::remote_control,
    rifle::rifle,
    rocket::rocket,
    skateboard::skateboard,
    sofa::sofa,
    cookers::stove,
    table::table,
    phones::telephone,
    tower::tower,
    train::train,
    watercraft::watercraft,
    appliances::washer,
];

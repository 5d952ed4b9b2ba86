//! What things are usually made of: random but plausible materials by kind of part.

use crate::builder::{Builder, Paint};
use crate::colour::Colour;
use crate::texture;

impl Builder {
    /// A saturated colour of any hue, bright enough to stand out.
    pub fn vivid(&mut self) -> Colour {
        Colour::hsv(self.range(0.0, 1.0), self.range(0.6, 0.95), self.range(0.55, 0.95))
    }

    /// A muted colour.
    pub fn muted(&mut self) -> Colour {
        Colour::hsv(self.range(0.0, 1.0), self.range(0.15, 0.5), self.range(0.35, 0.8))
    }

    /// A colour that stands out from `ground`: light on dark, dark or saturated on light.
    pub fn contrast(&mut self, ground: Colour) -> Colour {
        let hue = self.range(0.0, 1.0);
        if ground.brightness() > 0.45 {
            let (s, v) = (self.range(0.7, 1.0), self.range(0.08, 0.3));
            Colour::hsv(hue, s, v)
        } else {
            let (s, v) = (self.range(0.05, 0.4), self.range(0.88, 1.0));
            Colour::hsv(hue, s, v)
        }
    }

    /// A wood's dark and light tone.
    pub fn wood_tones(&mut self) -> (Colour, Colour) {
        let (h, s, v) = self.one_of(&[
            (0.08, 0.45, 0.80),
            (0.07, 0.60, 0.55),
            (0.05, 0.65, 0.38),
            (0.10, 0.35, 0.88),
            (0.03, 0.70, 0.45),
            (0.06, 0.50, 0.25),
        ]);
        let v = v * self.range(0.85, 1.1);
        (Colour::hsv(h, s + 0.06, v * 0.78), Colour::hsv(h, s, v))
    }

    /// Grained wood.
    pub fn wood(&mut self) -> Paint {
        let (dark, light) = self.wood_tones();
        let t = texture::wood(&mut self.random, dark, light);
        self.textured(t, 0.55, 0.3)
    }

    /// Bright metal: steel, aluminium, brass, copper.
    pub fn metal(&mut self) -> Paint {
        let c = self.one_of(&[
            Colour::grey(0.78),
            Colour::grey(0.62),
            Colour([0.80, 0.82, 0.86]),
            Colour([0.83, 0.68, 0.35]),
            Colour([0.72, 0.45, 0.32]),
        ]);
        let roughness = self.range(0.15, 0.35);
        self.paint(c, roughness, 0.9)
    }

    /// Grey steel or chrome.
    pub fn steel(&mut self) -> Paint {
        let v = self.range(0.6, 0.8);
        self.paint(Colour([v, v, v * 1.03]), 0.22, 0.9)
    }

    /// Plastic in a vivid, muted, white or black colour.
    pub fn plastic(&mut self) -> Paint {
        let c = match self.random.below(5) {
            0 | 1 => self.vivid(),
            2 => self.muted(),
            3 => Colour::grey(0.88),
            _ => Colour::grey(0.13),
        };
        self.paint(c, 0.4, 0.5)
    }

    /// Fabric: plain, striped, checked, dotted or tartan.
    pub fn fabric(&mut self) -> Paint {
        let a = if self.random.below(2) == 0 { self.vivid() } else { self.muted() };
        let b = self.contrast(a);
        let n = 2 + self.random.below(4) as u32;
        let t = match self.random.below(6) {
            0 => texture::stripes(a, b.mix(a, 0.4), n, self.random.below(2) == 0),
            1 => texture::plaid(a, b, n),
            2 => texture::dots(a, b.mix(a, 0.3), n + 2),
            _ => return self.paint(a, 0.95, 0.1),
        };
        self.textured(t, 0.95, 0.1)
    }

    /// Leather in usual colours.
    pub fn leather(&mut self) -> Paint {
        let c = self.one_of(&[
            Colour([0.36, 0.20, 0.11]),
            Colour([0.12, 0.11, 0.11]),
            Colour([0.55, 0.12, 0.10]),
            Colour([0.86, 0.80, 0.70]),
            Colour([0.62, 0.38, 0.18]),
            Colour([0.15, 0.22, 0.38]),
        ]);
        self.paint(c, 0.45, 0.4)
    }

    /// Enamelled or painted metal or wood.
    pub fn lacquer(&mut self) -> Paint {
        let c = match self.random.below(4) {
            0 => Colour::grey(0.9),
            1 => self.muted(),
            _ => self.vivid(),
        };
        self.paint(c, 0.3, 0.5)
    }

    /// Window glass or a switched-off screen: dark and glossy.
    pub fn glass(&mut self) -> Paint {
        let v = self.range(0.1, 0.22);
        self.paint(Colour([v * 0.8, v, v * 1.2]), 0.08, 0.8)
    }

    /// Black rubber.
    pub fn rubber(&mut self) -> Paint {
        self.paint(Colour::grey(0.1), 0.85, 0.2)
    }

    /// Near-black plastic.
    pub fn black(&mut self) -> Paint {
        self.paint(Colour::grey(0.08), 0.4, 0.4)
    }

    /// Off-white plastic or enamel.
    pub fn white(&mut self) -> Paint {
        let v = self.range(0.86, 0.96);
        self.paint(Colour([v, v, v * 0.97]), 0.35, 0.5)
    }

    /// A plain vivid accent.
    pub fn accent(&mut self) -> Paint {
        let c = self.vivid();
        self.paint(c, 0.4, 0.5)
    }

    /// A lamp's or indicator's bright surface.
    pub fn glowing(&mut self, colour: Colour) -> Paint {
        self.paint(colour, 0.2, 0.6)
    }
}

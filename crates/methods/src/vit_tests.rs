//! Whole networks with a ViT against a float64 reference written here: loss and gradients by finite differences of
//! the reference. (The published code has no fixture for it.)

use engine::ops::Images;
use engine::{Device, ParameterStore, State};
use model::VitConfig;
use random::{Random, Stream};

use crate::batch::{PairBatch, PairTargets};
use crate::config::{BackboneName, MethodConfig};
use crate::network::Network;
use crate::registry::MethodName;
use crate::step::{Step, StepOptions};

const SIZE: usize = 12;
const ROWS: usize = 4;
const VIT: VitConfig = VitConfig { patch: 4, width: 6, depth: 2, heads: 2 };

struct Weights<'a>(&'a [(String, Vec<f64>)]);

impl Weights<'_> {
    fn get(&self, name: &str) -> &[f64] {
        &self.0.iter().find(|(known, _)| known == name).unwrap().1
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let dot = |o: usize| x.iter().zip(&weight[o * x.len()..]).map(|(x, w)| x * w).sum::<f64>();
        bias.iter().enumerate().map(|(o, b)| dot(o) + b).collect()
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.get(&format!("{name}.weight")), self.get(&format!("{name}.bias")));
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
        (0..x.len()).map(|c| (x[c] - mean) / (variance + 1e-6).sqrt() * weight[c] + bias[c]).collect()
    }

    /// The representation of one image (3, SIZE, SIZE).
    fn representation(&self, image: &[f32]) -> Vec<f64> {
        let (side, d) = (SIZE / VIT.patch, VIT.width);
        let position = self.get("backbone.pos_embed");
        let weight = self.get("backbone.patch_embed.proj.weight");
        let mut tokens: Vec<Vec<f64>> = vec![self.get("backbone.cls_token").to_vec()];
        for patch in 0..side * side {
            let (top, left) = (patch / side * VIT.patch, patch % side * VIT.patch);
            let token = (0..d).map(|o| {
                let mut sum = self.get("backbone.patch_embed.proj.bias")[o];
                for (c, y, x) in (0..48).map(|i| (i / 16, i / 4 % 4, i % 4)) {
                    let pixel = image[(c * SIZE + top + y) * SIZE + left + x];
                    sum += f64::from(pixel) * weight[((o * 3 + c) * 4 + y) * 4 + x];
                }
                sum
            });
            tokens.push(token.collect());
        }
        tokens.iter_mut().enumerate().for_each(|(t, token)| {
            token.iter_mut().enumerate().for_each(|(c, x)| *x += position[t * d + c]);
        });
        for block in 0..VIT.depth {
            let name = |suffix: &str| format!("backbone.blocks.{block}.{suffix}");
            let qkv: Vec<Vec<f64>> = tokens
                .iter()
                .map(|x| self.linear(&name("attn.qkv"), &self.norm(&name("norm1"), x)))
                .collect();
            let size = d / VIT.heads;
            let attended: Vec<Vec<f64>> = (0..tokens.len())
                .map(|t| {
                    let value = |c: usize| {
                        let head = c / size * size;
                        let score = |s: usize| {
                            let dot: f64 = (head..head + size).map(|e| qkv[t][e] * qkv[s][d + e]).sum();
                            (dot / (size as f64).sqrt()).exp()
                        };
                        let total: f64 = (0..tokens.len()).map(score).sum();
                        (0..tokens.len()).map(|s| score(s) * qkv[s][2 * d + c]).sum::<f64>() / total
                    };
                    (0..d).map(value).collect()
                })
                .collect();
            for (token, attended) in tokens.iter_mut().zip(&attended) {
                let y = self.linear(&name("attn.proj"), attended);
                token.iter_mut().zip(y).for_each(|(x, y)| *x += y);
                let mut y = self.linear(&name("mlp.fc1"), &self.norm(&name("norm2"), token));
                y.iter_mut().for_each(|y| *y *= 0.5 * (1.0 + erf(*y / 2.0_f64.sqrt())));
                let y = self.linear(&name("mlp.fc2"), &y);
                token.iter_mut().zip(y).for_each(|(x, y)| *x += y);
            }
        }
        let tokens: Vec<Vec<f64>> = tokens[1..].iter().map(|x| self.norm("backbone.norm", x)).collect();
        (0..d).map(|c| tokens.iter().map(|t| t[c]).sum::<f64>() / tokens.len() as f64).collect()
    }
}

fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

fn weights(store: &ParameterStore) -> Vec<(String, Vec<f64>)> {
    let values = |id| store.export(State::Value, id).unwrap().into_iter().map(f64::from).collect();
    store.parameters().map(|id| (store.name(id).to_owned(), values(id))).collect()
}

/// A tiny network of `method`.
fn config(method: MethodName) -> MethodConfig {
    let mut config = MethodConfig {
        backbone: BackboneName::VitTiny,
        image_size: SIZE,
        batch: 2,
        ..MethodConfig::published(method).unwrap()
    };
    (config.network.vit, config.network.projector, config.network.capsules) = (VIT, vec![8, 8], 2);
    config
}

#[test]
fn a_supervised_vit_agrees_with_its_formula() {
    let config = MethodConfig { batch: ROWS, classes: 3, ..config(MethodName::SUPERVISED) };
    let device = Device::cpu();
    let mut step = Step::new(&config, &device, 3, StepOptions::default()).unwrap();
    let store = &mut step.network_mut().store;
    // Everything away from its start, where much is zero.
    let ids: Vec<_> = store.parameters().collect();
    for (index, &id) in ids.iter().enumerate() {
        let mut random = Random::new(8, Stream::new("vit-test"), index as u64);
        let values: Vec<f32> = (0..store.shape(id).len()).map(|_| random.range(-0.6, 0.6) as f32).collect();
        store.import(State::Value, id, &values).unwrap();
    }
    let planes = |index| {
        let mut random = Random::new(8, Stream::new("vit-test-images"), index);
        (0..ROWS * 3 * SIZE * SIZE).map(|_| random.range(-1.0, 1.0) as f32).collect::<Vec<f32>>()
    };
    let views = [planes(0), planes(1)];
    let labels = [2, 0, 1, 2];
    let images = |planes: &Vec<f32>| Images::from_planes(&device, [ROWS, SIZE, SIZE], planes).unwrap();
    let targets = PairTargets::default().with_labels(&device, &labels).unwrap();
    let batch = PairBatch { views: [images(&views[0]), images(&views[1])], targets, whole: None };
    let shown = step.gradients(&batch).unwrap().read().unwrap();
    let store = &step.network().store;

    let loss = |all: &[(String, Vec<f64>)]| {
        let weights = Weights(all);
        let mut sum = 0.0;
        for (index, image) in views.iter().flat_map(|planes| planes.chunks(3 * SIZE * SIZE)).enumerate() {
            let logits = weights.linear("head.0", &weights.representation(image));
            let label = labels[index % ROWS] as usize;
            sum += logits.iter().map(|l| l.exp()).sum::<f64>().ln() - logits[label];
        }
        sum / (2 * ROWS) as f64
    };
    let all = weights(store);
    let wanted = loss(&all);
    assert!((shown.loss - wanted).abs() < 1e-5 * wanted, "{} {wanted}", shown.loss);
    for (index, &id) in ids.iter().enumerate() {
        let gradient = store.export(State::Gradient, id).unwrap();
        let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        for element in (0..gradient.len()).step_by((gradient.len() / 4).max(1)) {
            let moved = |step: f64| {
                let mut all = all.clone();
                all[index].1[element] += step;
                loss(&all)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            let error = (f64::from(gradient[element]) - difference).abs();
            let name = store.name(id);
            assert!(error < 1e-4 * norm.max(1e-3), "{name} {element}: {} {difference}", gradient[element]);
        }
    }
}

#[test]
fn every_method_takes_a_vit() {
    for method in MethodName::all() {
        let mut network = Network::build(&config(method), &Device::cpu(), 1).unwrap();
        let pixels = vec![0.5; 2 * 3 * SIZE * SIZE];
        let images = Images::from_planes(network.store.device(), [2, SIZE, SIZE], &pixels).unwrap();
        assert_eq!(network.features(&images).unwrap().len(), 2 * VIT.width, "{method}");
    }
}

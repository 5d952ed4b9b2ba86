//! N ranks, as threads, against one: losses, gradients and weights of every method and both backbones.

use std::sync::Arc;

use engine::{Collective, Device, SingleRank, in_threads};
use methods::rank_parity::{Course, Order, Task, course};
use methods::{BackboneName, MethodConfig, MethodName};

fn config(method: MethodName, backbone: BackboneName) -> MethodConfig {
    let published = MethodConfig::published(method).expect("a preset");
    let mut config = MethodConfig { backbone, image_size: 32, batch: 12, classes: 5, ..published };
    let network = &mut config.network;
    (network.width, network.projector, network.capsules) = (8, vec![24, 24, 12], 4);
    (network.vit.width, network.vit.depth, network.vit.heads) = (24, 2, 2);
    config
}

fn alone(task: &Task<'_>, order: Order) -> Course {
    let one: Arc<dyn Collective> = Arc::new(SingleRank);
    course(task, &Device::cpu(), &one, order).expect("a course")
}

/// The courses of all of `count` ranks.
fn together(task: &Task<'_>, count: usize) -> Vec<Course> {
    let each =
        |rank: &Arc<dyn Collective>| course(task, &Device::cpu(), rank, Order::Forward).expect("a course");
    std::thread::scope(|scope| {
        let ranks = in_threads(count);
        let threads: Vec<_> = ranks.into_iter().map(|rank| scope.spawn(move || each(&rank))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
    })
}

fn compare(method: MethodName, backbone: BackboneName, counts: &[usize], change: fn(&mut Task<'_>)) {
    let config = config(method, backbone);
    let mut task = Task { config: &config, steps: 20, probes: true, graphs: false, recompute: false };
    change(&mut task);
    let one = alone(&task, Order::Forward);
    assert!(one.losses.iter().all(|loss| loss.is_finite()), "{method}: {:?}", one.losses);
    let drift = [Order::Backward, Order::Odd].map(|order| one.apart(&alone(&task, order)).weights);
    let drift = drift[0].max(drift[1]);
    for &count in counts {
        let all = together(&task, count);
        let apart = one.apart(&all[0]);
        println!(
            "{method:15} {backbone:9} {count} ranks: loss {:.1e}, gradients {:.1e}, weights {:.1e} (other orders {:.1e})",
            apart.first_loss, apart.gradients, apart.weights, drift
        );
        assert!(apart.is_within(drift), "{method} {backbone} on {count} ranks: {apart:?}, drift {drift:.1e}");
        assert!(all.iter().all(|course| *course == all[0]), "{method}: every rank has the same");
    }
}

#[test]
fn every_method_computes_on_several_ranks_what_it_computes_on_one() {
    for method in MethodName::all() {
        let counts: &[usize] = if method == MethodName::EQUICAPS { &[2, 3, 4, 5] } else { &[3] };
        compare(method, BackboneName::ResNet18, counts, |_| ());
    }
}

#[test]
fn transformers_too() {
    for method in MethodName::all() {
        compare(method, BackboneName::VitTiny, &[2], |_| ());
    }
}

#[test]
fn recomputed_blocks_too_and_the_same_ranks_give_the_same_bits() {
    compare(MethodName::EQUICAPS, BackboneName::ResNet18, &[2], |task| task.recompute = true);
    let config = config(MethodName::SIE, BackboneName::ResNet18);
    let task = Task { config: &config, steps: 3, probes: true, graphs: false, recompute: false };
    assert!(together(&task, 3) == together(&task, 3));
}

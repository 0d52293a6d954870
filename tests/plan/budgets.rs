//! Plans for the released model in any memory.

use std::num::NonZeroUsize;

use k3_core::checkpoint::names::{LayerTensor, TensorId};
use k3_host::plan::{Budget, Demand, MatrixSizes, Positions, Reads, Weights, Wishes, safe};
use k3_host::streaming::Allotment;
use k3_host::synth::{Extent, Headers};

use super::{GB, RELEASED, plan, planner, ram, refusal};

/// The published numbers: of the files, of what they hold, and of what a token reads.
#[test]
fn sizes_are_the_published_ones() {
    let published = Extent { files: 96, file_bytes: 1_560_936_091_448, tensor_bytes: 1_560_860_324_864 };
    assert_eq!(Headers::released().unwrap().extent(), published);
    let sizes = &RELEASED.sizes;
    assert_eq!((sizes.experts, sizes.experts_of_token), (82_432, 1472));
    assert_eq!(sizes.expert, 17_547_264);
    assert_eq!(sizes.embedding_row, 7168 * 2);
    // 108.81 GB in the layers and a head of 2.35 GB, without the small vectors.
    let head = 163_840 * 7168 * 2;
    let layers = sizes.trunk() - head;
    assert!((108_700_000_000..=108_810_000_000).contains(&layers), "{layers}");
    assert!(sizes.matrices.iter().any(|matrix| matrix.id == TensorId::Head && matrix.read == head));
}

#[test]
fn any_memory_gives_a_plan_that_is_safe() {
    let mut gigabytes = vec![1.5, 2.0, 8.0, 16.0, 32.0, 100.0, 128.0, 256.0, 1024.0, 2048.0];
    gigabytes.extend((15..200).map(|tenths| f64::from(tenths) / 10.0));
    gigabytes.extend((20..200).map(f64::from));
    gigabytes.sort_by(f64::total_cmp);
    let largest = RELEASED.sizes.matrices.iter().map(|matrix| matrix.buffer).max().unwrap();
    let mut pinned = 0;
    let mut reads = u64::MAX;
    for gigabytes in gigabytes {
        let available = (gigabytes * 1e9) as u64;
        let plan = plan(Some(available), &Budget::default()).unwrap();
        assert!(plan.parts.total() <= safe(available), "{gigabytes} GB: {:?}", plan.parts);
        assert!(plan.parts.pinned_trunk >= pinned, "{gigabytes} GB pin less than what is less");
        pinned = plan.parts.pinned_trunk;
        let now = Reads::of(&RELEASED.sizes, &plan.weights).total();
        assert!(now <= reads, "{gigabytes} GB read more than what is less");
        reads = now;
        let left = safe(available) - plan.parts.total();
        assert!(left < largest, "{gigabytes} GB: {left} bytes are not used, enough for another expert or buffer");
    }
    assert_eq!(pinned, RELEASED.sizes.matrices.iter().map(|matrix| matrix.pinned).sum::<u64>());
}

/// The parts of a plan, computed here from the allotment.
#[test]
fn parts_are_what_the_allotment_takes() {
    for gigabytes in [2, 16, 150] {
        let plan = plan(None, &ram(gigabytes * GB)).unwrap();
        let Weights::Streamed(Allotment { pinned, read_ahead, expert_slots, guesses }) = &plan.weights else {
            panic!("{:?}", plan.weights);
        };
        let matrices = &RELEASED.sizes.matrices;
        let (kept, streamed): (Vec<&MatrixSizes>, Vec<_>) =
            matrices.iter().partition(|matrix| pinned.contains(&matrix.id));
        assert_eq!(plan.parts.pinned_trunk, kept.iter().map(|matrix| matrix.pinned).sum::<u64>());
        let longest = streamed.iter().map(|matrix| matrix.buffer).max().unwrap_or(0);
        assert_eq!(plan.parts.read_ahead, longest * *read_ahead as u64);
        let slots = expert_slots.get() + 2 * guesses;
        assert_eq!(plan.parts.expert_cache, RELEASED.sizes.expert_slot * slots as u64);
        let reads = Reads::of(&RELEASED.sizes, &plan.weights);
        assert_eq!(reads.trunk, streamed.iter().map(|matrix| matrix.read).sum::<u64>());
        assert_eq!(reads.experts, 1472 * 17_547_264);
    }
}

#[test]
fn with_enough_memory_nothing_is_streamed() {
    let plan = plan(Some(3000 * GB), &Budget::default()).unwrap();
    assert_eq!((&plan.weights, plan.parts.weights), (&Weights::Resident, RELEASED.sizes.files));
    assert_eq!(Reads::of(&RELEASED.sizes, &plan.weights), Reads::default());
}

#[test]
fn the_smallest_plan_takes_less_than_a_gigabyte_and_nothing_fits_below() {
    let with = |bytes| planner(None).plan(&Demand::positions(1), &ram(bytes));
    let (mut too_few, mut enough) = (0, GB);
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if with(middle).is_ok() { enough = middle } else { too_few = middle }
    }
    assert!((600_000_000..750_000_000).contains(&enough), "{enough}");
    assert_eq!(with(enough).unwrap().parts.total(), enough);
    let message = refusal(with(enough - 1));
    assert!(message.contains("1 positions need at least"), "{message}");
}

#[test]
fn guesses_wait_until_the_whole_trunk_is_pinned() {
    for (gigabytes, expected) in [(2, 0), (100, 0), (128, 6), (224, 6)] {
        let Weights::Streamed(allotment) = plan(None, &ram(gigabytes * GB)).unwrap().weights else { panic!() };
        assert_eq!(allotment.guesses, expected, "{gigabytes} GB");
    }
}

#[test]
fn guesses_that_are_wanted_bring_the_routers_into_memory() {
    let guesses = |guesses, gigabytes| {
        let budget = Budget { wishes: Wishes { guesses: Some(guesses), ..Wishes::default() }, ..ram(gigabytes * GB) };
        plan(None, &budget).map(|plan| match plan.weights {
            Weights::Streamed(allotment) => allotment,
            other => panic!("{other:?}"),
        })
    };
    let allotment = guesses(4, 8).unwrap();
    let routers = allotment.pinned.iter().filter(|id| matches!(id, TensorId::Layer(_, LayerTensor::Router)));
    assert_eq!((allotment.guesses, routers.count()), (4, 92));
    assert_eq!(guesses(0, 224).unwrap().guesses, 0);
    // 92 routers of 896 x 7168 bf16 are 1.2 GB.
    assert!(refusal(guesses(4, 2)).contains("--ram 2"));
}

#[test]
fn unknown_memory_is_neither_nothing_nor_everything() {
    assert_eq!(plan(None, &Budget::default()).unwrap().weights, Weights::Mapped);
    let wishes = Wishes { trunk: Some(0), cache: Some(0), packed: false, guesses: None };
    let plan = plan(None, &Budget { total: None, wishes }).unwrap();
    let Weights::Streamed(allotment) = plan.weights else { panic!("{:?}", plan.weights) };
    assert!(allotment.pinned.is_empty());
    assert_eq!(allotment.expert_slots, NonZeroUsize::MIN);
}

#[test]
fn wishes_are_met_or_refused() {
    let wishes =
        |trunk, cache| Budget { wishes: Wishes { trunk, cache, packed: false, guesses: None }, ..ram(32 * GB) };
    let trunk = plan(None, &wishes(Some(10 * GB), None)).unwrap().parts;
    assert!((9_990_000_000..=10 * GB).contains(&trunk.pinned_trunk), "{trunk:?}");
    assert!((31_900_000_000..=32 * GB).contains(&trunk.total()), "the cache takes the rest: {trunk:?}");
    let cache = plan(None, &wishes(None, Some(5 * GB))).unwrap().parts;
    assert!((4_980_000_000..=5 * GB).contains(&cache.expert_cache), "{cache:?}");
    assert!((31_900_000_000..=32 * GB).contains(&cache.total()), "the trunk takes the rest: {cache:?}");
    let both = plan(None, &wishes(Some(10 * GB), Some(5 * GB))).unwrap().parts;
    assert_eq!((both.pinned_trunk, both.expert_cache), (trunk.pinned_trunk, cache.expert_cache));
    let message = refusal(plan(None, &wishes(Some(30 * GB), Some(5 * GB))));
    assert!(message.contains("need at least 35."), "{message}");
}

#[test]
fn a_refusal_says_both_numbers_and_what_fits() {
    let message = refusal(plan(Some(22_100_000_000), &ram(64 * GB)));
    for part in ["--ram 64000000000: ", "64.00 GB", "22.10 GB are available", "16.57 GB are safe"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(message.ends_with("--ram 16.5GB fits, and so does --preset laptop"), "{message}");
    assert!(plan(Some(22_100_000_000), &ram(16_500_000_000)).is_ok());
    let message = refusal(plan(Some(500_000_000), &Budget::default()));
    assert!(message.ends_with("nothing fits"), "{message}");
}

/// The number of positions that a refusal names fits, and one more does not.
#[test]
fn a_context_that_is_too_long_is_refused_with_one_that_fits() {
    let available = Some(4 * GB);
    let with = |count| planner(available).plan(&Demand::positions(count), &Budget::default());
    let message = refusal(with(1_000_000));
    let fitting: usize = message.rsplit("; ").next().unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((10_000..100_000).contains(&fitting), "{message}");
    assert_eq!(with(fitting).unwrap().capacity, fitting);
    refusal(with(fitting + 1));
    let most = RELEASED.config.max_positions;
    let message = refusal(with(most + 1));
    assert!(message.ends_with(&format!("the model was made for at most {most}")), "{message}");
}

#[test]
fn a_conversation_gets_a_share_of_what_is_spare() {
    let capacity = |gigabytes: u64| {
        let plan = planner(None).plan(&Demand::as_many_as_fit(), &ram(gigabytes * GB)).unwrap();
        assert!(plan.parts.total() <= gigabytes * GB);
        plan.capacity
    };
    let capacities = [1, 2, 8, 32, 128].map(capacity);
    assert!(capacities.is_sorted(), "{capacities:?}");
    assert!((2_000..8_000).contains(&capacities[1]), "{capacities:?}");
    assert!((20_000..40_000).contains(&capacities[2]), "{capacities:?}");
    assert_eq!(Demand::as_many_as_fit().positions, Positions::AsFit);
}

/// What is fed in one go bounds the chunk, and so does the room for positions.
#[test]
fn a_chunk_is_no_longer_than_what_is_fed() {
    let chunk = |at_once, positions| {
        let demand = Demand { at_once, ..Demand::positions(positions) };
        planner(None).plan(&demand, &ram(8 * GB)).unwrap().chunk
    };
    assert_eq!([chunk(5, 100), chunk(100, 7), chunk(100, 100)], [5, 7, 32]);
}

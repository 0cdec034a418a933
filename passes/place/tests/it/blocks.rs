//! Several blocks.

use remat_plan::{Blocks, BufferId, PlacementProof, Status};
use remat_solve::SolveControl;

use crate::checked;
use crate::small::named;
use remat_testing::{Trial, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial!(no_buffer_crosses_from_one_block_to_the_next),
        trial!(sizes_of_blocks_need_not_be_multiples_of_anything),
        trial!(a_pinned_buffer_lies_in_the_first_block),
    ]
}

fn no_buffer_crosses_from_one_block_to_the_next() {
    let buffers = named(&[(60, 0..9), (60, 0..9), (60, 0..9)]);
    let control = SolveControl::new();
    let fits = checked(&buffers, &Blocks::Given(vec![100, 120]), &control);
    assert_eq!(
        (fits.certificate.status, fits.certificate.height),
        (Status::Optimal, Some(180))
    );
    let none = checked(&buffers, &Blocks::Given(vec![100, 100]), &control);
    assert_eq!(
        (none.certificate.status, none.certificate.proof),
        (Status::Infeasible, PlacementProof::Refutation)
    );
    assert!(
        checked(&buffers, &Blocks::Given(vec![200]), &control)
            .placement
            .is_some()
    );
}

fn sizes_of_blocks_need_not_be_multiples_of_anything() {
    let mut buffers = named(&[(64, 0..4), (64, 2..6), (128, 1..3), (64, 0..6)]);
    buffers.iter_mut().for_each(|buffer| buffer.alignment = 64);
    for sizes in [vec![135, 199], vec![199, 135], vec![129, 65, 131]] {
        let outcome = checked(&buffers, &Blocks::Given(sizes.clone()), &SolveControl::new());
        assert_eq!(outcome.certificate.status, Status::Optimal, "{sizes:?}");
    }
    let none = checked(&buffers, &Blocks::Given(vec![127, 127, 127]), &SolveControl::new());
    assert_eq!(none.certificate.status, Status::Infeasible);
}

fn a_pinned_buffer_lies_in_the_first_block() {
    let mut buffers = named(&[(64, 0..4), (32, 0..4)]);
    buffers[BufferId::new(1)].pinned = Some(16);
    let outcome = checked(&buffers, &Blocks::Given(vec![48, 64]), &SolveControl::new());
    assert_eq!(outcome.certificate.status, Status::Optimal);
    let none = checked(&buffers, &Blocks::Given(vec![47, 64]), &SolveControl::new());
    assert_eq!(none.certificate.status, Status::Infeasible);
}

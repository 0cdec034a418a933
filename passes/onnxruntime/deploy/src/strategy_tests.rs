use super::*;

#[test]
fn every_strategy_has_its_own_recipe() {
    assert!(Strategy::all().all(|strategy| strategy.recipe().strategy == strategy));
}

#[test]
fn tiles_come_before_whole_ops() {
    assert_eq!(Strategy::all().next(), Some(Strategy::Tiled));
}

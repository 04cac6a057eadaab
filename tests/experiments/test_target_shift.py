"""Other class proportions in the target: what is computed, chosen and told."""

import numpy as np

from structot.experiments import target_shift
from structot.experiments._runner import Settings, run


def test_settings_are_chosen_on_seeds_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(target_shift, "PRICES", (0.3, 0.03))
    monkeypatch.setattr(target_shift, "CHARGES", (0.1,))
    monkeypatch.setattr(target_shift, "POT_REGS", (0.05,))
    tasks = target_shift.tasks(Settings(quick=True), {})
    assert {task.arguments["seed"] for task in tasks} == {0, 1, target_shift.TUNING[0]}
    report = run(target_shift.EXPERIMENT, tmp_path, Settings(quick=True, seeds=1), progress=False)
    assert report.results["gaps_reached"]
    assert "POT's unbalanced Sinkhorn" in report.markdown
    own = report.results["fixed charge, relaxed source"]
    assert own["setting"].startswith("charge 0.1 tau")
    assert all(len(values) == 1 for values in own["accuracy"].values())
    assert report.figures["target_shift"]().axes


def test_a_score_counts_classes_alike():
    data = target_shift.target_shift((0.9, 0.05, 0.05), seed=0, noise=0.0, turn=0.0, shift=(0, 0))
    frequent = int(np.bincount(data.target_labels).argmax())
    centre = data.X[data.source_labels == frequent][0]
    one = target_shift._score(np.where(data.source_labels[:, None] == frequent, centre, 1e6), data)
    np.testing.assert_allclose(one, [0.9, 1 / 3])

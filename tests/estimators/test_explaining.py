"""What explains a model works with every estimator, or the error says what to use."""

from __future__ import annotations

import inspect

import pytest
from sklearn.datasets import load_iris

import treeclust_rs as tc
from every_estimator import ESTIMATORS

FRAME = load_iris(as_frame=True).data.iloc[::2]
FRAME.columns = ["sl", "sw", "pl", "pw"]

CALLS = {
    "to_html": lambda model, path: model.to_html(path, FRAME),
    "report": lambda model, path: tc.report(model, FRAME, path),
    "profile": lambda model, path: model.profile(FRAME),
    "explain": lambda model, path: model.explain(FRAME),
    "counterfactual": lambda model, path: model.counterfactual(
        FRAME.iloc[[0]], model.predict(FRAME)[-1]
    ),
}
REFUSALS = {
    "KernelKMeans": (*CALLS,),
    "Douglas": ("counterfactual",),
}


def test_all_public_estimators_are_among_the_cases():
    public = {getattr(tc, name) for name in tc.__all__}
    estimators = {found for found in public if inspect.isclass(found) and hasattr(found, "fit")}
    assert {case.estimator for case in ESTIMATORS.values()} == estimators


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_explains_works_or_says_what_to_use(name, tmp_path):
    model = ESTIMATORS[name].make().fit(FRAME)
    for call, run in CALLS.items():
        path = tmp_path / f"{call}.html"
        if call not in REFUSALS.get(name, ()):
            found = run(model, path)
            assert path.read_text("utf-8") if found is None else found
            continue
        with pytest.raises((AttributeError, TypeError), match=r"reference=model") as refused:
            run(model, path)
        assert name in str(refused.value)
        assert not path.exists()


def test_the_way_out_of_a_refusal_is_one():
    kernel = tc.KernelKMeans(3, random_state=0).fit(FRAME)
    assert tc.KernelIMM(3, reference=kernel).fit(FRAME).explain(FRAME)
    for model in (kernel, ESTIMATORS["Douglas"].make().fit(FRAME)):
        tree = tc.BestTree(objective="labels", reference=model.predict(FRAME)).fit(FRAME)
        assert tree.counterfactual(FRAME.iloc[[0]], tree.labels_[-1]).changes is not None
    with pytest.raises(AttributeError, match=r"has no attribute 'nothing'$"):
        kernel.nothing  # noqa: B018


def test_douglas_says_what_explains_pairs_and_makes_frames():
    model = ESTIMATORS["Douglas"].make().fit(FRAME)
    for other, as_frame in ((FRAME, False), (None, True)):
        with pytest.raises(TypeError, match=r"single rows .* BestTree\(objective=\"labels\""):
            model.explain(FRAME, other, as_frame=as_frame)

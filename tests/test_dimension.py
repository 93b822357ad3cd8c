"""The one-step estimate of W_O2: averages of frequencies equal averages of inputs; a token never seen is wrong."""

from itertools import pairwise

import torch

from engram.embeddings import directions
from engram.models import Simplified
from engram.tasks import Bigram
from engram.theory.one_step import class_scores, one_step_recall, one_step_recalls, summed_frequencies

TASK = Bigram(K=5, T=48)


def test_averaged_frequencies_give_the_scores_of_averaged_inputs() -> None:
    """μ_k and μ from the frequencies of tokens equal those from every x = (1/t) Σ W_V2 e_z, one position at a time."""
    batch, N, V = TASK.sample(3, 0, 16), TASK.N, directions("gaussian", TASK.N, 24, 3, "V", torch.float64)
    inputs: dict[int, list[torch.Tensor]] = {}
    for tokens, targets, asked in zip(batch.tokens, batch.targets, batch.groups["in_context"], strict=True):
        for t in asked.nonzero()[0]:
            inputs.setdefault(int(targets[t]), []).append(V[tokens[: t + 1]].mean(0))
    mu = torch.stack([x for of_y in inputs.values() for x in of_y]).mean(0)
    scores = class_scores(V, *summed_frequencies(batch, N))
    for k in range(N):
        if k in inputs:
            naive = V @ (torch.stack(inputs[k]).mean(0) - mu)
            assert torch.allclose(scores[k], naive, rtol=0, atol=1e-12)
        else:
            assert scores[k].isnan().all()


def test_planted_frequencies_are_recalled_and_unseen_tokens_are_wrong() -> None:
    """Where the answer k stands in the context of y = k and nothing else differs, recall is 1; less what is unseen."""
    N, V = 8, directions("orthonormal", 8, 8, 0, "V", torch.float64)
    sums, counts = 0.3 * torch.eye(N, dtype=torch.float64) + 0.7 / N, torch.ones(N, dtype=torch.float64)
    assert one_step_recall(class_scores(V, sums, counts)) == 1
    sums[0], counts[0] = 0, 0
    assert one_step_recall(class_scores(V, sums, counts)) == 7 / 8


def test_more_batches_contain_the_earlier_ones_whatever_the_width() -> None:
    """Rows up to 2 batches are the first rows up to 4; which tokens were never seen depends on the data alone."""
    few, more, wide = (
        list(one_step_recalls(n, seed=1, d=d, T=32, sequences=4)) for n, d in ((2, 16), (4, 16), (4, 48))
    )
    assert more[:2] == few
    assert [row["batches"] for row in more] == [1, 2, 4]
    assert [row["unseen"] for row in more] == [row["unseen"] for row in wide]
    assert all(later["unseen"] <= row["unseen"] for row, later in pairwise(more))


def test_the_directions_are_those_of_the_simplified_model() -> None:
    """A row of the law is the recall of the E and W_V2 that `Simplified` begins with."""
    task, w = Bigram(K=5, T=32), Simplified(d=32).init(65, 32, seed=2)
    V = (w["E"] @ w["W_V2"].T).double()
    expected = one_step_recall(class_scores(V, *summed_frequencies(task.sample(2, 0, 32), task.N)))
    assert next(one_step_recalls(1, seed=2, d=32, T=32))["recall"] == expected

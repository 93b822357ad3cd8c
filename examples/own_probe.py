"""A probe of one's own: how sure is the model, and does that change when the induction head is born?

It does: until W_K1 is born (at step 105, among the first 64 positions) entropy in context hardly moves, from 3.8 to 3.1
nats, and then it falls to 0.4. Elsewhere it falls to 2.1 only, since the next letter of a text is uncertain (seed 0).

The columns of the probe stand in the rows; the figure of the run, the report and the lab draw them.

engram run ./own_probe.py
"""

from engram import SGD, Bigram, Plan, Probe, Simplified, Train


class Certainty(Probe):
    """Entropy of the predictions on unseen sequences in nats: in context, and elsewhere."""

    columns = ("entropy.",)

    def measure(self, look):
        batch = look.unseen(sequences=16)
        log_p = look.forward(batch).logits.log_softmax(-1)
        entropy = -(log_p.exp() * log_p).sum(-1).cpu().numpy()
        return {f"entropy.{group}": float(entropy[batch.groups[group]].mean()) for group in ("in_context", "global")}


def specs(scale, seeds):
    T, d, batch, steps = {"smoke": (32, 16, 4, 12)}.get(scale, (128, 128, 128, 300))
    sgd = SGD(lr=0.2, momentum=0.9, weight_decay=1e-4)
    plan = Plan(optimiser=sgd, steps=steps, batch=batch, probes=(Certainty(every=5),))
    return [Train(task=Bigram(K=5, T=T), model=Simplified(d=d), plan=plan, seed=seed) for seed in seeds]

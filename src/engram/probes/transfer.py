"""How a model does on tasks that it is not trained on."""

from typing import ClassVar

from engram.probes.probe import Look, Probe

SEQUENCES = 128


class Transfer(Probe, name="probes.transfer.Transfer"):
    """Loss and accuracy on the tasks that the training is tested on (Train.tests)."""

    columns: ClassVar = ("test.",)
    rhythm: ClassVar = "attention_every"

    def measure(self, look: Look) -> dict[str, float]:
        found = {}
        for name, task in look.tests.items():
            batch = look.unseen(SEQUENCES, task)
            metrics = look.gradients(look.model, look.w, batch, look.loss, ()).metrics
            found |= {f"test.{name}.{key}": value for key, value in metrics.items() if key != "loss"}
        return found

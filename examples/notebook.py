# %% [markdown]
# # From a training to a figure of your own, in ten cells
#
# Run it cell by cell in an editor or in Jupyter (jupytext reads it), or whole: `python examples/notebook.py`. It takes
# about a minute on two cores.

# %% 1. What is trained: task, model and plan
import matplotlib.pyplot as plt

import engram

spec = engram.Train(
    task=engram.Bigram(K=5, T=128),
    model=engram.Simplified(d=128),
    plan=engram.Plan(optimiser=engram.SGD(lr=0.2, momentum=0.9, weight_decay=1e-4), steps=300, batch=64),
)

# %% 2. Train it; a second time it is read from disk. In a notebook the last line of a cell is shown with its curves
record = engram.run(spec)
record

# %% 3. Everything measured, as a table: a DataFrame where pandas is installed, else a dict of arrays
frame = record.frame()
print("columns:", ", ".join(frame))

# %% 4. The trained model reads text; every intermediate of the forward pass has a name
model = record.model()
trace = model("the man and the man")
print(trace)

# %% 5. Its matrices as memories: the share of questions that each answers rightly
for name, memory in model.memories.items():
    print(f"{name}: {memory.recall():.2f}")

# %% 6. What does a part do? Without W_O2 the model cannot write what it has found
batch = spec.task.sample(seed=1, step=0, batch=256)
mask = batch.groups["in_context"]


def accuracy(model: engram.Model) -> float:
    return float((model(batch.tokens).logits.argmax(-1).numpy() == batch.targets)[mask].mean())


print(f"in context: {accuracy(model):.2f}, without W_O2: {accuracy(model.without('W_O2')):.2f}")

# %% 7. Put a part of an earlier run into the trained one: what its first layer wrote before training
logits = engram.patch(model, batch.tokens, [("head", 1)], source=record.model(0))
patched = float((logits.argmax(-1).numpy() == batch.targets)[mask].mean())
print(f"with the first layer of step 0: {patched:.2f}")

# %% 8. The same at several widths: a table with intervals over seeds, and a figure on disk
swept = engram.sweep(spec, {"model.d": [32, 64, 128]}, seeds=2, metrics=["recall.W_O2"])
for row in swept.rows:
    print(row["settings"], f"{row['metrics']['recall.W_O2']['mean']:.2f}")

# %% 9. A figure of your own: when is each memory born?
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name in ("recall.W_O2", "recall.W_K2", "recall.W_K1"):
    ax.plot(*record.curve(name), label=name.removeprefix("recall."))
ax.set(xlabel="training step", ylabel="recall", title="Three memories of an induction head")
ax.legend(frameon=False)

# %% 10. Keep it
fig.savefig("memories.pdf")
print("figure  memories.pdf")

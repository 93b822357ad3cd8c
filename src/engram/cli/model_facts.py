"""`engram fact edit --model`: a fact of a language model rewritten, and edits that are kept as files applied."""

import hashlib
from pathlib import Path
from typing import Any

from engram.cli.output import answer, in_a_folder, near, say, tell
from engram.errors import EngramError

LABELS = {"paraphrase": "paraphrases that prefer the new answer", "neighbour": "neighbours that stay"}
LABELS |= {"subject": "other facts of the subject that stay"}


def parsed_size(word: str) -> float | None:
    """β in units of ‖x‖; None for least."""
    if word == "least":
        return None
    try:
        size = float(word)
    except ValueError:
        size = -1.0
    if not 0 < size <= 100:
        raise EngramError(f"size: a number above 0, up to 100, or least, is needed; got {word!r:.60}")
    return size


def edit_model(model: str, words: tuple[str, ...], files: tuple[Path, ...], yes: bool, json: bool, **how: Any) -> None:
    """With a prompt and an answer a new edit, on top of those in files; without them what these do."""
    from engram.adapters import read_model
    from engram.facts.difference import read_edit
    from engram.probes.edits import Edits
    from engram.probes.words import Speaker

    if len(words) != 2 and (words or not files):
        raise EngramError(
            'fact edit --model: give a prompt and an answer, as in "The capital of France is" Rome, '
            "or edits with --apply FILE"
        )
    stack = [read_edit(file) for file in files]
    read = read_model(model, consent=yes)
    edits = Edits(read.network).plus(*stack)
    if words:
        _make(edits, read.tokenizer, *words, json=json, **how)
    else:
        _apply(edits, Speaker.of(read.network, read.tokenizer), json)


def _make(edits: Any, words: Any, prompt: str, new: str, json: bool, output: Path | None, **how: Any) -> None:
    from engram.cli.facts import mistakes_by_line
    from engram.facts.difference import edit_bytes, save_edit
    from engram.facts.rewrite import rewrite

    output = output and in_a_folder(output)
    with mistakes_by_line():
        done = rewrite(edits, words, prompt, new, **how)
    short = hashlib.sha256(edit_bytes(done.edit)).hexdigest()[:8]
    file = save_edit(done.edit, output or Path(f"edit-{short}.safetensors"))
    rows = [{"other prompts": LABELS[kind], "do": n, "of": of} for kind, (n, of) in done.changed.items()]
    say(*done.notes)
    if json:
        about = {"model": str(edits.base.provenance), "matrix": done.edit.matrix, "was": done.edit.was}
        about |= {"answer": done.edit.answer, "before": vars(done.before), "after": vars(done.after)}
        loss = {"text_loss": list(done.loss), "norm": done.edit.norm, "notes": list(done.notes)}
        answer(about | {"changed": rows} | loss | {"file": str(file)})
        return
    _print(edits, done, rows, file)


def _print(edits: Any, done: Any, rows: list[dict[str, Any]], file: Path) -> None:
    from engram.cli.output import print_table

    edit, before, after = done.edit, done.before, done.after
    tell(f"{edit.prompt} {edit.was} → {edit.answer}, by a rank-one change of {edit.matrix} ({edit.how})")
    tell(f"answer  {before.top} → {after.top}")
    tell(f"p({edit.answer})  {before.p_new:.4f} → {after.p_new:.4f}")
    tell(f"p({edit.was})  {before.p_old:.4f} → {after.p_old:.4f}")
    if rows:
        print_table("changed", rows, json=False)
    tell(f"text loss  {done.loss[0]:.4f} → {done.loss[1]:.4f} nats", "", f"edit    {near(file)}")
    tell(f"apply   engram fact edit --model {edits.base.provenance.name} --apply {near(file)}")
    tell("undo    leave the file out: the files of the model are as before")


def _apply(edits: Any, speaker: Any, json: bool) -> None:
    """The prompts of all edits, asked before and after."""
    import torch

    from engram.cli.output import print_table
    from engram.facts.rewrite import belief
    from engram.probes.prompts import Prompts, entering

    network, rows = edits.network, []
    with torch.no_grad():
        for one in edits.stack:
            prompts, tokens = (
                Prompts.of([speaker.tokens(one.prompt)]),
                (speaker.token(one.was), speaker.token(one.answer)),
            )
            found = (belief(speaker, n, entering(n, prompts), tokens) for n in (speaker.network, network))
            before, after = found
            told = {"before": before.top, "after": after.top, "p(new) before": round(before.p_new, 4)}
            rows.append({"prompt": one.prompt, "matrix": one.matrix} | told | {"p(new) after": round(after.p_new, 4)})
    if json:
        answer(
            {
                "model": str(edits.base.provenance),
                "matrix": ", ".join(dict.fromkeys(e.matrix for e in edits.stack)),
                "changed": rows,
            }
        )
        return
    print_table("changed", rows, json=False)
    tell(
        "",
        f"{len(edits.stack)} edit{'s' * (len(edits.stack) != 1)} of {edits.base.provenance}, whose files are as before",
    )

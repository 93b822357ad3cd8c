"""Facts that join a training while it runs, as an intervention."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from engram.specs.events import Event
from engram.specs.settings import Ask, Offer
from engram.tasks.corpus import is_a_record_read
from engram.tasks.facts import FactTask
from engram.tasks.grown import MOST_ADDED, grown, refuse_added
from engram.tasks.table import Fact

if TYPE_CHECKING:
    from engram.models.trace import Head
    from engram.specs.spec import Train

TOLD = 3  # facts that a sentence names


class AddFacts(Event, name="specs.more_facts.AddFacts"):
    """From this step on these facts are asked for, too; a question that had another answer has the new one."""

    title = "Add facts"
    words = "add facts"  # the sentence names them
    facts: Annotated[  # no form asks for a list
        tuple[Fact, ...], Field(min_length=1, max_length=MOST_ADDED), Ask("facts", lambda spec: Offer(choices=()))
    ]

    @property
    def sentence(self) -> str:
        n, named = len(self.facts), [f"({s}, {r}) → {a}" for s, r, a in self.facts[:TOLD]]
        rest = f" and {n - TOLD} more" if n > TOLD else ""
        return f"add {n} fact{'s' * (n != 1)}: {', '.join(named)}{rest}"

    def steer(self, now: "Train") -> "Train":
        assert isinstance(now.task, FactTask)
        return now.model_copy(update={"task": grown(now.task, self.facts)})

    def refuse(self, now: "Train", silent: "frozenset[Head]") -> None:
        if not isinstance(now.task, FactTask):
            raise ValueError(f"facts: {type(now.task).__name__} is no task of facts")
        if not is_a_record_read():  # then it was not refused when it was made
            refuse_added(now.task, self.facts, now.seed)
        super().refuse(now, silent)

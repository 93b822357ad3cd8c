"""One function per lemma, bound or law, each yielding rows that a Check records."""

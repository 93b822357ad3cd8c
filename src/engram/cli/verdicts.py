"""python -m engram.cli.verdicts writes the verdicts of the committed records into the package (`make ledger`)."""

from engram.claims.verdicts import FILE, table
from engram.cli.decided import decided
from engram.records.files import COMMITTED

if __name__ == "__main__":
    FILE.write_text(table(decided((), [COMMITTED]).claims))

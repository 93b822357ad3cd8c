"""The checker that conftest applies to the whole package: beartype, for which an int is a float (PEP 484)."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))

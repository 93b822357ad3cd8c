"""The lab: a page where training is watched, stopped, steered and forked.

    page ──WebSocket── server ──files── trainer ──record── disk
                          └────────── reads records ────────┘

The trainer is a process of its own that obeys commands between steps and waits for nobody. The server reads what it
writes, and keeps nothing: either can die and come back.
"""

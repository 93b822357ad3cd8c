"""The lab: a page where training is watched, stopped, steered and forked.

    page ──WebSocket── server ──files── trainer ──record── disk
                          └────────── reads records ────────┘

The trainer is a process of its own that obeys commands between steps and waits for nobody. The server reads what it
writes, and keeps nothing: either can die and come back.

    server.py       the page, and a WebSocket for each tab
    address.py      where it is served, and by which names it may be asked for
    browser.py      how a browser is led there
    wire.py         connections that bring nonsense, or nothing, end themselves
    quiet_log.py    few lines about them
    protocol.py     what page and server say to each other
    tab.py          one open page: its questions, and what is new of what it looks at
    backend.py      what all tabs share: a thread that draws, and the trainer's orders and answers
    run_reader.py   the runs of a home as lists, rows, pictures and predictions
    watched_run.py  one run that somebody looks at
    pictures.py     what a run looks like at one step
    still.py        runs as they are, for a page without a lab
    whole.py        that page as one file, with figures and claims below
    notebook.py     the same in a cell of a notebook
    presets.py      where a run can begin; all_fields.py what can be set there
    lesson.py       a text beside a run; lesson_blocks.py and lesson_words.py read it, lessons.py finds it
    uploads.py      a run on a text or a table that a page sends
    mailbox.py      the files between server and trainer
    trainer.py      the process that trains
"""

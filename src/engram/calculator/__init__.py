"""The calculator: the size that a memory needs, or what a size holds, by theory and by what was measured."""

"""Search for schedules by measuring: kernels of CPUs, plans of the accelerator.

A problem (``problem.py``) says what may be changed; ``search.py`` evolves candidates, which a
learned model ranks before they are measured; ``workers.py`` measures in processes that may die.
"""

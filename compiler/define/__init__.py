"""Plain loop programs of operators and fused groups: what is computed, not how a target does it.

A definition has serial loops only: no vectors, no unrolling, no intrinsics, no lane count.
``define_group`` writes it; rules of a target turn it into steps of a schedule's trace
(``schedule/rules/cpu``), and the kernel is the definition after those steps.

``table.FAMILIES`` says for each kind of anchor which operators are defined here.  Kinds that have
no rule in ``schedule/rules/cpu/table.py`` still get their loops, scheduled, from ``lower/``, whose
table has the operators that are not defined here yet.
"""

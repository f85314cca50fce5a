"""What would be: the controller's own decisions on a virtual clock, over a network of rates. Pure.

A forecast cannot differ from what the controller does, because the same functions decide: the ledger admits, the plan
is made by :mod:`controller.state.desired`, and :mod:`controller.work.next_work` says what comes next on the way to it.
Only how long a switch or a host needs to carry that out is a number here.
"""

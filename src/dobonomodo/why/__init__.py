"""Why a value is what it is: the plan of a run, computed for single rows in plain Python from the inputs that the run pinned.

Nothing here starts Spark. Rows come through one port; computed rows are compared with stored ones.
"""

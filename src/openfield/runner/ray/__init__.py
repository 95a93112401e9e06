"""Play cells on the machines of a Ray cluster (extra `ray`).

Start with `executor`, which requests a slot for each job that waits and leaves it to Ray where that is; `connection`
connects to a cluster. The actor of a `slot` plays in a worker process of its own, so that deadlines, hung agents and
dead workers are dealt with where they are; `shipment` brings the files that agents and domains need.
"""

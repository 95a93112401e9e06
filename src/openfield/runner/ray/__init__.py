"""Play cells on the machines of a Ray cluster (extra `ray`).

Start with `executor`, which the driver starts jobs on; `connection` connects it to a cluster. A `foreman` on each
machine runs worker processes there, so that deadlines, hung agents and dead workers are dealt with where they are;
`shipment` brings the files that agents and domains need, and `needs` says what a cell takes up of a machine.
"""

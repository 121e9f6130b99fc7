"""What a fit does with encoded rows: growing trees, boosting, and out-of-bag work.

`plan` is what the core is asked to grow. Forests: `backend` is the interface to the rows and
`local` implements it in memory; `out_of_bag`, `forest_size`, `shrinkage` and `calibration` decide
by out-of-bag votes. Boosting: `boosting_rows` encodes the rows, `targets` turns y into integers,
`rounds` runs the rounds. `progress` reports on both.
"""

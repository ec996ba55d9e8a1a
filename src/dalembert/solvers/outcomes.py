"""How a step ends; with contacts also: a body left the room of its list of what is near, or the log of contacts is full."""
SOLVED, NOT_CONVERGED, SINGULAR, TOO_FAST = 0, 1, 2, 3
LOST, LOG_FULL = 10, 11
#: where impact times are resolved: one lies within the step; something strikes at its first knot
MET, STRIKES = 13, 14
#: two shapes would overlap or pass through one another; in the place of the residual stands their pair
THROUGH = 15
#: contacts put energy in: the step is too long for how far shapes turn in it
GAINED = 16
#: a joint takes a large impulse of a contact back whole, so that no gap answers it
TAKEN_BACK = 17
#: a joint left the range of its spline
BEYOND = 20

"""The form of all models here that are not training steps."""


def hourglass(depth, down, up, y):
    """`depth` levels down, then up again; each level on the way up reads what its counterpart on the way down left.

    `down(i, y)` and `up(i, y, skip)` add the nodes of a level and return its result. All of the skips live at the turn, so
    memory is `depth` levels high; what recomputing every other of them costs is a level each.
    """
    levels = []
    for i in range(depth):
        y = down(i, y)
        levels.append(y)
    for i in reversed(range(depth)):
        y = up(i, y, levels[i])
    return y

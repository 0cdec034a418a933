"""The list of models of the matrix."""

BUILDERS = []


def model(build):
    """Registers a function that returns a `Network` of its own name."""
    BUILDERS.append(build)
    return build

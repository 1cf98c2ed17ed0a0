"""Parameters and the work of layers, for make_profiles.py."""


def numel(shape):
    product = 1
    for size in shape:
        product *= size
    return product


class Layers:
    """A model's parameters in registration order, each with the work (multiplications of a sample or
    token in the forward pass) that the backward pass has done when its gradient is there and that of
    the parameter before it was not."""

    def __init__(self):
        self.rows = []
        self.buffers = []

    def add(self, name, shape, work=0):
        self.rows.append((name, tuple(shape), work))

    def linear(self, name, outputs, inputs, work=None, bias=True):
        """`work`: where it is not the size of the weight. Backward comes to the bias first: its
        gradient needs no product, that of the weight does."""
        self.add(f"{name}.weight", (outputs, inputs), outputs * inputs if work is None else work)
        if bias:
            self.add(f"{name}.bias", (outputs,))

    def norm(self, name, channels):
        self.add(f"{name}.weight", (channels,))
        self.add(f"{name}.bias", (channels,))

    def batch_norm(self, name, channels):
        self.norm(name, channels)
        self.buffers += [(f"{name}.running_{moment}", (channels,), "float32") for moment in ("mean", "var")]
        self.buffers += [(f"{name}.num_batches_tracked", (), "int64")]

    def conv(self, name, outputs, inputs, kernel, side, bias=False):
        """`side`: of the square output."""
        shape = (outputs, inputs, kernel, kernel)
        self.add(f"{name}.weight", shape, numel(shape) * side * side)
        if bias:
            self.add(f"{name}.bias", (outputs,))

    def count(self):
        return sum(numel(shape) for _, shape, _ in self.rows)

    def spaced(self, backward):
        """(name, shape, ready): gradients come in the reverse of registration, and the time between
        two of them is in proportion to the work."""
        total = sum(work for _, _, work in self.rows)
        done, ready = 0, []
        for name, shape, work in reversed(self.rows):
            done += work
            ready.append((name, shape, backward * done / total))
        return ready[::-1]

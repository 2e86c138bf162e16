# ---- who this process is
def process():
    """Joins the processes that torchrun (or the environment) has started; rank, ranks, device."""
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    if ranks != RANKS:
        sys.exit(f"this program is for {RANKS} processes, and {ranks} were started: see its first lines")
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", rank=rank, world_size=ranks)
    return rank, device


class Mesh:
    """Ranks in a grid with named axes, the last of them the fastest."""

    def __init__(self, ranks, **sizes):
        self.sizes = sizes
        self.ranks = torch.tensor(list(ranks)).view(*sizes.values())

    def at(self, rank, axis):
        """Coordinate of a rank on an axis; 0 where it is not in the mesh."""
        where = (self.ranks == rank).nonzero()
        return int(where[0, list(self.sizes).index(axis)]) if len(where) else 0

    def has(self, rank, **at):
        """Is the rank in the mesh, at these coordinates?"""
        return bool((self.ranks == rank).any()) and all(self.at(rank, axis) == k for axis, k in at.items())


class Axes:
    """The ranks that differ from this one along some axes of a mesh only, or along a part of them: a process group and this rank's
    place in it."""

    groups = {}

    def __init__(self, mesh, *names, **only):
        axes, grid = list(mesh.sizes), mesh.ranks
        for name, at in only.items():
            grid = grid.index_select(axes.index(name), torch.tensor(at))
        self.sizes = [len(only[name]) if name in only else mesh.sizes[name] for name in names]
        order = [k for k, name in enumerate(axes) if name not in names] + [axes.index(name) for name in names]
        self.ranks, self.at, self.group = [RANK], 0, None
        for ranks in grid.permute(order).reshape(-1, math.prod(self.sizes)).tolist():
            members = tuple(sorted(ranks))
            if members not in Axes.groups:
                Axes.groups[members] = dist.new_group(members)
            if RANK in ranks:
                self.ranks, self.at, self.group = ranks, ranks.index(RANK), Axes.groups[members]
        self.sorted = [sorted(self.ranks).index(rank) for rank in self.ranks]  # the order that torch has them in

    def peer(self, at):
        """The rank that is at this coordinate and otherwise where this one is."""
        return self.ranks[at]


def channel():
    """A process group for the sends of one stream: they do not wait for those of others."""
    return dist.new_group()


def tasks(text):
    """"F0.1 B0.0": forward of stage 0 for microbatch 1, then its backward for microbatch 0."""
    for task in text.split():
        kind, mb = task.rsplit(".", 1)
        yield kind, int(mb)


# ---- what is stored
class Stored:
    """A tensor that is kept from step to step, or data; a cut is (axes, dimension, stride in the whole)."""

    def __init__(self, extents, dtype, role, *cuts, below=None, fill=None, host=False):
        self.extents, self.dtype, self.role, self.cuts = extents, dtype, role, cuts
        self.below, self.fill, self.host = below, fill, host

    def places(self):
        """Which elements this rank has, along every dimension."""
        index = [torch.arange(extent) for extent in self.extents]
        for axes, dim, stride in self.cuts:
            index[dim] = index[dim][is_in(index[dim], axes.at, len(axes.ranks), stride)]
        return index

    def piece(self, whole):
        for dim, index in enumerate(self.places()):
            if len(index) < self.extents[dim]:
                whole = whole.index_select(dim, index)
        piece = whole.to(self.dtype).contiguous()
        return piece if self.host else piece.to(DEVICE)


def initial(name, stored, seed):
    """The whole tensor before the first step: random, and the same on every rank."""
    g = torch.Generator().manual_seed(zlib.crc32(name.removesuffix(".master").encode()) + seed)
    if stored.fill is not None:
        return torch.full(stored.extents, stored.fill)
    if not stored.dtype.is_floating_point:
        return torch.randint(0, stored.below or 2, stored.extents, generator=g)
    if stored.role == "state" and not name.endswith(".master"):
        return torch.zeros(stored.extents)
    x = torch.randn(stored.extents, generator=g)
    if stored.role in ("input", "label"):
        return x
    return x / math.sqrt(math.prod(stored.extents[:-1])) if len(stored.extents) > 1 else 0.1 * x


def path_of(folder, name):
    return os.path.join(folder, name.replace("%", "%25").replace("/", "%2F") + ".npy")


def load(p, folder, seed):
    """Weights and states, and data, of this rank: from NAME.npy files, or random."""
    w, data = {}, {}
    for name, stored in p.items():
        if folder:
            whole = torch.from_numpy(numpy.load(path_of(folder, name)))
        else:
            whole = initial(name, stored, seed)
        (data if stored.role in ("input", "label") else w)[name] = stored.piece(whole)
    return w, data


def piece_for(name, p, w):
    """What rank 0 needs of a tensor to put it together; None where this rank has nothing of it."""
    if name not in p or name not in w:
        return None
    x = w[name].cpu()
    x = x.float() if x.dtype == torch.bfloat16 else x  # numpy has no bf16
    return p[name].extents, [index.numpy() for index in p[name].places()], x.numpy()


def put_together(pieces):
    extents, _, x = next(piece for piece in pieces if piece)
    whole = numpy.zeros(extents, x.dtype)
    for _, places, x in filter(None, pieces):
        whole[numpy.ix_(*places)] = x
    return whole


def save(p, w, folder, most=2**28):
    """Whole tensors as NAME.npy files, put together on rank 0, about `most` elements at a time."""
    names, pieces = [None] * RANKS, [None] * RANKS
    dist.all_gather_object(names, {name: math.prod(p[name].extents) for name in p if name in w})
    sizes = {name: size for own in names for name, size in own.items()}
    while sizes:
        some, total = [], 0
        for name in sorted(sizes):
            if not some or total + sizes[name] <= most:
                some.append(name)
                total += sizes.pop(name)
        dist.all_gather_object(pieces, [piece_for(name, p, w) for name in some])
        if RANK == 0:
            os.makedirs(folder, exist_ok=True)
            for k, name in enumerate(some):
                numpy.save(path_of(folder, name), put_together([own[k] for own in pieces]))


# ---- pieces of tensors: even ones at a stride, or uneven ones with a list of their ends in place of it
def is_in(index, at, ways, stride):
    """Which elements of a dimension are in piece `at`."""
    if isinstance(stride, list):
        return (index >= stride[at][0]) & (index < stride[at][1])
    return index // stride % ways == at


def extent(ends, axes):
    return ends[axes.at][1] - ends[axes.at][0]


def cut(x, dim, at, ways, stride=None):
    """Piece `at` of `ways` along a dimension; with a stride, that piece of every ways * stride elements."""
    if isinstance(stride, list):
        return x.narrow(dim, stride[at][0], stride[at][1] - stride[at][0])
    if stride is None:
        stride = x.shape[dim] // ways
    x = x.reshape(*x.shape[:dim], -1, ways, stride, *x.shape[dim + 1 :]).select(dim + 1, at)
    return x.flatten(dim, dim + 1)


def uncut(pieces, dim, stride=None):
    """The tensor that `cut` made these pieces of."""
    if stride is None or isinstance(stride, list):
        return torch.cat(pieces, dim)
    pieces = [x.reshape(*x.shape[:dim], -1, stride, *x.shape[dim + 1 :]) for x in pieces]
    return torch.stack(pieces, dim + 1).flatten(dim, dim + 2)


def cut_of(how):
    return how if isinstance(how, tuple) else (how, None)


def pieces_of(x, axes, cuts):
    """The piece of every member of the axes; a cut is a dimension, or (dimension, stride), of each axis."""
    pieces = [x]
    for ways, how in zip(axes.sizes, cuts):
        dim, stride = cut_of(how)
        pieces = [cut(piece, dim, at, ways, stride) for piece in pieces for at in range(ways)]
    return pieces


def whole_of(pieces, axes, cuts):
    """The tensor that pieces_of made these pieces of."""
    for ways, how in reversed(list(zip(axes.sizes, cuts))):
        pieces = [uncut(pieces[k : k + ways], *cut_of(how)) for k in range(0, len(pieces), ways)]
    return pieces[0]


def shard(x, axes, *cuts):
    """This rank's piece of a tensor that it has whole."""
    return pieces_of(x, axes, cuts)[axes.at].contiguous()


def places(extent, cuts):
    """Which elements of a dimension are here; a cut is (coordinate, ways, stride)."""
    index = torch.arange(extent, device=DEVICE)
    for at, ways, stride in cuts:
        index = index[is_in(index, at, ways, stride)]
    return index


def within(index, cuts):
    """Where elements of a dimension lie in the piece that is here, and whether they are in it."""
    here = torch.ones_like(index, dtype=torch.bool)
    for at, ways, stride in cuts:
        here &= is_in(index, at, ways, stride)
        uneven = isinstance(stride, list)
        index = index - stride[at][0] if uneven else index // (ways * stride) * stride + index % stride
    return index, here


# ---- collectives
def as_bytes(x):
    """What every backend can move, of any element type."""
    return x.contiguous().view(-1).view(torch.uint8)


def like(data, x):
    return data.view(x.dtype).view(x.shape)


def partial(x, axes):
    """A value that ranks have whole as a sum over them: the first one has it, the others zero."""
    return x if axes.at == 0 else torch.zeros_like(x)


def all_reduce(x, axes, op="sum"):
    """The sum (or maximum) over the axes, in place."""
    y = x.float() if DEVICE.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16) else x.contiguous()
    ops = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "prod": dist.ReduceOp.PRODUCT}
    dist.all_reduce(y, ops[op], axes.group)
    return y.to(x.dtype)


SUMS = []


def all_reduce_beside(x, axes):
    """As all_reduce; it runs beside what is computed until finish_sums."""
    if DEVICE.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16):
        return all_reduce(x, axes)
    x = x.contiguous()
    SUMS.append(dist.all_reduce(x, group=axes.group, async_op=True))
    return x


def finish_sums():
    for work in SUMS:
        work.wait()
    SUMS.clear()


def all_gather(x, axes, *cuts):
    """The whole of what ranks along the axes have pieces of."""
    if any(isinstance(how, tuple) and isinstance(how[1], list) for how in cuts):
        return all_gather_uneven(x, axes, *cuts[0])
    parts = [torch.empty_like(as_bytes(x)) for _ in axes.ranks]
    dist.all_gather(parts, as_bytes(x), axes.group)
    return whole_of([like(parts[k], x) for k in axes.sorted], axes, cuts)


def all_gather_uneven(x, axes, dim, ends):
    """As all_gather, of pieces that are made as long as the longest on their way."""
    sizes = [hi - lo for lo, hi in ends]
    x = torch.cat([x, x.new_zeros(*x.shape[:dim], max(sizes) - x.shape[dim], *x.shape[dim + 1 :])], dim)
    parts = [torch.empty_like(as_bytes(x)) for _ in axes.ranks]
    dist.all_gather(parts, as_bytes(x), axes.group)
    pieces = [like(parts[place], x).narrow(dim, 0, size) for place, size in zip(axes.sorted, sizes)]
    return torch.cat(pieces, dim)


def swap(pieces, axes):
    """Piece k goes to member k, whose piece for this rank comes back."""
    out = [None] * len(pieces)
    for k, place in enumerate(axes.sorted):
        out[place] = as_bytes(pieces[k])
    got = torch.empty(sum(x.numel() for x in out), dtype=torch.uint8, device=DEVICE)
    dist.all_to_all_single(got, torch.cat(out), group=axes.group)
    got = got.chunk(len(pieces))
    return [like(got[place].clone(), pieces[0]) for place in axes.sorted]


def reduce_scatter(x, axes, *cuts):
    """This rank's piece of the sum over the axes."""
    pieces = [piece.contiguous() for piece in pieces_of(x, axes, cuts)]
    if len({piece.shape for piece in pieces}) > 1:  # uneven
        return shard(all_reduce(x.clone(), axes), axes, *cuts)
    if DEVICE.type == "cpu":  # gloo has none
        return torch.stack(swap(pieces, axes)).sum(0, dtype=x.dtype)
    out, y = [None] * len(pieces), torch.empty_like(pieces[0])
    for k, place in enumerate(axes.sorted):
        out[place] = pieces[k]
    dist.reduce_scatter(y, out, group=axes.group)
    return y


def reduce_scatter_beside(x, axes, *cuts):
    """As reduce_scatter; it runs beside what is computed until finish_sums."""
    pieces = [piece.contiguous() for piece in pieces_of(x, axes, cuts)]
    if DEVICE.type == "cpu" or len({piece.shape for piece in pieces}) > 1:
        return reduce_scatter(x, axes, *cuts)
    out, y = [None] * len(pieces), torch.empty_like(pieces[0])
    for k, place in enumerate(axes.sorted):
        out[place] = pieces[k]
    SUMS.append(dist.reduce_scatter(y, out, group=axes.group, async_op=True))
    return y


def all_to_all(x, axes, give, take):
    """Split as `give` says, of a tensor that was split as `take` says."""
    return whole_of(swap([piece.contiguous() for piece in pieces_of(x, axes, give)], axes), axes, take)


def to_host(x):
    """In host memory, once it is there."""
    return x.cpu()


def to_device(x):
    return x.to(DEVICE)


SENT = []  # what is on its way


def send(x, to, group):
    """Goes on at once; finish_sends waits."""
    x = x.contiguous()
    SENT[:] = [sent for sent in SENT if not sent[0].is_completed()]
    SENT.append((dist.isend(as_bytes(x), to, group=group), x))


def receive(shape, dtype, source, group):
    x = torch.empty(shape, dtype=dtype, device=DEVICE)
    dist.recv(as_bytes(x), source, group=group)
    return x


def finish_sends():
    for work, _ in SENT:
        work.wait()
    SENT.clear()


def holdings(mesh, extents, ranks, **cuts):
    """Of every rank, which elements of a tensor it has along each dimension; a cut is (dimension, stride) of an axis."""
    have = {}
    for rank in ranks:
        have[rank] = [torch.arange(extent) for extent in extents]
        for axis, (dim, stride) in cuts.items():
            index = have[rank][dim]
            have[rank][dim] = index[is_in(index, mesh.at(rank, axis), mesh.sizes[axis], stride)]
    return have


def overlap(have, want):
    """Where the elements that two pieces share lie in each, dimension by dimension; None if there are none."""
    inside = [torch.isin(x, y) for x, y in zip(have, want)], [torch.isin(y, x) for x, y in zip(have, want)]
    if not all(x.any() for x in inside[0]):
        return None
    return [torch.meshgrid(*[x.nonzero().view(-1) for x in side], indexing="ij") for side in inside]


def exchange(x, have, want, dtype, group=None):
    """From one layout to another, as messages: every element from the first rank that has it."""
    work, inside, y = [], [], None
    if RANK in want:
        y = torch.empty([len(index) for index in want[RANK]], dtype=dtype, device=DEVICE)
    for to in want:
        seen = []
        for source in have:
            if any(all(torch.equal(a, b) for a, b in zip(have[source], other)) for other in seen):
                continue
            seen.append(have[source])
            both = overlap(have[source], want[to]) if RANK in (source, to) else None
            if both is None:
                continue
            if source == to:
                y[both[1]] = x[both[0]]
            elif RANK == source:
                work.append(dist.P2POp(dist.isend, as_bytes(x[both[0]]), to, group))
            else:
                got = torch.empty(both[1][0].shape, dtype=dtype, device=DEVICE)
                inside.append((both[1], got))
                work.append(dist.P2POp(dist.irecv, as_bytes(got), source, group))
    for one in dist.batch_isend_irecv(work) if work else []:
        one.wait()
    for where, got in inside:
        y[where] = got
    return y


# ---- operators
def divide(x, y):
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def infinite(x, mode):
    return {"both": torch.isinf, "pos": torch.isposinf, "neg": torch.isneginf}[mode](x)


def product_over(x, dims, keepdim):
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim, keepdim=keepdim)
    return x


def cumsum(x, dim, exclusive, reverse):
    x = x.flip(dim) if reverse else x
    y = x.cumsum(dim)
    y = y - x if exclusive else y
    return y.flip(dim) if reverse else y


def topk(x, k, dim, largest):
    """The k largest or smallest, equal ones in their order."""
    values, index = torch.sort(x, dim=dim, descending=bool(largest), stable=True)
    return values.narrow(dim, 0, k), index.narrow(dim, 0, k)


def strided(x, starts, ends, axes, steps=None):
    for k, dim in enumerate(axes):
        index = torch.arange(starts[k], ends[k], steps[k] if steps else 1, device=x.device)
        x = x.index_select(dim, index)
    return x


def pad(x, pads, value=None, mode="constant"):
    """Elements before every dimension, then after every dimension."""
    n = x.dim()
    if mode == "constant":
        order = [pads[k + side * n] for k in reversed(range(n)) for side in (0, 1)]
        return F.pad(x, order, value=value or 0)
    for dim in range(n):
        size = x.shape[dim]
        index = torch.arange(-pads[dim], size + pads[dim + n], device=x.device)
        if mode == "edge":
            index = index.clamp(0, size - 1)
        elif mode == "wrap":
            index = index % size
        else:
            index = (size - 1) - ((size - 1) - index.abs()).abs()
        x = x.index_select(dim, index)
    return x


def gather(table, index, axis):
    """Slices of a table along an axis."""
    axis %= table.dim()
    y = table.index_select(axis, (index % table.shape[axis]).view(-1))
    return y.view(*table.shape[:axis], *index.shape, *table.shape[axis + 1 :])


def gather_part(table, index, axis, extent, cuts):
    """As gather, of a table that is split along the axis: zero where another rank has it."""
    at, here = within(index % extent, cuts)
    y = gather(table, torch.where(here, at, 0), axis)
    axis %= table.dim()
    return y * here.view(*[1] * axis, *here.shape, *[1] * (table.dim() - axis - 1)).to(y.dtype)


def gather_add(dy, index, axis, shape, rows=None, cuts=()):
    """Slices added at their places of a table, of whose rows this rank has what cuts say."""
    axis %= len(shape)
    at, here = within(index.reshape(-1) % (rows or shape[axis]), cuts)
    dy = dy.reshape(*shape[:axis], at.numel(), *shape[axis + 1 :])
    counts = here.view(*[1] * axis, -1, *[1] * (len(shape) - axis - 1)).to(dy.dtype)
    y = torch.zeros(shape, dtype=dy.dtype, device=DEVICE)
    return y.index_add(axis, torch.where(here, at, 0), dy * counts)


def put(x, index, value, axis, scatter):
    index = index % x.shape[axis]
    if scatter == "none":
        return x.scatter(axis, index, value)
    how = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[scatter]
    return x.scatter_reduce(axis, index, value, how)


def gather_nd(x, index, batch_dims):
    places = [index[..., k] % x.shape[batch_dims + k] for k in range(index.shape[-1])]
    for k in range(batch_dims):
        rows = torch.arange(x.shape[k], device=x.device).view(*[-1 if j == k else 1 for j in range(index.dim() - 1)])
        places.insert(k, rows)
    return x[tuple(places)]


def scatter_nd(x, index, value, scatter):
    """Slices of x at index tuples, replaced, or combined with what is there."""
    n = index.shape[-1]
    at = torch.zeros(index.shape[:-1], dtype=torch.int64, device=x.device)
    for k in range(n):
        at = at * x.shape[k] + index[..., k] % x.shape[k]
    y = x.reshape(math.prod(x.shape[:n]), -1).clone()
    at, value = at.view(-1), value.reshape(at.numel(), -1)
    if scatter == "none":
        y[at] = value
    else:
        how = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[scatter]
        y = y.scatter_reduce(0, at.unsqueeze(1).expand(value.shape), value, how)
    return y.view(x.shape)


def reverse(x, length, axis, batch):
    """The first length[b] elements along the axis in reverse order, where b counts along `batch`."""
    axis, batch = axis % x.dim(), batch % x.dim()
    at = torch.arange(x.shape[axis], device=x.device).view(*[-1 if k == axis else 1 for k in range(x.dim())])
    length = length.view(*[-1 if k == batch else 1 for k in range(x.dim())])
    return x.gather(axis, torch.where(at < length, length - 1 - at, at).expand(x.shape))


def depth_to_space(x, size):
    """Channels to blocks of pixels, of channels that count faster than places in a block."""
    n, c, h, w = x.shape
    c //= size * size
    return x.reshape(n, size, size, c, h, w).permute(0, 3, 4, 1, 5, 2).reshape(n, c, h * size, w * size)


def hardmax(x, axis):
    """1 at the first largest, else 0."""
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1.0)


def one_hot(index, size, axis, dtype):
    axis %= index.dim() + 1
    y = torch.arange(size, device=DEVICE).view(*[-1 if k == axis else 1 for k in range(index.dim() + 1)])
    return (y == (index % size).unsqueeze(axis)).to(dtype)


def one_hot_part(index, size, axis, dtype, cuts):
    axis %= index.dim() + 1
    y = places(size, cuts).view(*[-1 if k == axis else 1 for k in range(index.dim() + 1)])
    return (y == (index % size).unsqueeze(axis)).to(dtype)


def constant(shape, dtype, text):
    """Elements as they lie in memory, packed with zlib, in base64."""
    data = bytearray(zlib.decompress(base64.b64decode(text)))
    return torch.frombuffer(data, dtype=dtype).view(shape).to(DEVICE)


def iota(shape, axis, dtype, alpha=1, beta=0):
    """beta + alpha k along an axis."""
    y = beta + alpha * torch.arange(shape[axis], device=DEVICE)
    return y.to(dtype).view(*[-1 if k == axis else 1 for k in range(len(shape))]).expand(shape)


def iota_part(shape, axis, dtype, extent, cuts, alpha=1, beta=0):
    """As iota, of an axis that is split."""
    y = beta + alpha * places(extent, cuts)
    return y.to(dtype).view(*[-1 if k == axis else 1 for k in range(len(shape))]).expand(shape)


def triangle(x, upper, k):
    return torch.triu(x, k) if upper else torch.tril(x, k)


def triangle_part(x, upper, k, extents, cuts):
    """As triangle, of a matrix that is split."""
    row, col = places(extents[0], cuts[0]).unsqueeze(1), places(extents[1], cuts[1])
    return torch.where(col - row >= k if upper else col - row <= k, x, torch.zeros((), dtype=x.dtype, device=DEVICE))


def leaky_relu_dx(dy, x, alpha):
    return torch.where(x > 0, dy, alpha * dy)


# ---- convolutions and windows
def spatial(x, strides, dilations, pads):
    """What convolutions and windows are told, of every dimension in space."""
    n = x.dim() - 2
    return strides or (1,) * n, dilations or (1,) * n, pads or (0,) * (2 * n)


def conv(x, w, bias=None, *, strides=None, dilations=None, pads=None):
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    n = x.dim() - 2
    if pads[:n] != pads[n:]:
        x, pads = F.pad(x, [pads[k + side * n] for k in reversed(range(n)) for side in (0, 1)]), (0,) * (2 * n)
    groups = x.shape[1] // w.shape[1]
    return torch.convolution(x, w, bias, strides, pads[:n], dilations, False, (0,) * n, groups)


def conv_gradients(dy, x, w, strides, dilations, pads, of):
    n = x.dim() - 2
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    lo, hi = pads[:n], pads[n:]
    if lo != hi:
        x, lo = F.pad(x, [pads[k + side * n] for k in reversed(range(n)) for side in (0, 1)]), (0,) * n
    both = torch.ops.aten.convolution_backward(
        dy, x, w, None, strides, lo, dilations, False, (0,) * n, x.shape[1] // w.shape[1], of + [False]
    )
    return both, pads[:n] != hi


def conv_dx(dy, w, shape, *, strides=None, dilations=None, pads=None):
    """Gradient of conv for x, which has this shape."""
    x = torch.empty(shape, dtype=dy.dtype, device=DEVICE)
    (dx, _, _), padded = conv_gradients(dy, x, w, strides, dilations, pads, [True, False])
    if padded:
        for k in range(len(shape) - 2):
            dx = dx.narrow(2 + k, pads[k], shape[2 + k])
    return dx


def conv_dw(dy, x, shape, *, strides=None, dilations=None, pads=None):
    """Gradient of conv for w, which has this shape."""
    w = torch.empty(shape, dtype=dy.dtype, device=DEVICE)
    (_, dw, _), _ = conv_gradients(dy, x, w, strides, dilations, pads, [False, True])
    return dw


def windows(x, window, strides, dilations, pads, ceil, fill):
    """Every window as a last dimension, and which of its elements are inside: [n, c, points.., taps]."""
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    n, inside = len(window), torch.ones(1, 1, *x.shape[2:], dtype=torch.int8, device=x.device)
    border = [pads[k + side * n] for k in reversed(range(n)) for side in (0, 1)]
    x, bordered = F.pad(x, border, value=fill), F.pad(inside, border, value=1)
    inside, more = F.pad(inside, border), [0] * (2 * n)
    for k in range(n):
        reach = dilations[k] * (window[k] - 1) + 1
        points = -(-(x.shape[2 + k] - reach) // strides[k]) if ceil else (x.shape[2 + k] - reach) // strides[k]
        if ceil and points * strides[k] >= x.shape[2 + k] - pads[n + k]:
            points -= 1  # it would begin behind the end
        more[2 * (n - 1 - k) + 1] = max(points * strides[k] + reach - x.shape[2 + k], 0)
    x, inside, bordered = F.pad(x, more, value=fill), F.pad(inside, more), F.pad(bordered, more)
    for k in range(n):
        reach = dilations[k] * (window[k] - 1) + 1
        x, inside, bordered = (
            t.unfold(2 + k, reach, strides[k])[..., :: dilations[k]] for t in (x, inside, bordered)
        )
    return x.flatten(2 + n), inside.flatten(2 + n), bordered.flatten(2 + n)


def plain(x, window, strides, dilations, pads, ceil):
    """What max_pool2d is told; None where it has no such pooling."""
    strides, dilations, pads = spatial(x, strides, dilations, pads)
    if x.dim() != 4 or ceil or pads[:2] != pads[2:] or any(2 * pad > size for pad, size in zip(pads, window)):
        return None
    return window, strides, pads[:2], dilations


def maxpool(x, window, *, strides=None, dilations=None, pads=None, ceil=0):
    if how := plain(x, window, strides, dilations, pads, ceil):
        return F.max_pool2d(x, *how)
    return windows(x, window, strides, dilations, pads, ceil, -math.inf)[0].amax(-1)


def maxpool_first(x, window, strides, dilations, pads, ceil):
    """The first largest of every window, as one factor for each of its elements."""
    x = windows(x, window, strides, dilations, pads, ceil, -math.inf)[0]
    return F.one_hot(x.argmax(-1), x.shape[-1]).to(x.dtype)


def windows_back(dy, x, window, strides, dilations, pads, ceil):
    """Elements of windows, [n, c, points.., taps], added where they are of."""
    with torch.enable_grad():
        x = torch.zeros_like(x, requires_grad=True)
        y = windows(x, window, strides, dilations, pads, ceil, 0)[0]
        return torch.autograd.grad(y, x, dy)[0]


def maxpool_dx(dy, x, window, *, strides=None, dilations=None, pads=None, ceil=0):
    if how := plain(x, window, strides, dilations, pads, ceil):
        first = F.max_pool2d(x, *how, return_indices=True)[1]
        return torch.ops.aten.max_pool2d_with_indices_backward(dy, x, *how, False, first)
    which = maxpool_first(x, window, strides, dilations, pads, ceil)
    return windows_back(dy.unsqueeze(-1) * which, x, window, strides, dilations, pads, ceil)


def avgpool_shares(x, window, strides, dilations, pads, ceil, include_pad):
    _, inside, bordered = windows(x, window, strides, dilations, pads, ceil, 0)
    return inside / (bordered if include_pad else inside).sum(-1, keepdim=True)


def avgpool(x, window, *, strides=None, dilations=None, pads=None, ceil=0, include_pad=0):
    y = windows(x, window, strides, dilations, pads, ceil, 0)[0]
    return (y * avgpool_shares(x, window, strides, dilations, pads, ceil, include_pad).to(y.dtype)).sum(-1)


def avgpool_dx(dy, x, window, *, strides=None, dilations=None, pads=None, ceil=0, include_pad=0):
    shares = avgpool_shares(x, window, strides, dilations, pads, ceil, include_pad).to(dy.dtype)
    return windows_back(dy.unsqueeze(-1) * shares, x, window, strides, dilations, pads, ceil)


# ---- normalisations
def normalised(x, dims, eps, centred=True):
    """x with mean 0 and deviation 1 over dimensions, and one over its deviation."""
    x = x - x.mean(dims, keepdim=True) if centred else x
    inverse = torch.rsqrt(x.square().mean(dims, keepdim=True) + eps)
    return x * inverse, inverse


def norm_dx(d, x, dims, eps, centred=True):
    """Gradient of `normalised` for x from that of its result."""
    h, inverse = normalised(x, dims, eps, centred)
    mean = d.mean(dims, keepdim=True) if centred else 0
    return inverse * (d - mean - h * (d * h).mean(dims, keepdim=True))


def last_dims(x, axis):
    return tuple(range(axis % x.dim(), x.dim()))


def layernorm_gradients(dy, x, g, axis, eps, of):
    shape = x.shape[axis % x.dim() :]
    _, mean, inverse = torch.native_layer_norm(x, shape, None, None, eps)
    return torch.ops.aten.native_layer_norm_backward(dy, x, shape, mean, inverse, g, None, of)


def layernorm_dx(dy, x, g, axis, eps):
    return layernorm_gradients(dy, x, g, axis, eps, [True, False, False])[0]


def layernorm_dg(dy, x, axis, eps):
    return layernorm_gradients(dy, x, x.new_ones(x.shape[axis % x.dim() :]), axis, eps, [False, True, False])[1]


def rmsnorm(x, g, axis, eps):
    return normalised(x, last_dims(x, axis), eps, False)[0] * g


def rmsnorm_dx(dy, x, g, axis, eps):
    return norm_dx(dy * g, x, last_dims(x, axis), eps, False)


def rmsnorm_dg(dy, x, axis, eps):
    h = normalised(x, last_dims(x, axis), eps, False)[0]
    return (dy * h).flatten(0, axis % x.dim() - 1).sum(0) if axis % x.dim() else dy * h


def lrn(x, size, alpha, beta, value):
    """Local response normalisation: by the squares of `size` channels around each."""
    square = F.pad(x.square().movedim(1, -1), ((size - 1) // 2, size // 2)).unfold(-1, size, 1).sum(-1)
    return x / (value + alpha / size * square.movedim(-1, 1)) ** beta


def by_channel(g, x):
    return g.view(1, -1, *[1] * (x.dim() - 2))


def batchnorm_train(x, g, b, samples, eps, first=True):
    """Every `samples` samples with their own statistics; those of the first come back too."""
    y, mean, inverse = zip(*(torch.native_batch_norm(part, g, b, None, None, True, 0, eps) for part in x.split(samples)))
    y = y[0] if len(y) == 1 else torch.cat(y)
    if not first:
        return y, torch.zeros_like(g), torch.zeros_like(g)
    return y, mean[0].to(g.dtype), (inverse[0] ** -2 - eps).clamp(min=0).to(g.dtype)


def batchnorm_dx(dy, x, g, samples, eps):
    dx, dg, db = [], 0, 0
    for d, part in zip(dy.split(samples), x.split(samples)):
        _, mean, inverse = torch.native_batch_norm(part, None, None, None, None, True, 0, eps)
        own = torch.ops.aten.native_batch_norm_backward(d, part, g, None, None, mean, inverse, True, eps, [True] * 3)
        dx.append(own[0])
        dg, db = dg + own[1], db + own[2]
    return dx[0] if len(dx) == 1 else torch.cat(dx), dg, db


def channel_groups(x, groups):
    """The channels of a group behind each other: [n, groups, all of a group]."""
    return x.reshape(x.shape[0], groups or x.shape[1], -1)


def groupnorm_dx(dy, x, g, groups, eps):
    d = channel_groups(dy * by_channel(g, x), groups)
    return norm_dx(d, channel_groups(x, groups), [2], eps).view(x.shape)


def groupnorm_dg(dy, x, groups, eps):
    h = normalised(channel_groups(x, groups), [2], eps)[0].view(x.shape)
    return (dy * h).sum([0, *range(2, x.dim())])


# ---- losses
class Attention:
    """The law of an attention, "bshd,bthd,bthe->bshe", and its rows of scores in blocks: never are all scores in memory."""

    block = 256

    def __init__(self, law, q, k, beside, alpha, causal, value):
        terms, self.y = law.replace(" ", "").split("->")
        self.q, self.k, self.v, *self.beside = terms.split(",")
        self.key = next(c for c in self.k if c in self.v and c not in self.q + self.y)
        self.wide = next(c for c in self.v if c in self.y and c not in self.q + self.k)
        self.rows = self.y.replace(self.wide, "")
        self.scores = self.rows + self.key
        self.size = dict(zip(self.q, q.shape)) | dict(zip(self.k, k.shape))
        free = [c for c in self.q if c in self.rows and c not in self.k + self.v]
        self.row = causal or max(free, key=self.size.get, default=None)  # None: rows are alone
        self.options = q, k, beside, alpha, causal, value

    def part(self, x, term, at):
        """Of x the rows of a block."""
        if not self.row or self.row not in term or x.shape[term.index(self.row)] == 1:
            return x
        dim = term.index(self.row)
        return x.narrow(dim, at, min(self.block, x.shape[dim] - at))

    def along(self, x, term):
        """x with a dimension for every letter of scores, of extent 1 where it has none."""
        letters = [c for c in self.scores if c in term]
        x = x.permute([term.index(c) for c in letters])
        return x.reshape([x.shape[letters.index(c)] if c in letters else 1 for c in self.scores])

    def blocks(self):
        """Of each block where its rows begin, scores, and which of them are masked."""
        q, k, beside, alpha, causal, value = self.options
        for at in range(0, self.size[self.row] if self.row else 1, self.block):
            s = torch.einsum(f"{self.q},{self.k}->{self.scores}", self.part(q, self.q, at), k) * alpha
            masked = torch.zeros((), dtype=torch.bool, device=s.device)
            for x, term in zip(beside, self.beside):
                x = self.along(self.part(x, term, at), term)
                if x.dtype == torch.bool:
                    masked = masked | ~x
                else:
                    s = s + x
            if causal:
                query = at + torch.arange(s.shape[self.scores.index(causal)], device=s.device)
                later = torch.arange(self.size[self.key], device=s.device) > query.unsqueeze(1)
                masked = masked | self.along(later, causal + self.key)
            yield at, s.masked_fill(masked, -math.inf if value is None else value), masked

    def gradients(self, dy, y, lse, v):
        """Of each block where its rows begin, the softmax, and the gradient of its scores."""
        for at, s, masked in self.blocks():
            g = self.part(dy, self.y, at)
            p = (s - self.part(lse, self.rows, at).unsqueeze(-1)).exp().to(dy.dtype)
            dp = torch.einsum(f"{self.y},{self.v}->{self.scores}", g, v)
            dot = torch.einsum(f"{self.y},{self.y}->{self.rows}", g, self.part(y, self.y, at))
            yield at, g, p, (p * (dp - dot.unsqueeze(-1))).masked_fill(masked, 0)


def has_flash(x):
    here = x.is_cuda and x.dtype in (torch.bfloat16, torch.float16)
    return here and hasattr(torch.ops.aten, "_scaled_dot_product_flash_attention")


class Flash:
    """The GPU's own kernel where it has one for a law: how dimensions become [batch, heads, tokens, width], and back."""

    def __init__(self, law, q, k, v, beside, alpha, causal, value):
        terms, self.y = law.replace(" ", "").split("->")
        self.q, self.k, self.v, *_ = terms.split(",")
        both = [c for c in self.q if c in self.k and c in self.v and c in self.y]
        pairs = (self.q, self.y), (self.k, self.v), (self.q, self.k), (self.v, self.y)
        own = [[c for c in x if c in z and c not in both] for x, z in pairs]
        self.fits = has_flash(q) and not beside and len(both) == 2 and all(len(x) == 1 for x in own)
        self.fits = self.fits and all(len(x) == 4 for x in (self.q, self.k, self.v, self.y))
        if not self.fits:
            return
        (s,), (t,), (d,), (e,) = own
        self.order = [*both, s, d], [*both, t, d], [*both, t, e], [*both, s, e]
        self.rows = [*both, s]
        q, k, v = self.operands(q, k, v)
        masked = value is None or value <= -1e4  # a row has one that is not masked, and the others come to nothing
        self.fits = k.shape == v.shape == q.shape[:2] + k.shape[2:3] + q.shape[3:] and min(q.numel(), k.numel()) > 0
        self.fits = self.fits and q.shape[3] % 8 == 0 and q.shape[3] <= 256
        self.fits = self.fits and (not causal or (causal == s and q.shape[2] == k.shape[2] and masked))
        self.options = bool(causal), alpha

    def operands(self, *x):
        return [y.permute([term.index(c) for c in order]) for y, term, order in zip(x, (self.q, self.k, self.v), self.order)]

    def forward(self, q, k, v):
        causal, alpha = self.options
        q, k, v = self.operands(q, k, v)
        y, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, scale=alpha)
        back = [self.rows.index(c) for c in self.y if c in self.rows]
        return y.permute([self.order[3].index(c) for c in self.y]), lse.permute(back)

    def backward(self, dy, y, lse, q, k, v):
        causal, alpha = self.options
        order = [self.y.index(c) for c in self.order[3]]
        rows = [c for c in self.y if c in self.rows]
        none = torch.empty(0, dtype=torch.int64, device=q.device)
        q, k, v = self.operands(q, k, v)
        d = torch.ops.aten._scaled_dot_product_flash_attention_backward(
            dy.permute(order), q, k, v, y.permute(order), lse.permute([rows.index(c) for c in self.rows]).contiguous(),
            None, None, q.shape[2], k.shape[2], 0.0, causal, none, none, scale=alpha,
        )
        return [x.permute([o.index(c) for c in term]) for x, o, term in zip(d, self.order, (self.q, self.k, self.v))]


def attention(law, q, k, v, *beside, alpha=1.0, causal=None, value=None):
    """softmax(alpha q k^T + bias) v, and the log-sum-exp of each row of scores."""
    flash = Flash(law, q, k, v, beside, alpha, causal, value)
    if flash.fits:
        return flash.forward(q, k, v)
    a, y, lse = Attention(law, q, k, beside, alpha, causal, value), [], []
    for _, s, _ in a.blocks():
        y.append(torch.einsum(f"{a.scores},{a.v}->{a.y}", F.softmax(s, -1), v))
        lse.append(torch.logsumexp(s.float() if s.element_size() < 4 else s, -1))
    if not a.row:
        return y[0], lse[0]
    return torch.cat(y, a.y.index(a.row)), torch.cat(lse, a.rows.index(a.row))


def attention_dx(law, dy, y, lse, q, k, v, *beside, alpha=1.0, causal=None, value=None):
    """Gradients of attention for q, k, v: scores are computed again."""
    flash = Flash(law, q, k, v, beside, alpha, causal, value)
    if flash.fits:
        return flash.backward(dy, y, lse, q, k, v)
    a = Attention(law, q, k, beside, alpha, causal, value)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for at, g, p, ds in a.gradients(dy, y, lse, v):
        a.part(dq, a.q, at).add_(torch.einsum(f"{a.scores},{a.k}->{a.q}", ds, k), alpha=alpha)
        dk.add_(torch.einsum(f"{a.scores},{a.q}->{a.k}", ds, a.part(q, a.q, at)), alpha=alpha)
        dv += torch.einsum(f"{a.scores},{a.y}->{a.v}", p, g)
    return dq, dk, dv


def attention_db(law, dy, y, lse, q, k, v, *beside, alpha=1.0, causal=None, value=None):
    """Gradient of attention for what is added to scores."""
    a = Attention(law, q, k, beside, alpha, causal, value)
    db = torch.zeros_like(beside[0])
    for at, _, _, ds in a.gradients(dy, y, lse, v):
        to = a.along(a.part(db, a.beside[0], at), a.beside[0])
        to += ds.sum([d for d, n in enumerate(to.shape) if n == 1], keepdim=True) if 1 in to.shape else ds
    return db


def cross_entropy(x, label, count, ignore=None, reduce="mean"):
    """-log softmax(x)[label] over the last dimension; count: labels that the mean is over, on all ranks."""
    ignored = -(2**62) if ignore is None else ignore
    loss = F.cross_entropy(x.reshape(-1, x.shape[-1]), label.reshape(-1), ignore_index=ignored, reduction="none")
    if reduce == "none":
        return loss.view(label.shape)
    if ignore is not None:
        count = (label != ignore).sum()
    return loss.sum() / count if reduce == "mean" else loss.sum()


def cross_entropy_dx(dy, x, label, lse=None, *, count, cuts=(), ignore=None, reduce="mean"):
    """Gradient of cross_entropy for x, of whose classes this rank has what cuts say; lse: log(sum(exp(x))) over all."""
    counts = torch.ones_like(label, dtype=torch.bool) if ignore is None else label != ignore
    count = counts.sum() if ignore is not None else count
    y = F.softmax(x, -1) if lse is None else (x - lse.unsqueeze(-1)).exp_()
    at, here = within(torch.where(counts, label, 0), cuts)
    g = (dy / count if reduce == "mean" else dy) * counts.to(x.dtype)
    return y.mul_(g.unsqueeze(-1)).scatter_add_(-1, torch.where(here, at, 0).unsqueeze(-1), -(g * here).unsqueeze(-1))


def pick(x, label, cuts=()):
    """The element of the last dimension that the label names; zero where another rank has it."""
    at, here = within(label, cuts)
    return x.gather(-1, torch.where(here, at, 0).unsqueeze(-1)).squeeze(-1) * here.to(x.dtype)


def nll(x, label, weight=None, *, count, ignore=None, reduce="mean"):
    """Negative log likelihood: classes in dimension 1."""
    ignored = -(2**62) if ignore is None else ignore
    if weight is None and ignore is None and reduce == "mean":
        return F.nll_loss(x, label, reduction="sum") / count
    return F.nll_loss(x, label, weight, ignore_index=ignored, reduction=reduce)


# ---- mixture of experts: a slot is expert * capacity + place, -1 a token that was dropped
def moe_gate(p, k, capacity):
    """Slots and weights of the k best experts of every token; places are dealt in the order of tokens."""
    groups, tokens, experts = p.shape
    weight, expert = topk(p, k, -1, 1)
    hit = F.one_hot(expert, experts).view(groups, tokens * k, experts)
    place = ((hit.cumsum(1) - hit) * hit).sum(-1).view(groups, tokens, k)
    fits = place < capacity
    return torch.where(fits, expert * capacity + place, -1), weight * fits.to(p.dtype)


def moe_rows(slot, experts, capacity, cuts):
    """The row of every slot among those of the experts that are here, and whether it is one of them."""
    expert, here = within(slot.clamp(min=0) // capacity, cuts)
    here &= slot >= 0
    group = torch.arange(len(slot), device=DEVICE).view(-1, 1, 1) * experts
    return torch.where(here, (group + expert) * capacity + slot % capacity, 0), here


def moe_dispatch(x, slot, shape, capacity, cuts=()):
    row, here = moe_rows(slot, shape[1], capacity, cuts)
    rows = x.unsqueeze(2) * here.unsqueeze(-1).to(x.dtype)
    y = torch.zeros(math.prod(shape[:3]), shape[3], dtype=x.dtype, device=DEVICE)
    return y.index_add(0, row.view(-1), rows.view(-1, shape[3])).view(shape)


def moe_combine(x, slot, weight, cuts=()):
    row, here = moe_rows(slot, x.shape[1], x.shape[2], cuts)
    return (x.reshape(-1, x.shape[3])[row] * (weight * here.to(weight.dtype)).unsqueeze(-1)).sum(2)


def moe_combine_dw(dy, slot, x, cuts=()):
    row, here = moe_rows(slot, x.shape[1], x.shape[2], cuts)
    return (x.reshape(-1, x.shape[3])[row] * dy.unsqueeze(2)).sum(-1) * here.to(x.dtype)


# ---- optimizers
def sgd(w, g, lr, weight_decay):
    return (w - lr * (g + weight_decay * w)).to(w.dtype)


def momentum(w, g, m, lr, momentum, nesterov, weight_decay):
    d = g.to(m.dtype) + weight_decay * w.to(m.dtype)
    m = momentum * m + d
    return (w - lr * (d + momentum * m if nesterov else m)).to(w.dtype), m


def begin_update(k):
    """Update k of this step's comes next."""
    global STEP
    STEP = FIRST + k - 1


def fused_adam(x, g, m, v, lr, beta1, beta2, eps, weight_decay, decoupled):
    """The GPU's own kernel: moments where they are, the weight in a tensor of its own."""
    step = torch.full((), STEP, dtype=torch.float32, device=x.device)
    run = torch._fused_adamw_ if decoupled else torch._fused_adam_
    how = dict(lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay, amsgrad=False, maximize=False)
    run([x], [g], [m], [v], [], [step], **how)
    return x, m, v


def adam(w, g, m, v, lr, beta1, beta2, eps, weight_decay, decoupled=False):
    g, x = g.to(m.dtype), w.to(m.dtype)
    if x.is_cuda and hasattr(torch, "_fused_adam_") and m.is_contiguous() and v.is_contiguous():
        x = x.clone() if x is w else x
        x, m, v = fused_adam(x, g.contiguous(), m, v, lr, beta1, beta2, eps, weight_decay, decoupled)
        return x.to(w.dtype), m, v
    if decoupled:
        x = x - lr * weight_decay * x
    else:
        g = g + weight_decay * x
    m, v = (beta1 * m).add_(g, alpha=1 - beta1), (beta2 * v).addcmul_(g, g, value=1 - beta2)
    root = (v / (1 - beta2**STEP)).sqrt_().add_(eps)
    return torch.addcdiv(x, m, root, value=-lr / (1 - beta1**STEP)).to(w.dtype), m, v


def adafactor_v(w, g, v, beta2, eps):
    """The sum of the squares of w, and the second moment."""
    return w.to(v.dtype).square().sum(), beta2 * v + (1 - beta2) * (g.to(v.dtype).square() + eps)


def adafactor_rc(w, g, r, c, beta2, eps, extents, first_row=True, first_col=True):
    """The second moment as rows and columns; what was is counted where the first of a line is."""
    square = g.to(r.dtype).square() + eps
    rows = (beta2 if first_col else 0) * r + (1 - beta2) * square.sum(-1) / extents[1]
    cols = (beta2 if first_row else 0) * c + (1 - beta2) * square.sum(-2) / extents[0]
    return w.to(r.dtype).square().sum(), rows, cols, rows.sum(-1) / extents[0]


def adafactor_update(g, v, c=None, mean=None):
    return g / (v.sqrt() if c is None else (v.unsqueeze(-1) * c.unsqueeze(-2) / mean[..., None, None]).sqrt())


def adafactor_norm(v, g, c=None, mean=None):
    return adafactor_update(g.to(v.dtype), v, c, mean).square().sum()


def adafactor(w, g, uu, ww, v, c=None, mean=None, *, lr, clip, floor, weight_decay, count):
    rms_u, rms_w = (uu / count).sqrt(), (ww / count).sqrt()
    lr = lr * torch.fmax(rms_w, torch.full_like(rms_w, floor))
    update = adafactor_update(g.to(v.dtype), v, c, mean) / torch.fmax(rms_u / clip, torch.ones_like(rms_u))
    return (w - lr * (update + weight_decay * w)).to(w.dtype)


# ---- the job
def next_batch(k, data):
    """What the model reads in step k: the same every time. Replace this by your data."""
    return data


def main():
    global STEP, FIRST
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--steps", type=int, default=10)
    about.add_argument("--arrays", metavar="DIR", help="weights, states and data as NAME.npy (heddle export --arrays)")
    about.add_argument("--seed", type=int, default=0, help="of random weights and data, without --arrays")
    about.add_argument("--save", metavar="DIR", help="write weights and states after the last step")
    about.add_argument("--results", metavar="DIR", help="write what the last step gives, as this rank has it")
    about.add_argument("--fixed-step", action="store_true", help="Adam corrects every step as the first, not by its number")
    args = about.parse_args()
    p = parameters()
    w, data = load(p, args.arrays, args.seed)
    for k in range(args.steps):
        STEP = FIRST = 1 if args.fixed_step else k * UPDATES + 1
        start = time.perf_counter()
        with torch.no_grad():
            results = step(w, next_batch(k, data))
        if RANK == SPEAKER:
            words = [f"{name} {float(x):.9g}" if x.numel() == 1 else f"{name} {tuple(x.shape)}" for name, x in results.items()]
            print(f"step {k + 1}: {', '.join(words)}, {1e3 * (time.perf_counter() - start):.1f} ms", flush=True)
    if args.save:
        save(p, w, args.save)
    if args.results and RANK == SPEAKER:
        os.makedirs(args.results, exist_ok=True)
        for name, x in results.items():
            numpy.save(path_of(args.results, name), x.cpu().float() if x.dtype == torch.bfloat16 else x.cpu())
    dist.barrier(device_ids=[DEVICE.index] if DEVICE.type == "cuda" else None)
    dist.destroy_process_group()

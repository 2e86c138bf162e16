# ---- events
class Event:
    """One instruction on what one rank has of it; the key is the line of text that Heddle knows it by."""

    def __init__(self, key, run=None, below=None):
        self.key, self.run, self.below = key, run, below
        self.operator = key.split()[0]
        self.moves = re.fullmatch(r"\w+ (\w+) (\d+) B among (\d+) on (\d+) nodes?, (?:at most )?(\d+) each.*", key)
        if self.moves:
            self.type = self.moves[1].replace("any", "f32")
            self.bytes, self.members, self.nodes, self.each = map(int, self.moves.groups()[1:])
        else:
            self.kind = key.rsplit(" on ", 1)[1].strip("\"")

    def operands(self):
        """Those of a computation, as the key has them: contiguous, random."""
        return [random(kind, extents, self.below) for kind, extents in shapes(self.key.split(" ->")[0])]


class Part:
    """A place along some axes, for what depends on it."""

    def __init__(self, at, *sizes):
        self.at, self.sizes = at, list(sizes)


TYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "bool": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
}


def shapes(text):
    """"f32[4,8] i64[4]": types and extents."""
    for name, extents in re.findall(r"(\w+)\[([\d,]*)\]", text):
        yield TYPES[name], [int(extent) for extent in extents.split(",") if extent]


def random(kind, extents, below):
    """Normal numbers; of integers indices, or where they are none 1, which divides."""
    if kind.is_floating_point:
        return torch.randn(extents, device=DEVICE, dtype=torch.float32 if DEVICE.type == "cpu" else kind).to(kind)
    if kind == torch.bool or not below:
        return torch.ones(extents, device=DEVICE, dtype=kind)
    return torch.randint(below, extents, device=DEVICE, dtype=kind)


# ---- the job
def join():
    """Joins the processes that torchrun has started, or is the only one: rank, device, and a group for words."""
    device = torch.device("cpu")
    if torch.cuda.is_available():
        local, devices = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
        if local >= devices:
            sys.exit(f"{devices} GPUs here: start that many processes on a node")
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    return dist.get_rank(), device, dist.new_group(backend="gloo")


def tell(x):
    """What every process says, by rank."""
    said = [None] * dist.get_world_size()
    dist.all_gather_object(said, x, group=WORDS)
    return said


def versions():
    """What times depend on beside the machine."""
    if DEVICE.type == "cpu":
        return f"torch {torch.__version__}, gloo, threads {torch.get_num_threads()}"
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return f"torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}, {torch.cuda.get_device_name(DEVICE)}"


# ---- repeats
WARM, LEAST, MOST = 2, 9, 60  # repeats that are not counted, and that are
ROW_SECONDS, ROW_MOST = 1e-3, 1000  # of computations: a repeat is a row of calls that takes about so long
ROW_LAUNCHES = 100  # on GPUs, which keep about a thousand kernels waiting
COLD_BYTES, COLD_SETS = 256 << 20, 64  # operands come round again behind so much: more than caches hold


def seconds(work, times):
    """What calls of work(0), work(1) .. take on the device, one after the other, as fast as Python issues them."""
    if DEVICE.type == "cpu":
        begin = time.perf_counter()
        for k in range(times):
            work(k)
        return time.perf_counter() - begin
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for k in range(times):
        work(k)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def behind_a_wait(work, times, launch):
    """What a call takes on the GPU, and Python to launch it, in seconds. The GPU waits until all are launched, as it does in a
    step whose kernels take longer than their launches. launch: about what it was before."""
    wait, begin, end = 1e-3 + 2 * times * launch, torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(4):
        torch.cuda._sleep(int(2e9 * wait))  # about 2 GHz
        begin.record()
        start = time.perf_counter()
        for k in range(times):
            work(k)
        launch = (time.perf_counter() - start) / times
        waited = not begin.query()
        end.record()
        end.synchronize()
        if waited:
            break
        wait *= 3
    return begin.elapsed_time(end) * 1e-3 / times, launch


def repeats_of(each, most):
    """How many repeats of so many seconds take `most` seconds."""
    return min(max(int(most / max(each, 1e-9)), LEAST), MOST)


def settle(v):
    """Median, spread and number of repeats, without those far above: something else ran."""
    middle = statistics.median(v)
    off = statistics.median(abs(x - middle) for x in v)
    v = [x for x in v if x <= middle + max(5 * off, 0.02 * middle)]
    middle = statistics.median(v)
    off = sorted(abs(x / middle - 1) if middle else 0 for x in v)
    return middle, off[math.ceil(0.683 * len(v)) - 1], len(v)


def row_of(event, figure, factor=1, **more):
    median, spread, count = figure
    return {
        "key": event.key, "machine": MACHINE, "versions": versions(), "median_ps": round(median * factor * 1e12),
        "spread": round(spread, 6), "count": count, "source": "measured" if factor == 1 else "scaled", **more,
    }


def failed(event, why):
    """What is written of an event that could not be measured."""
    return {"key": event.key, "machine": MACHINE, "versions": versions(), "failed": str(why).strip().split("\n")[0]}


# ---- computations
def computation(event, most):
    """The row of a computation: calls one after the other on operands that are not in the caches, except small ones."""
    try:
        sets = [event.operands()]
        size = sum(x.numel() * x.element_size() for x in sets[0])
        while len(sets) < COLD_SETS and size and len(sets) * size < COLD_BYTES:
            sets.append([x.clone() for x in sets[0]])

        def call(k):
            event.run(*sets[k % len(sets)])

        call(0)  # libraries choose and load what they run
        each = min(seconds(call, 1) for _ in range(WARM))
        times = min(max(int(ROW_SECONDS / max(each, 1e-9)), 1), ROW_MOST)
        each = seconds(call, times) / times
        if DEVICE.type == "cpu":
            taken = [seconds(call, times) / times for _ in range(repeats_of(each * times, most))]
            return row_of(event, settle(taken))
        times = min(times, ROW_LAUNCHES)
        taken, launch = [], each
        for _ in range(repeats_of(2 * each * times, most)):
            own, launch = behind_a_wait(call, times, launch)
            taken.append((own, launch))
        own, launches = zip(*taken)
        return row_of(event, settle(own), launch_ps=round(statistics.median(launches) * 1e12))
    except (RuntimeError, MemoryError) as error:  # out of memory, or nothing that this torch has for such a type
        return failed(event, error)


def computations(events, most, rows):
    """Dealt out among the processes on devices of the kind that they are of."""
    kinds = tell(KIND)
    peers = [rank for rank, kind in enumerate(kinds) if kind == KIND]
    own = [event for event in events if event.kind == KIND][peers.index(RANK) :: len(peers)]
    for kind in sorted({event.kind for event in events} - set(kinds)):
        rows.note(f"not measured, for no process is on a {kind} (--kind {kind}): all of its computations")
    for k in range(max(tell(len(own)))):
        with torch.no_grad():
            row = computation(own[k], most) if k < len(own) else None
        if DEVICE.type == "cuda":
            torch.cuda.empty_cache()
        rows.put(row)


# ---- communications
class Members:
    """The ranks that a communication is among, as those of an axis."""

    groups = {}

    def __init__(self, ranks):
        if tuple(ranks) not in Members.groups:
            Members.groups[tuple(ranks)] = dist.new_group(ranks)
        self.ranks, self.group, self.sizes = ranks, Members.groups[tuple(ranks)], [len(ranks)]
        self.at = ranks.index(RANK) if RANK in ranks else None
        self.sorted = list(range(len(ranks)))


def place(event, nodes):
    """Ranks to measure it: as many as it has on each of its nodes, or fewer. None: they cannot lie as it says."""
    nodes = sorted(nodes, key=len, reverse=True)[: event.nodes]
    if len(nodes) < min(event.nodes, 2):
        return None
    left, ranks = event.members, []
    for k, node in enumerate(nodes):
        count = min(event.each, left - (event.nodes - 1 - k))
        left -= count
        ranks += node[:count]
    return sorted(ranks) if len(ranks) > 1 else None


def there_and_back(x, axes):
    """A message to the other one, and one from there."""
    peer = axes.ranks[1 - axes.at]
    for sends in (axes.at == 0, axes.at != 0):
        if sends:
            send(x, peer, axes.group)
        else:
            receive(x.shape, x.dtype, peer, axes.group)


def to_neighbours(x, axes, steps):
    """To the members that are so many places on, as many of them as there are; from those that are as many before."""
    work, n = [], len(axes.ranks)
    for step in steps:
        to, source = axes.at + step, axes.at - step
        y = torch.empty_like(as_bytes(x))
        work.append(dist.P2POp(dist.isend, as_bytes(x), axes.ranks[to % n], axes.group))
        work.append(dist.P2POp(dist.irecv, y, axes.ranks[source % n], axes.group))
    for one in dist.batch_isend_irecv(work):
        one.wait()


def gather_to(x, axes):
    parts = [torch.empty_like(as_bytes(x)) for _ in axes.ranks] if axes.at == 0 else None
    dist.gather(as_bytes(x), parts, axes.ranks[0], axes.group)


def scatter_from(x, axes):
    parts = [as_bytes(x) for _ in axes.ranks] if axes.at == 0 else None
    dist.scatter(torch.empty_like(as_bytes(x)), parts, axes.ranks[0], axes.group)


MOVES = {  # elements that a member has, of the event's among n; what it does with them, as exported programs do
    "all_reduce": (lambda size, n: size, lambda x, axes: all_reduce(x, axes)),
    "all_gather": (lambda size, n: size // n, lambda x, axes: all_gather(x, axes, 0)),
    "reduce_scatter": (lambda size, n: max(size // n, 1) * n, lambda x, axes: reduce_scatter(x, axes, 0)),
    "all_to_all": (lambda size, n: max(size // n, 1) * n, lambda x, axes: all_to_all(x.view(len(axes.ranks), -1), axes, (0,), (1,))),
    "exchange": (lambda size, n: max(size // (n - 1), 1) * n, lambda x, axes: swap(list(x.chunk(len(axes.ranks))), axes)),
    "send": (lambda size, n: size, there_and_back),
    "permute": (lambda size, n: size, lambda x, axes: to_neighbours(x, axes, [1])),
    "halo_exchange": (lambda size, n: size // 2 if n > 2 else size, lambda x, axes: to_neighbours(x, axes, [1, -1][: len(axes.ranks) - 1])),
    "broadcast": (lambda size, n: size, lambda x, axes: dist.broadcast(as_bytes(x), axes.ranks[0], axes.group)),
    "reduce": (lambda size, n: size, lambda x, axes: dist.reduce(x, axes.ranks[0], group=axes.group)),
    "gather_to": (lambda size, n: size // n, gather_to),
    "scatter_from": (lambda size, n: size // n, scatter_from),
}


def ring(operator, n):
    """What a ring moves among n, by the bytes of one."""
    if operator in ("send", "halo_exchange", "exchange"):
        return 1
    return (2 if operator == "all_reduce" else 1) * (n - 1) / n


def row_seconds(work, times):
    """From the end of the first of a row, which brings the members together, to the end of the last."""
    work(0)
    return seconds(work, times) / times


def communication(event, ranks, most):
    """The row of a communication, on rank 0; all processes take part. Times are those of the member that took longest."""
    axes, x, why = Members(ranks), None, None
    size, run = MOVES[event.operator]
    try:
        if axes.at is not None:
            kind = TYPES[event.type]
            elements = max(event.bytes // torch.empty(0, dtype=kind).element_size(), 1)
            x = torch.ones(max(size(elements, len(ranks)), 1), dtype=kind, device=DEVICE)
    except (RuntimeError, MemoryError) as error:
        why = str(error)
    why = next(filter(None, tell(why)), None)
    if why:
        return failed(event, why)

    def work(_):
        run(x, axes)

    def timed(times):
        taken = row_seconds(work, times) if x is not None else None
        if event.operator == "send":
            finish_sends()
        return taken

    each = None
    try:
        for _ in range(WARM):
            each = timed(1)
    except RuntimeError as error:  # this backend has none for such a type: all members are told
        why = str(error)
    each, why = zip(*tell((each, why)))
    if any(why):
        return failed(event, next(filter(None, why)))
    each = max(filter(None, each))
    times = min(max(int(ROW_SECONDS / each), 1), 16)
    own = [timed(times) for _ in range(repeats_of(each * (times + 1), most))]
    all_of = [v for v in tell(own) if v[0] is not None]
    longest = min if event.operator == "send" else max  # of a send both sides saw both ways, and who waited saw more
    taken = [longest(v) / (2 if event.operator == "send" else 1) for v in zip(*all_of)]
    factor = ring(event.operator, event.members) / ring(event.operator, len(ranks))
    return row_of(event, settle(taken), factor)


def communications(events, most, rows):
    where = tell(os.environ.get("GROUP_RANK", socket.gethostname()))
    nodes = [[rank for rank, node in enumerate(where) if node == name] for name in dict.fromkeys(where)]
    for event in events:
        ranks = place(event, nodes)
        if not ranks:
            rows.note(f"not measured, for the job has too few {'nodes' if event.nodes > 1 else 'processes on a node'}: {event.key}")
            continue
        row = communication(event, ranks, most)
        rows.put(row if RANK == 0 else None)


# ---- what has been measured
class Rows:
    """The file of process 0, a line for each event. What stands there is not measured again."""

    def __init__(self, path):
        self.path, self.known, self.done, self.wanted = path, set(), 0, 0
        if RANK == 0:
            self.read()
        self.known = tell(self.known)[0]

    def read(self):
        if not os.path.exists(self.path):
            return
        with open(self.path, "r+") as f:
            whole = f.read()
            whole = whole[: whole.rfind("\n") + 1]  # a line that was cut off is measured again
            f.truncate(len(whole.encode()))
        for line in whole.splitlines():
            row = json.loads(line)
            if row["machine"] != MACHINE:
                sys.exit(f"{self.path} has times of {row['machine']}, not of {MACHINE}: give another -o")
            self.known.add(row["key"])

    def put(self, row):
        """Rows that processes have made at once."""
        rows = [row for row in tell(row) if row]
        if RANK == 0:
            with open(self.path, "a") as f:
                f.write("".join(json.dumps(row) + "\n" for row in rows))
        for row in rows:
            self.done += 1
            took = f"{row['median_ps'] / 1e6:12.2f} us +- {100 * row['spread']:.0f} %" if "failed" not in row else row["failed"]
            self.note(f"{self.done}/{self.wanted}{took}  {row['key']}")

    def note(self, text):
        if RANK == 0:
            print(text, file=sys.stderr, flush=True)


def measure():
    global RANK, DEVICE, WORDS, KIND
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("-o", "--output", metavar="FILE", default="times.jsonl", help="what it writes, and keeps what it has (times.jsonl)")
    about.add_argument("--kind", help="of device that the processes of this node are on, where the machine has several")
    about.add_argument("--seconds", type=float, default=0.3, help="about so long for each event (0.3)")
    args = about.parse_args()
    kinds = sorted({event.kind for event in EVENTS if not event.moves})
    KIND = args.kind or (kinds[0] if len(kinds) == 1 else None)
    if kinds and KIND not in kinds:
        sys.exit(f"--kind must be one of {', '.join(kinds)}: what this node's processes are on")
    RANK, DEVICE, WORDS = join()
    rows = Rows(args.output)
    events = [event for event in EVENTS if event.key not in rows.known]
    rows.wanted = len(events)
    for key, why in NOT_MEASURED.items():
        rows.note(f"not measured, {why}: {key}")
    computations([event for event in events if not event.moves], args.seconds, rows)
    communications([event for event in events if event.moves], args.seconds, rows)
    rows.note(f"{rows.done} events measured, {len(EVENTS) - len(events)} known before; heddle profile --import {args.output} -o times.db")
    dist.destroy_process_group()

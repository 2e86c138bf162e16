# torch_step.py - a training step of PyTorch, eager, on the CPU, of the models that bench/torch.c runs beside it.
# Usage: torch_step.py MODEL BATCH SEQ DTYPE OPTIMIZER THREADS STEPS [RANKS]; MODEL: gpt2, gpt2:layers=L,hidden=H,heads=A,vocab=V
# or resnet50. RANKS: processes of DistributedDataParallel over gloo, each with its part of the batch and so many threads.
# Prints milliseconds a step, and those of its processors: medians without the first; then the loss of the first step and the
# number of weights, all of the first process. Exit status 77: there is no PyTorch.
import os
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed
    import torch.multiprocessing
    import torch.nn.functional as F
except ImportError:
    sys.exit(77)


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
        self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x, mask):
        b, s, h = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(h, dim=2)
        q, k, v = (t.view(b, s, self.heads, h // self.heads).transpose(1, 2) for t in (q, k, v))
        p = (q * (h // self.heads) ** -0.5) @ k.transpose(-2, -1)
        p = F.softmax(p.masked_fill(mask, -1e4), dim=-1)
        x = x + self.out((p @ v).transpose(1, 2).reshape(b, s, h))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT2(torch.nn.Module):
    def __init__(self, seq, layers=12, hidden=768, heads=12, vocab=50257):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(vocab, hidden), torch.nn.Embedding(max(seq, 1024), hidden)
        self.layers = torch.nn.ModuleList(Layer(hidden, heads) for _ in range(layers))
        self.ln = torch.nn.LayerNorm(hidden)
        self.classes = vocab
        for table in self.wte, self.wpe:  # GPT-2's: so the first loss is near that of a guess
            torch.nn.init.normal_(table.weight, std=0.02)
        self.mask = torch.ones(seq, seq, dtype=torch.bool).triu(1)  # no buffer: gloo broadcasts no booleans

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x, self.mask)
        return F.linear(self.ln(x), self.wte.weight)

    def data(self, batch, seq, dtype):
        return torch.randint(self.classes, (batch, seq)), torch.randint(self.classes, (batch, seq))


class Block(torch.nn.Module):
    def __init__(self, cin, mid, stride):
        super().__init__()
        cout = 4 * mid
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.a, self.na = conv(cin, mid, 1, bias=False), norm(mid)
        self.b, self.nb = conv(mid, mid, 3, stride, 1, bias=False), norm(mid)
        self.c, self.nc = conv(mid, cout, 1, bias=False), norm(cout)
        self.short = None
        if stride != 1 or cin != cout:
            self.short = torch.nn.Sequential(conv(cin, cout, 1, stride, bias=False), norm(cout))

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = F.relu(self.nb(self.b(y)))
        return F.relu(self.nc(self.c(y)) + (self.short(x) if self.short else x))


class ResNet50(torch.nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(64)
        blocks, cin, self.classes = [], 64, classes
        for k, n in enumerate((3, 4, 6, 3)):
            for i in range(n):
                blocks.append(Block(cin, 64 << k, 2 if k and not i else 1))
                cin = 4 * (64 << k)
        self.blocks, self.fc = torch.nn.Sequential(*blocks), torch.nn.Linear(cin, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))

    def data(self, batch, side, dtype):
        return torch.randn(batch, 3, side, side, dtype=dtype), torch.randint(self.classes, (batch,))


def train(rank, words, ranks, meet):
    name, batch, seq, dtype, optimizer, threads, steps = words
    batch, seq, steps, dtype = int(batch) // ranks, int(seq), int(steps), {"f32": torch.float32, "f64": torch.float64}[dtype]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    kind, _, options = name.partition(":")
    fields = {k: int(v) for k, v in (o.split("=") for o in options.split(",") if o)}
    model = (GPT2(seq, **fields) if kind == "gpt2" else ResNet50()).to(dtype)
    classes, weights = model.classes, sum(p.numel() for p in model.parameters())
    torch.manual_seed(2 + rank)
    x, y = model.data(batch, seq, dtype)
    if ranks > 1:
        torch.distributed.init_process_group("gloo", init_method="file://" + meet, rank=rank, world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(model)
    made = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01), "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3)}
    opt = made[optimizer](model.parameters())
    times, cpu, first = [], [], None
    for _ in range(steps):
        start, busy = time.perf_counter(), time.process_time()
        opt.zero_grad(set_to_none=True)
        out = model(x)
        loss = F.cross_entropy(out.view(-1, classes), y.view(-1))
        loss.backward()
        opt.step()
        times.append((time.perf_counter() - start) * 1e3)
        cpu.append((time.process_time() - busy) * 1e3)
        first = loss.item() if first is None else first
    median = lambda t: statistics.median(t[1:] or t)
    if rank == 0:
        print(f"{median(times):.2f} {median(cpu):.2f} {first:.4f} {weights}")


def main():
    words, ranks = sys.argv[1:8], int(sys.argv[8]) if len(sys.argv) > 8 else 1
    if ranks == 1:
        return train(0, words, 1, None)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (words, ranks, os.path.join(folder, "meet")), ranks)


if __name__ == "__main__":
    main()

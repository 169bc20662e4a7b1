"""Tables over result files of every form: an overview, times of calls beside their peers, and checks that passed.

`scripts/result_tables` prints them.
"""
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

RESULTS = Path(__file__).resolve().parent.parent / "bench/results"
LEVEL = 1.01  # ratios of times that differ by less are level


def load(name, key="rows"):
    data = json.loads((RESULTS / name).read_text())
    return data, data[key]


def size_name(size):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(us):
    return f"{us:.1f}" if us < 100 else f"{us:,.0f}"


def forms_of(row):
    """Microseconds of each form of a row. Programs write them in five ways."""
    if "gloo_us" in row:
        return {"tandem": row["tandem_us"], "gloo": row["gloo_us"]}
    if "nccl_us" in row:
        return {"tandem": row["tandem_us"], "nccl": row["nccl_us"]}
    if "peers_ratio" in row:  # medians over rounds in which candidate and peers take turns
        base = row["peers"]["cublas"]
        return {"tandem": base * row["ratio"], **{p: base * ratio for p, ratio in row["peers_ratio"].items()}}
    if "tandem_us" in row:
        return {"tandem": row["tandem_us"], **row["peers"]}
    if "us" in row:
        return row["us"]
    return {name: form["us"] for name, form in row.items() if isinstance(form, dict) and "us" in form}


def place_of(row):
    """The size of a call."""
    if "bytes" in row:
        return size_name(row["bytes"])
    if "size" in row:
        return f"{row['size'].upper()}, {row['rows']:,} rows"
    if "product" in row:
        return f"{row['model']}, {'first' if row['product'] == 1 else 'second'}"
    if "tokens" in row:
        return f"{row['model']}, {row['dtype']}, {row['tokens']:,}"
    shape = row.get("shape") or [row[key] for key in ("m", "n", "k")]
    return shape if isinstance(shape, str) else "x".join(map(str, shape))


@dataclass
class Theme:
    """Rows of a file that belong together, one form of ours, and the peers that do the same."""

    title: str
    machine: str
    file: str
    where: Callable = lambda row: True
    own: tuple = ("tandem",)
    alone: tuple = ()  # forms that do less, such as a GEMM alone
    key: str = "rows"
    group: Callable | None = None  # the column of a row in a table that is crossed
    place: Callable = place_of  # its line
    is_in_overview: bool = True

    def rows(self):
        """Pairs of a row and its times, our own as `tandem`."""
        for row in load(self.file, self.key)[1]:
            if self.where(row):
                forms = forms_of(row)
                mine = next((name for name in self.own if name in forms), None)
                peers = {p: t for p, t in forms.items() if p not in self.own and not p.startswith("tandem") and t}
                if mine is not None:
                    yield row, forms[mine], peers

    def ratios(self):
        """The fastest peer's time over ours, for each row with a peer that does the same."""
        for _, mine, peers in self.rows():
            same = [t for p, t in peers.items() if p not in self.alone]
            if same:
                yield min(same) / mine


def selected(*ops, pes=None):
    return lambda row: row.get("selected") and row["op"] in ops and row.get("pes", pes) == (pes or row.get("pes"))


COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send_recv")
OPERATORS = ("all_gather_gemm", "gemm_reduce_scatter", "gemm_all_reduce")
GEMMS = ("cublas", "torch-matmul")
GROUPED = ("route", "dispatch", "all_to_all", "grouped_mm", "scaled_grouped_mm")


def step_of(row):
    return f"{row['step']} of {row['rows']:,}"


def size_of(row):
    return row["size"].upper()


def is_op(*ops, **others):
    return lambda row: row["op"] in ops and all(row.get(key) == value for key, value in others.items())


def has_few_rows(row):
    return row["routing"].endswith("rows each") and row["rows"] <= 32 * row["experts"] and "grouped_mm" in row


THEMES = {
    "collectives-4": Theme("Collectives beside NCCL", "4 x H200", "h200x4.json", selected(*COLLECTIVES, pes=4)),
    "collectives-2": Theme("Collectives beside NCCL", "2 x H200", "h200x2.json", selected(*COLLECTIVES, pes=2)),
    "nccl": Theme("Programs for NCCL, unchanged", "2 x H200", "nccl_interface_h200x2.json"),
    "nccl-graphs": Theme("... in graphs", "2 x H200", "nccl_interface_h200x2.json",
                         lambda row: row["algorithm"] == "graph", is_in_overview=False,
                         group=lambda row: row["op"] + (" in windows" if row["buffers"] == "window" else "")),
    "hosts": Theme("Collectives between two hosts, by TCP", "2 x H200", "h200x2-hosts.json", group=lambda row: row["op"]),
    "operators-4": Theme("Overlapped GEMMs", "4 x H200", "h200x4.json", selected(*OPERATORS, pes=4), alone=GEMMS),
    "operators-2": Theme("Overlapped GEMMs", "2 x H200", "h200x2.json", selected(*OPERATORS, pes=2), alone=GEMMS),
    "gemm": Theme("The GEMM alone beside cuBLASLt", "1 x H200", "h200x2.json", selected("gemm")),
    "grouped": Theme("Grouped GEMM of many rows", "1 x H200", "grouped_gemm_elected_h200.json",
                     lambda row: "sorted" in row, own=("sorted",)),
    "grouped-4096": Theme("... 4,096 tokens", "1 x H200", "grouped_gemm_elected_h200.json",
                          lambda row: "sorted" in row and "4096" in row["routing"], own=("sorted",),
                          group=lambda row: row["routing"], is_in_overview=False),
    "grouped-blocks": Theme("... in fp8 with scales of blocks", "1 x H200", "grouped_gemm_elected_h200.json",
                            lambda row: "fp8 blocks" in row, own=("fp8 blocks",),
                            alone=("fp8 rows", "scaled_grouped_mm")),
    "grouped-blocks-4096": Theme("... 4,096 tokens, fp8", "1 x H200", "grouped_gemm_elected_h200.json",
                                 lambda row: "fp8 blocks" in row and "4096" in row["routing"], own=("fp8 blocks",),
                                 alone=("fp8 rows", "scaled_grouped_mm"), group=lambda row: row["routing"],
                                 is_in_overview=False),
    "few": Theme("Grouped GEMM of 1 to 32 rows of each expert", "1 x H200", "grouped_gemm_few_rows_h200.json",
                 has_few_rows, own=("few",), alone=("sorted",), group=lambda row: row["routing"]),
    "scaled": Theme("Products in fp8 beside PyTorch's fused form", "1 x H200", "scaled_products_h200.json",
                    own=("tandem rows+columns, fast",), alone=("_scaled_mm alone", "_scaled_mm alone, sums in f32")),
    "norm": Theme("All-reduce and norm in one kernel", "2 x H200", "layers_h200x2.json",
                  is_op("all_reduce_norm", by="processes")),
    "norm-fp8": Theme("... with fp8 output", "2 x H200", "layers_h200x2.json", is_op("all_reduce_norm_fp8")),
    "heads": Theme("Merged attention heads", "2 x H200", "layers_h200x2.json", is_op("merge_heads")),
    "dispatch": Theme("Tokens to experts and back", "2 x H200", "experts_h200x2.json", is_op("dispatch", "combine"),
                      alone=GROUPED, group=lambda row: row["op"]),
    "products": Theme("Experts' products with their exchange", "2 x H200", "experts_h200x2.json",
                      is_op("dispatch_gemm", "gemm_combine", by=None, dtype="bf16"), own=("sequential", "tandem"),
                      alone=GROUPED, group=lambda row: row["op"]),
    "decoder": Theme("Steps of a decoder from PyTorch", "2 x H200", "python_h200x2.json", key="decoder",
                     group=step_of, place=size_of),
    "training": Theme("Forward and backward of a layer", "2 x H200", "python_h200x2.json", key="training_layers"),
    "llama": Theme("The Llama example", "2 x H200", "llama_h200x2.json", alone=("alone",), group=step_of,
                   place=size_of),
    "llama-experts": Theme("... with experts", "2 x H200", "llama_experts_h200x2.json", alone=("alone",), group=step_of,
                           place=lambda row: row["size"]),
    "gloo": Theme("Collectives on CPUs beside Gloo", "4 cores", "cpu/gloo_h200_host_4cores_20261128.json",
                  group=lambda row: f"{row['op']}, {row['pes']} PEs"),
}


def overview():
    """One row for each theme: how often, and how far, Tandem is ahead of the fastest peer."""
    lines = ["| what | machine | date | rows | ahead or level | fastest peer's time over Tandem's: median | least | most |",
             "|---|---|---|---|---|---|---|---|"]
    for theme in filter(lambda theme: theme.is_in_overview, THEMES.values()):
        of_file = load(theme.file, theme.key)[0]["date"]
        date = max(row.get("date", of_file) for row, _, _ in theme.rows())
        ratios = sorted(theme.ratios())
        ahead = sum(ratio * LEVEL >= 1 for ratio in ratios)
        lines.append(f"| {theme.title} | {theme.machine} | {date} | {len(ratios)} | {ahead} | "
                     f"**{statistics.median(ratios):.2f}** | {ratios[0]:.2f} | {ratios[-1]:.2f} |")
    return lines


def times(name):
    """All rows of a theme with all peers, our time in bold where none is faster."""
    theme = THEMES[name]
    rows = list(theme.rows())
    names = list(dict.fromkeys(peer for _, _, peers in rows for peer in peers))
    lines = ["| us | Tandem | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for row, mine, peers in rows:
        same = [t for p, t in peers.items() if p not in theme.alone]
        own = f"**{number(mine)}**" if not same or mine <= min(same) else number(mine)
        label = theme.place(row)
        cells = [number(peers[p]) if p in peers else "" for p in names]
        lines.append(f"| {label} | {own} | " + " | ".join(cells) + " |")
    return lines


def crossed(name):
    """A theme with one row for each size and one column for each group: Tandem / the peers."""
    theme = THEMES[name]
    return cross(theme, "us", theme.rows(), min)


def rates(name):
    """The same in tokens per second, of which more is better."""
    theme = THEMES[name]
    rows = []
    for row, _, peers in theme.rows():
        found = row["tokens_per_s"]
        rows.append((row, found[next(own for own in theme.own if own in found)], {p: found[p] for p in peers if p in found}))
    return cross(theme, "tokens/s", rows, max)


def cross(theme, unit, rows, best):
    """The table of rows with our own value and those of peers, ours in bold where it is the best."""
    cells, sizes, peers_of = {}, {}, []
    for row, mine, peers in rows:
        peers = {p: value for p, value in peers.items() if p not in theme.alone}
        peers_of += [p for p in peers if p not in peers_of]
        own = f"**{number(mine)}**" if best([mine, *peers.values()]) == mine else number(mine)
        sizes.setdefault(theme.place(row), row.get("bytes", len(sizes)))
        cells.setdefault(theme.place(row), {}).setdefault(
            theme.group(row), " / ".join([own, *(number(peers[p]) for p in peers_of if p in peers)]))
    groups = list(dict.fromkeys(group for row in cells.values() for group in row))
    lines = [f"| {unit}: **Tandem** / {' / '.join(peers_of)} | " + " | ".join(groups) + " |",
             "|---" * (len(groups) + 1) + "|"]
    for place, row in sorted(cells.items(), key=lambda item: sizes[item[0]]):
        lines.append(f"| {place} | " + " | ".join(row.get(group, "") for group in groups) + " |")
    return lines


def checks():
    """The newest run of each check on each number of GPUs."""
    machines = ["1 GPU", "1 GPU, 2 processes", "2 GPUs", "4 GPUs"]
    newest = {}
    for row in sorted(load("gpu_checks.json")[1], key=lambda row: row["date"]):
        newest[row["check"], row["gpus"]] = row
    lines = ["| check | " + " | ".join(machines) + " |", "|---" * (len(machines) + 1) + "|"]
    for check in dict.fromkeys(check for check, _ in newest):
        lines.append(f"| {check} | " + " | ".join(check_cell(newest.get((check, gpus))) for gpus in machines) + " |")
    return lines


def check_cell(row):
    if row is None:
        return ""
    passed = [f"{row['passed']:,}"] if row["passed"] is not None else []
    failed = [f"**{row['failed']} failed**"] if row["failed"] else []
    return ", ".join([*passed, *failed, *([row["note"]] if "note" in row else []), row["date"][5:]])


TABLES = {"overview": overview, "checks": checks, "times": times, "crossed": crossed, "rates": rates}


def table(kind, words):
    """The table of a mark in a document."""
    if len(words) != (kind in ("times", "crossed", "rates")) or not set(words) <= THEMES.keys():
        sys.exit(f"result_tables: no table '{' '.join([kind, *words])}'")
    return TABLES[kind](*words)

"""The pages of the site: `scripts/site/build.py` without mkdocs and the examples."""

import json
import re
import subprocess
import sys

import pytest

from .test_docs import ROOT, source_tree
from .visual.browser import drawn, needs_browser

BUILD = ROOT / "scripts" / "site" / "build.py"
pytestmark = source_tree


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, BUILD, "--pages", folder], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr  # samples of docstrings, too
    assert not done.stdout and not done.stderr
    return folder


def test_each_name_has_its_page(pages):
    text = (pages / "api/fluid.layers/fc.md").read_text()
    assert "fluid.layers.fc(\n    input: Variable | Sequence[Variable],\n    size: int,\n" in text
    assert "`num_flatten_dims`\n:   dimensions from this one on" in text
    run = (pages / "api/fluid/Executor.md").read_text().split("\n## run\n")[1]
    assert "    feed_var_name: str = 'feed',\n" in run
    assert "[`fc`](../fluid.layers/fc.md)" in (pages / "api/fluid.layers.nn/index.md").read_text()
    assert (pages / "api/paddle.nn/Linear.md").exists() and (pages / "api/fluidlite.onnx/export.md").exists()


@pytest.mark.parametrize(
    "page, members",
    [
        ("fluid.io/DataLoader", "from_generator from_dataset state_dict summary stats"),
        ("fluid.io/PyReader", "decorate_sample_list_generator decorate_batch_generator start reset"),
        ("fluid.dygraph/Layer", "parameters sublayers add_parameter state_dict eval forward"),
        ("fluid.dygraph/Sequential", "forward"),
        ("fluid.framework/Variable", "astype backward gradient set_value shape dtype to_string"),
        ("paddle/Tensor", "numpy backward detach clone item astype shape"),
        ("fluid.optimizer/Optimizer", "minimize backward apply_gradients current_step_lr state_dict"),
        ("fluid/Program", "clone global_block parse_from_string random_seed list_vars"),
        ("fluid/Executor", "run close train_from_dataset infer_from_dataset"),
        ("fluid/LoDTensor", "set lod recursive_sequence_lengths shape"),
        ("paddle.optimizer.lr/StepDecay", "step get_lr"),
    ],
)
def test_members_of_bases_without_a_page_stand_on_the_page_of_a_class(pages, page, members):
    """Of bases with a page there is a link, which is followed here."""
    text = (pages / f"api/{page}.md").read_text()
    for base in re.findall(
        r"`\]\(\.\./([\w./]+)\.md\)", text.partition("Has everything of ")[2].partition("\n")[0]
    ):
        text += (pages / f"api/{base}.md").read_text()
    missing = [name for name in members.split() if f"\n## {name}\n" not in text]
    assert not missing


def test_names_of_the_core_stand_on_one_page(pages):
    text = (pages / "api/fluid.core.ops/index.md").read_text()
    assert text.startswith("---\nsearch:\n  exclude: true\n---\n# fluid.core.ops\n") and "\n## relu\n" in text
    assert not (pages / "api/fluid.core.ops/relu.md").exists()
    assert (
        "  exclude: true\n" in (pages / "api/fluid.layers.nn/index.md").read_text()
    )  # names of fluid.layers
    assert "  boost: 8\n" in (pages / "api/fluid.layers/fc.md").read_text()


def test_modules_are_listed_with_what_they_are(pages):
    text = (pages / "api/index.md").read_text()
    assert "| [`fluid.clip`](fluid.clip/index.md) | 13 | Clipping of gradients" in text
    assert "names of `fluidlite" not in text


def test_names_for_the_list_beside_pages_and_for_search_lead_to_pages(pages):
    text = (pages / "assets/api_names.js").read_text()
    found = json.loads(text.removeprefix("const apiNames = ").rstrip(";\n"))
    targets = {
        f"{module}/{name}" if isinstance(name, str) else name[1]
        for module, names in found["names"].items()
        for name in names
    }
    assert len(targets) > 1500 and not [name for name in targets if not (pages / f"api/{name}.md").exists()]
    assert "run" in found["members"]["fluid/Executor"]


def test_links_to_documents_have_their_titles(pages):
    text = (pages / "index.md").read_text()
    assert "[GPUs](gpu.md)" in text and "[Dependencies](dependencies.md)" in text
    nested = [
        line
        for page in pages.glob("*.md")
        for line in page.read_text().split("\n")
        if re.search(r"^ {4,7}\S.*\]\(\w+\.md\)", line)
    ]
    assert nested


def test_pages_show_samples(pages):
    page = (pages / "api/fluid.layers/relu6.md").read_text()
    assert page.count("**Example**") == 1 and "It prints, to four digits:\n\n```text\n[0. 0. 3. 8.]\n" in page
    code, marked = re.search(r'```python hl_lines="(.*?)"\n(.*?)```', page, re.DOTALL).group(2, 1)
    assert [code.split("\n")[int(n) - 1] for n in marked.split()] == ["print(layers.relu6(x).numpy())"]
    assert (
        "```python\nimport numpy as np\nimport paddle.fluid as fluid\n"
        in (pages / "api/fluid.layers/cross_entropy.md").read_text()
    )


def test_links_lead_somewhere(pages):
    links = [
        (page, target)
        for page in pages.rglob("*.md")
        for target in re.findall(r"\]\(([^)#:\s]+\.md)", page.read_text())
    ]
    assert len(links) > 5000
    # Pages of examples are made by running them.
    gone = [
        (page.name, to) for page, to in links if "examples/" not in to and not (page.parent / to).exists()
    ]
    assert not gone


def test_code_and_names_in_pages_are_marked(pages):
    text = (pages / "index.md").read_text()
    assert "```python\nimport numpy as np\nimport fluidlite as fluid\n" in text
    assert "```sh\nmake demo " in text and "![operators" in text
    assert "[Changes](changelog.md)" in text and "`translate.py`" in text


def test_items_of_lists_keep_their_code_and_their_lists(pages):
    """Python-Markdown takes what is indented by four as part of an item, by eight as its code."""
    text = (pages / "migrating.md").read_text()
    assert "\n\n        fluidlite train.py --num_epochs 1\n\n    The chapter trains" in text
    assert "\n3. If it stops:\n\n    * `NotSupportedError` names" in text
    assert "\n\n        tensor = fluid.create_lod_tensor(...)\n" in (pages / "onnx.md").read_text()


def test_navigation_has_all_pages():
    listed = set(re.findall(r"- (?:\w+: )?([\w/]+\.md)", (ROOT / "mkdocs.yml").read_text()))
    made = {"index.md", "changelog.md", "contributing.md", "api/index.md", "examples/index.md"}
    assert listed == made | {path.name for path in (ROOT / "docs").glob("*.md")}


def test_pictures_of_pages_are_there_and_small(pages):
    named = {
        (page.parent / target).resolve()
        for page in pages.glob("*.md")
        for target in re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", page.read_text())
    }
    assert {"draw.png", "profile.png", "speed.svg"} <= {picture.name for picture in named}
    assert all(picture.stat().st_size < 150_000 for picture in named)


# What the theme has of its search, and queries that are typed into it one after the other.
SEARCH = """<!doctype html>
<script id="__config" type="application/json">{"base": "."}</script>
<input data-md-component="search-query">
<ol class="md-search-result__list"></ol>
<pre></pre>
<script src="assets/names.js"></script>
<script>
const query = document.querySelector("input"), first = () => document.querySelector("ol a");
query.value = "names";
query.dispatchEvent(new Event("input")); // reads the table, before the page counts as loaded
addEventListener("load", async () => {
  for (const text of QUERIES) {
    query.value = text;
    query.dispatchEvent(new Event("input"));
    for (let k = 0; k < 50; ++k) await null;
    document.querySelector("pre").append(`${text}: ${first() ? first().textContent : "nothing"}\\n`);
  }
});
</script>
"""


@needs_browser
def test_search_finds_names_first(pages):
    wanted = {
        "fluid.io.DataLoader": "fluid.io.DataLoader",
        "paddle.fluid.io.DataLoader": "fluid.io.DataLoader",
        "fluid.layers.cross_entropy": "fluid.layers.cross_entropy",
        "cross_entropy": "fluid.layers.cross_entropy",
        "fluid.Executor.run": "fluid.Executor.run",
        "Executor.run": "fluid.Executor.run",
        "fc": "fluid.layers.fc",
        "from_generator": "fluid.io.DataLoader.from_generator",
        "minimize": "fluid.optimizer.Optimizer.minimize",
        "fluid.core.ops.relu": "fluid.core.ops.relu",
        "what is there of gpus": "nothing",
    }
    page = pages / "search.html"
    page.write_text(SEARCH.replace("QUERIES", json.dumps([*wanted])))
    shown = re.search("<pre>(.*?)</pre>", drawn(page), re.DOTALL)[1]
    assert shown.splitlines() == [f"{asked}: {found}" for asked, found in wanted.items()]

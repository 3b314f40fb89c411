"""Which layers are wired sparse, with how many links, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from rewirl.topology import SET, Dense, Links, Static
from rewirl.torch import sparsify

torch.set_num_threads(1)


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.hidden = nn.Linear(8 * 4, 16)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(self.hidden(self.conv(x).flatten(1))).relu())


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 2))


def test_all_but_the_last_are_sparse() -> None:
    wiring = sparsify(mlp(), rule=SET(), sparsity=0.5, seed=0)
    assert list(wiring.links) == ["0", "2"]
    # 240 weights in all, 120 of them to stay, 16 of those in the dense output
    assert sum(links.count for links in wiring.links.values()) == 120 - 16


def test_lambdas_count_as_in_the_paper() -> None:
    links = sparsify(mlp(), rule=SET(), lambdas=np.array([1.5, 2]), seed=0).links
    assert (links["0"].count, links["2"].count) == (33, 48)


def test_weights_of_links_stay_as_they_were_and_the_others_are_zero() -> None:
    module = mlp()
    before = module[0].weight.detach().clone()
    links = sparsify(module, rule=SET(), sparsity=0.5, seed=0).links["0"]
    exists = torch.zeros(6, 16, dtype=torch.bool)
    exists[links.inputs, links.output_blocks] = True
    torch.testing.assert_close(module[0].weight.detach(), torch.where(exists.T, before, 0.0), rtol=0, atol=0)


def test_blocks_of_outputs_share_an_input() -> None:
    module = mlp()
    sparsify(module, rule=SET(), sparsity=0.5, block=4, seed=0)
    blocks = (module[0].weight != 0).reshape(4, 4, 6)
    assert torch.equal(blocks.all(1), blocks.any(1))
    assert 0 < blocks.any(1).sum() < 24


def test_a_convolution_is_a_layer_from_its_patches_to_its_channels() -> None:
    module = Convolutional()
    wiring = sparsify(module, rule=SET(), lambdas=(2, 3), seed=0)
    assert (wiring.links["conv"].n_in, wiring.links["conv"].n_out) == (27, 8)
    assert wiring.links["conv"].count == 2 * (27 + 8) == int(module.conv.weight.count_nonzero())
    place = wiring.links["conv"].places[0]
    assert module.conv.weight.reshape(8, 27)[place % 8, place // 8] != 0


def test_layers_by_name_and_by_function() -> None:
    assert list(sparsify(Convolutional(), rule=SET(), sparsity=0.3, layers=["hidden"], seed=0).links) == ["hidden"]
    linear = sparsify(
        Convolutional(), rule=SET(), sparsity=0.3, layers=lambda _, layer: isinstance(layer, nn.Linear), seed=0
    )
    assert list(linear.links) == ["hidden", "out"]
    only = nn.Linear(4, 4)
    assert sparsify(only, rule=SET(), sparsity=0.5, layers=[""], seed=0).links[""].count == 8


def test_a_module_used_twice_is_one_layer() -> None:
    shared = nn.Linear(4, 4)
    module = nn.ModuleDict({"a": shared, "b": shared, "out": nn.Linear(4, 2)})
    assert list(sparsify(module, rule=SET(), sparsity=0.3, seed=0).links) == ["a"]


def test_a_compiled_module_has_the_names_of_its_own() -> None:
    module = mlp()
    wiring = sparsify(torch.compile(module, backend="eager"), rule=SET(), sparsity=0.5, seed=0)
    assert list(wiring.links) == ["0", "2"]
    assert wiring.module is module


def test_links_of_ones_own() -> None:
    module, links = mlp(), {"2": Links(16, 8, 2, np.array([0, 5, 63]))}
    wiring = sparsify(module, rule=SET(), links=links)
    assert wiring.links == links
    assert module[2].weight.nonzero().tolist() == [[0, 0], [1, 0], [2, 1], [3, 1], [6, 15], [7, 15]]
    with pytest.raises(ValueError, match="layer '0' is 6 → 16, the links given are for 16 → 8"):
        sparsify(module, rule=SET(), links={"0": links["2"]})


def test_dense_leaves_everything() -> None:
    module = mlp()
    before = module[0].weight.detach().clone()
    wiring = sparsify(module, rule=Dense())
    assert torch.equal(module[0].weight, before)
    assert wiring.statistics()["sparsity"] == 0


def test_without_a_seed_links_follow_torchs_own() -> None:
    def places() -> np.ndarray:
        return sparsify(mlp(), rule=Static(), sparsity=0.5).links["0"].places

    torch.manual_seed(1)
    first, second = places(), places()
    torch.manual_seed(1)
    assert np.array_equal(first, places())
    assert not np.array_equal(first, second)


def tied() -> nn.Module:
    module = mlp()
    module.append(nn.Linear(6, 16))
    module[-1].weight = module[0].weight
    return module


def frozen() -> nn.Module:
    module = mlp()
    module[0].weight.requires_grad_(False)
    return module


def twice() -> nn.Module:
    module = mlp()
    sparsify(module, rule=SET(), sparsity=0.5)
    return module


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        (nn.Sequential(nn.ReLU()), {"sparsity": 0.5}, "Sequential has no Linear or Conv2d layer"),
        (nn.Linear(3, 4), {"sparsity": 0.5}, "'' is the only layer, and the last one stays dense"),
        (tied(), {"sparsity": 0.5}, "weight of layer '0' is shared by '0' and '5': untie them"),
        (frozen(), {"sparsity": 0.5}, "layer '0' is frozen"),
        (twice(), {"sparsity": 0.5}, "layer '0' is sparse already: call release()"),
        (
            nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.Linear(4, 1)),
            {"sparsity": 0.5},
            "layer '0' computes its weight from others",
        ),
        (nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 1)), {"sparsity": 0.5}, "layer '0' has no shape yet"),
        (nn.Sequential(nn.Linear(70_000, 1), nn.Linear(1, 1)), {"sparsity": 0.5}, "inputs of layer '0' must be from 1"),
        (mlp(), {"sparsity": 0.999}, "the largest sparsity possible is 0.925000"),
        (mlp(), {"lambdas": (0.001, 2)}, "leaves layer 1 without a link"),
        (mlp(), {"lambdas": (1, 2, 3)}, r"3 lambdas for 2 sparse layers \(0, 2\): give one for each"),
        (mlp(), {"lambdas": (1, 2), "sparsity": 0.5}, "give one of lambdas, sparsity and links"),
        (mlp(), {"sparsity": 1.0}, "from 0 .dense. to below 1"),
        (mlp(), {"sparsity": float("nan")}, "finite"),
        (mlp(), {"sparsity": 0.5, "block": 3}, "block must be"),
        (mlp(), {"sparsity": 0.5, "layers": ["o"]}, "there is no Linear or Conv2d layer 'o'"),
        (Convolutional(), {"sparsity": 0.5, "layers": ["hiden"]}, "did you mean 'hidden'?"),
        (mlp(), {"sparsity": 0.5, "layers": []}, "layers chooses none: choose from 0, 2, 4"),
    ],
)
def test_refused(module: nn.Module, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sparsify(module, rule=SET(), **arguments)


@pytest.mark.parametrize(
    ("module", "layers", "message"),
    [(mlp(), "0", r"names such as \['0'\]"), ("net", None, "a torch.nn.Module is wanted, not str")],
)
def test_refused_types(module: nn.Module, layers: str | None, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sparsify(module, rule=SET(), sparsity=0.5, layers=layers)


def test_a_refusal_changes_nothing() -> None:
    module = mlp()
    before = module[0].weight.detach().clone()
    with pytest.raises(ValueError, match="largest sparsity"):
        sparsify(module, rule=SET(), sparsity=0.999)
    assert torch.equal(module[0].weight, before)
    sparsify(module, rule=SET(), sparsity=0.5)  # not sparse already


@pytest.mark.parametrize("rule", [SET, SET()])
def test_half_of_the_weights_unless_something_is_given(rule) -> None:
    module = mlp()
    sparsify(module, rule=rule, seed=0)
    weights = [layer.weight for layer in module.modules() if isinstance(layer, nn.Linear)]
    share = sum(int(weight.count_nonzero()) for weight in weights) / sum(weight.numel() for weight in weights)
    assert share == pytest.approx(0.5, abs=0.01)


def test_what_is_no_rule_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rule must be a wiring rule such as SET\(\).*not 'set'"):
        sparsify(mlp(), rule="set")  # type: ignore[arg-type]

"""Conversion of TD3 and SAC from Stable-Baselines3 to the engine, and back."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import SAC, TD3
from stable_baselines3.common.type_aliases import GymEnv
from torch import nn

from rewirl.agents import ActionBox, SACAgent, SACOptions, TD3Agent, TD3Options, WiringOptions
from rewirl.policies import Policy, PolicyLayer
from rewirl.sb3 import record as records
from rewirl.sb3.networks import agent_networks
from rewirl.sb3.stacks import Stack, stacks_of
from rewirl.topology import Links, Rule
from rewirl.torch import sparsify


def from_sb3(model: TD3 | SAC, task: str = "") -> Policy:
    """The policy of an agent with its links, to be saved, exported, and run with NumPy.

    It needs the same observations as the agent's `predict`: normalised ones, if the agent uses VecNormalize.

    >>> model = TD3("MlpPolicy", "Pendulum-v1", policy_kwargs={"net_arch": [16, 16]}, buffer_size=1, device="cpu")
    >>> from_sb3(model, task="Pendulum-v1").sizes
    (3, 16, 16, 1)
    """
    actor, layers = stacks_of(model)["actor"], []
    for layer, links in enumerate(_links(model, "actor", actor)):
        indptr, columns = links.csr()
        rows = np.repeat(np.arange(links.n_out), np.diff(indptr))
        weights = actor.weight(layer)[rows, columns]
        layers.append(PolicyLayer(links.n_in, links.n_out, indptr, columns, weights, actor.bias(layer)))
    box = _box(model)
    algorithm = "td3" if isinstance(model, TD3) else "sac"
    return Policy(layers=layers, low=box.low, high=box.high, algorithm=algorithm, task=task)


def agent_from_sb3(model: TD3 | SAC, rule: Rule, rng: np.random.Generator) -> TD3Agent | SACAgent:
    """The whole agent on the engine: networks, targets and hyper-parameters. Adam's moments start at 0.

    An agent that learned with `SparseTraining` continues with its links and a sparse `rule`, any other with Dense(). A
    SAC whose targets do not follow at every update is refused (`to_sb3` too): the engine counts a target interval over
    all updates, Stable-Baselines3 from the start of each call of `train`, so the two would learn differently.
    """
    record, stacks = records.record_of(model), stacks_of(model)
    if rule.sparse != (record is not None):
        kind, right = ("dense", "Dense()") if record is None else ("sparse", "a sparse rule")
        raise ValueError(f"this agent is {kind}: give {right}, not {rule}")
    hidden = stacks["actor"].hidden
    if len(stacks) != 3 or any(stack.hidden != hidden for stack in stacks.values()):
        raise ValueError("the engine's agents have two critics with hidden layers like the actor's, this one has not")
    asked = {} if record is None else records.asked_in(record)._asdict()
    wiring, n_obs = WiringOptions(rule=rule, **asked), stacks["actor"].weight(0).shape[1]
    agent: TD3Agent | SACAgent
    if isinstance(model, TD3):
        agent = TD3Agent(n_obs, _box(model), _td3_options(model, hidden), wiring, rng)
    else:
        agent = SACAgent(n_obs, _box(model), _sac_options(model, hidden), wiring, rng)
    for name, network in agent.networks.items():
        stacks[name].copy_to(network, _links(model, name, stacks[name]))
    for name, stack in stacks_of(model, targets=True).items():
        stack.copy_to_target(agent.targets[name])
    agent.updates = model._n_updates
    if isinstance(model, SAC) and model.log_ent_coef is not None:
        learned = np.array([model.log_ent_coef.item(), 0, 0, 0], dtype=np.float64)
        agent.load_state({**agent.state(), "temperature": learned})
    return agent


def to_sb3(agent: TD3Agent | SACAgent, env: GymEnv | None = None) -> TD3 | SAC:
    """The whole agent as one of Stable-Baselines3: networks, targets and hyper-parameters, with new moments.

    If it is sparse, `learn` with `SparseTraining` and the same sparsity or λ continues with its links. Without `env`,
    call the agent's `set_env` before it learns. A target interval other than 1 is refused, as in
    `agent_from_sb3`.
    """
    model = _new_model(agent, env)
    action = spaces.Box(agent.box.low, agent.box.high, dtype=np.float32)
    if env is None:
        model.observation_space, model.action_space = spaces.Box(-np.inf, np.inf, (agent.n_obs,), np.float32), action
        model.n_envs = 1
    elif model.observation_space.shape != (agent.n_obs,) or not _same_box(_box(model), agent.box):
        raise ValueError(
            f"the agent is for {agent.n_obs} numbers as observation and {action} as action, the environment has "
            f"{model.observation_space} and {model.action_space}"
        )
    model._setup_model()
    for name, stack in stacks_of(model).items():
        stack.copy_from(agent.networks[name])
    for name, stack in stacks_of(model, targets=True).items():
        stack.copy_from(agent.targets[name])
    model._n_updates = agent.updates
    if isinstance(model, SAC) and isinstance(agent, SACAgent) and model.log_ent_coef is not None:
        model.log_ent_coef.data.fill_(float(np.log(agent.alpha)))
    if agent.wiring.rule.sparse:
        _keep_record(model, agent)
    return model


def _new_model(agent: TD3Agent | SACAgent, env: GymEnv | None) -> TD3 | SAC:
    """An agent with these options, before its setup."""
    o = agent.options
    adam = {"betas": (o.beta1, o.beta2), "eps": o.adam_eps, "weight_decay": o.weight_decay}
    options: dict[str, Any] = {
        "policy": "MlpPolicy",
        "env": env,
        "learning_rate": o.lr,
        "batch_size": o.batch,
        "gamma": o.gamma,
        "tau": o.tau,
        "policy_kwargs": {"net_arch": list(o.hidden), "activation_fn": nn.ReLU, "optimizer_kwargs": adam},
        "device": "cpu",
        "_init_setup_model": False,
    }
    if isinstance(agent, TD3Agent):
        td3 = agent.options
        options |= {"target_policy_noise": td3.target_noise, "target_noise_clip": td3.target_clip}
        return TD3(policy_delay=td3.policy_delay, **options)
    sac = agent.options
    _check_interval("target_interval", sac.target_interval)
    options |= {"ent_coef": sac.alpha, "target_entropy": agent.target_entropy}
    return SAC(target_update_interval=1, **options)


def _check_interval(name: str, interval: int) -> None:
    if interval != 1:
        raise ValueError(
            f"{name} must be 1, not {interval}: the engine counts it over all updates, Stable-Baselines3 within "
            "each call of train, so targets would be updated at different times"
        )


def _links(model: TD3 | SAC, name: str, stack: Stack) -> list[Links]:
    """The links of each layer: the recorded ones, or all."""
    shapes = [stack.weight(layer).shape for layer in range(len(stack.layers))]
    dense = [Links.dense(n_in, n_out) for n_out, n_in in shapes]
    record = records.record_of(model)
    if record is None:
        return dense
    network = next(network for network in agent_networks(model) if network.name == name)
    links = [*records.kept_links(record, network).values(), dense[-1]]
    for number, layer in enumerate(links):
        if len(stack.beside(number, layer)):
            raise ValueError(
                f"layer {number} of the {name} has weights where there are no links: this agent has learned without "
                "SparseTraining since, which it needs in every learn"
            )
    return links


def _keep_record(model: TD3 | SAC, agent: TD3Agent | SACAgent) -> None:
    """The record that `SparseTraining` needs to continue with the agent's links."""
    asked = agent.wiring
    record = records.new_record(model, records.Asked.of(asked.sparsity, asked.lambdas, asked.block))
    record["updates"] = agent.updates
    rng = copy.deepcopy(agent.rng)
    for network in agent_networks(model):
        engine = agent.networks[network.name]
        links = {layer: engine.links(i) for i, layer in enumerate(network.sparse_layers)}
        wiring = sparsify(network.module, rule=agent.wiring.rule, links=links, seed=rng)
        wiring.updates = agent.updates
        records.keep(record, network.name, wiring, links=True)
        wiring.release()


def _same_box(one: ActionBox, other: ActionBox) -> bool:
    return np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high)


def _box(model: TD3 | SAC) -> ActionBox:
    space = model.action_space
    assert isinstance(space, spaces.Box)  # as TD3 and SAC themselves make sure
    return ActionBox(space.low.ravel(), space.high.ravel())


def _td3_options(model: TD3, hidden: tuple[int, ...]) -> TD3Options:
    return TD3Options(
        policy_delay=model.policy_delay,
        target_noise=model.target_policy_noise,
        target_clip=model.target_noise_clip,
        **_common_options(model, hidden),
    )


def _sac_options(model: SAC, hidden: tuple[int, ...]) -> SACOptions:
    _check_interval("target_update_interval", model.target_update_interval)
    return SACOptions(
        alpha="auto" if model.log_ent_coef is not None else float(model.ent_coef),
        target_entropy=float(model.target_entropy),
        **_common_options(model, hidden),
    )


def _common_options(model: TD3 | SAC, hidden: tuple[int, ...]) -> dict[str, Any]:
    if type(model.critic.optimizer) is not torch.optim.Adam:  # AdamW is one too, and decays weights otherwise
        raise ValueError(f"the engine learns by Adam, and this agent by {type(model.critic.optimizer).__name__}")
    adam = model.critic.optimizer.param_groups[0]
    return {
        "hidden": hidden,
        "batch": model.batch_size,
        "gamma": model.gamma,
        "tau": model.tau,
        "lr": adam["lr"],
        "beta1": adam["betas"][0],
        "beta2": adam["betas"][1],
        "adam_eps": adam["eps"],
        "weight_decay": adam["weight_decay"],
    }

"""Names of Stable-Baselines3: accepted if they mean the same, otherwise refused with the right name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewirl.envs.creation import EnvLike
from rewirl.errors import Refused

SAME = {
    "learning_rate": "lr",
    "learning_starts": "random_steps",
    "batch_size": "batch",
    "buffer_size": "replay_size",
    "gradient_steps": "updates_per_step",
    "n_envs": "envs",
    "target_policy_noise": "target_noise",
    "target_noise_clip": "target_clip",
    "ent_coef": "alpha",
    "target_update_interval": "target_interval",
}
"""Options with the same meaning and another name here."""
INSTEAD = {
    "net_arch": "hidden=(256, 256) sets the widths of the hidden layers",
    "action_noise": "exploration_noise=0.1 sets its σ, in half-ranges of the action box",
    "train_freq": "the agent learns after every step",
    "total_timesteps": "the number of steps is given to learn(steps)",
    "use_sde": "exploration_noise sets the noise of TD3, alpha that of SAC",
    "optimizer_class": "the optimizer is Adam: lr, beta1, beta2, adam_eps and weight_decay set its numbers",
    "optimizer_kwargs": "lr, beta1, beta2, adam_eps and weight_decay set Adam's numbers",
    "activation_fn": "hidden layers have ReLU",
    "n_critics": "there are two critics",
    "log_interval": "learn(steps, progress=True) shows progress, log='tensorboard' writes it down",
    "tb_log_name": "a run is named by its run_dir",
    "reset_num_timesteps": "a second call of learn always continues; for a new run make a new agent",
    "eval_env": "evaluation makes an environment of its own; eval_every and eval_episodes set when and how long",
}
"""What differs here, and how to do it."""
POLICY = "MlpPolicy"
"""The only supported policy."""


class Translated(NamedTuple):
    """Options by their names here."""

    options: dict[str, Any]
    progress: bool | None
    """The value of `verbose`."""
    tensorboard_log: str | None


def environment(given: Sequence[EnvLike], env: EnvLike | None, policy: object = None) -> EnvLike | None:
    """The environment in TD3(env), TD3(env=env), TD3("MlpPolicy", env) or TD3(policy="MlpPolicy", env=env)."""
    words = list(given)
    if policy is None and words and isinstance(words[0], str) and words[0].endswith("Policy"):
        policy = words.pop(0)
    if policy not in (None, POLICY):
        raise Refused(f"there is no {policy}: policies are multi-layer perceptrons ({POLICY!r}, which may be left out)")
    if env is not None:
        words.append(env)
    if len(words) > 1:
        raise Refused(f"give one environment, not {len(words)}; options have names, as in lr=1e-3")
    return words[0] if words else None


def translate(options: Mapping[str, Any]) -> Translated:
    """Options as they are called here; refused where Stable-Baselines3 means something else."""
    given = dict(options)
    verbose, tensorboard_log = given.pop("verbose", None), given.pop("tensorboard_log", None)
    if given.pop("device", "cpu") not in ("cpu", "auto"):
        raise Refused(f"device must be 'cpu', not {options['device']!r}: the networks run on the processor")
    if given.get("gradient_steps") == -1:  # as many as steps
        given["gradient_steps"] = 1
    hidden = _hidden(given.pop("policy_kwargs", None) or {})
    if callable(given.get("learning_rate")):
        raise Refused("learning_rate must be a number: lr_schedule='linear' or 'cosine' lets it fall")
    if given.get("target_entropy") == "auto":
        del given["target_entropy"]
    for name, right in INSTEAD.items():
        if name in given:
            raise Refused(f"there is no option {name!r}: {right}")
    found: dict[str, Any] = {}
    for name, value in [*given.items(), *hidden.items()]:
        own = SAME.get(name, name)
        if own in found:
            raise Refused(f"{own} is given twice, as {own} and by its name in Stable-Baselines3")
        found[own] = value
    return Translated(found, None if verbose is None else bool(verbose), tensorboard_log)


def _hidden(policy_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    for name in policy_kwargs:
        if name != "net_arch":
            right = INSTEAD.get(name, "only net_arch is known")
            raise Refused(f"policy_kwargs has no {name!r} here: {right}")
    widths = policy_kwargs.get("net_arch")
    if isinstance(widths, Mapping):
        if len({tuple(value) for value in widths.values()}) != 1:
            raise Refused(f"net_arch must be the same for actor and critics, not {dict(widths)}: {INSTEAD['net_arch']}")
        widths = next(iter(widths.values()))
    return {} if widths is None else {"hidden": tuple(widths)}


def steps_of(steps: object, words: dict[str, Any]) -> object:
    """The steps in learn(steps) or learn(total_timesteps=...)."""
    if "total_timesteps" in words:
        if steps is not None:
            raise Refused("the number of steps is given twice, as steps and as total_timesteps")
        steps = words.pop("total_timesteps")
    for name in words:
        right = INSTEAD.get(name, "it takes steps, callback, progress and log")
        raise Refused(f"learn has no option {name!r}: {right}")
    if steps is None:
        raise Refused("how many steps? For example learn(100_000)")
    return steps

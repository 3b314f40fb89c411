"""TD3, SAC, CrossQ and double DQN once more, as anyone would write them in PyTorch: dense matrices, masks, autograd.

Written from the paper; it shares no line with the engine or the agents but the rules of rewiring (topology has its own
hand-computed tests), and draws the same random numbers in the same order.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from rewirl.agents import WiredAgent
from rewirl.agents.actor_critic import EntropyCritic
from rewirl.nn import Batch, BatchNorm, Network, RandomStream
from rewirl.topology import Links


class Renorm(nn.Module):
    """Batch renormalisation: Ioffe 2017, Algorithm 1, without a correction for the first `warmup` batches."""

    def __init__(self, options: BatchNorm, n: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.options, self.batches = options, 0
        self.gamma, self.beta = nn.Parameter(torch.ones(n, dtype=dtype)), nn.Parameter(torch.zeros(n, dtype=dtype))
        self.mean, self.variance = torch.zeros(n, dtype=dtype), torch.ones(n, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        o = self.options
        running = (self.variance + o.eps).sqrt()
        if not self.training:
            return (x - self.mean) / running * self.gamma + self.beta
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        std = (variance + o.eps).sqrt()
        normal = (x - mean) / std
        if self.batches >= o.warmup:
            r = (std / running).detach().clamp(1 / o.r_max, o.r_max)
            normal = normal * r + ((mean - self.mean) / running).detach().clamp(-o.d_max, o.d_max)
        self.mean = o.momentum * self.mean + (1 - o.momentum) * mean.detach()
        self.variance = o.momentum * self.variance + (1 - o.momentum) * variance.detach()
        self.batches += 1
        return normal * self.gamma + self.beta


class Masked(nn.Module):
    """An MLP whose hidden layers are multiplied by masks."""

    def __init__(self, net: Network, dtype: torch.dtype) -> None:
        super().__init__()
        self.links = [net.links(layer) for layer in range(net.layers)]
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        self.layer_norm = net.layer_norm
        norms = (Renorm(net.batch_norm, n, dtype) if net.batch_norm else nn.Identity() for n in net.sizes[:-1])
        self.norms = nn.ModuleList(norms)
        self.masks: list[torch.Tensor] = []
        for layer, links in enumerate(self.links):
            dense = torch.from_numpy(to_dense(links, net.weights(layer))).to(dtype)
            self.weights.append(nn.Parameter(dense))
            self.biases.append(nn.Parameter(torch.from_numpy(net.biases(layer).copy()).to(dtype)))
            self.masks.append(mask_of(links, dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = len(self.weights) - 1
        for i, (w, b, m) in enumerate(zip(self.weights, self.biases, self.masks, strict=True)):
            x = F.linear(self.norms[i](x), w * m, b)
            x = self.hidden(x) if i < last else x
        return x

    def hidden(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(F.layer_norm(x, (x.shape[1],)) if self.layer_norm else x)


def to_dense(links: Links, weights: np.ndarray) -> np.ndarray:
    by_place = np.zeros((links.n_places, links.block), dtype=np.float32)
    by_place[links.places] = weights
    return np.ascontiguousarray(by_place.reshape(links.n_in, links.n_out).T)


def mask_of(links: Links, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(to_dense(links, np.ones((links.blocks, links.block), dtype=np.float32))).to(dtype)


def by_position(links: Links, dense: torch.Tensor) -> np.ndarray:
    by_place = dense.detach().numpy().T.reshape(links.n_places, links.block)
    return by_place[links.places].astype(np.float32)


def rank_one(values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """What every position would have by the means of its row and of its column, over the positions in the mask."""
    mean = (values * mask).sum() / mask.sum()
    rows = torch.where(mask.sum(1) > 0, (values * mask).sum(1) / mask.sum(1).clamp(min=1), mean)
    columns = torch.where(mask.sum(0) > 0, (values * mask).sum(0) / mask.sum(0).clamp(min=1), mean)
    return rows[:, None] * columns[None, :] / mean


class Reference:
    """An agent in PyTorch, begun as a copy of `agent`."""

    def __init__(self, agent: WiredAgent, dtype: torch.dtype) -> None:
        self.options, self.rule = agent.options, agent.wiring.rule
        self.n_act = agent.n_act
        self.rng = copy.deepcopy(agent.rng)
        self.dtype = dtype
        self.networks = {name: Masked(net, dtype) for name, net in agent.networks.items()}
        self.targets = {name: copy.deepcopy(self.networks[name]) for name in agent.targets}
        o = agent.options

        def adam(net: Masked):
            shares = {id(w): links.count / w.numel() for w, links in zip(net.weights, net.links, strict=True)}
            rates = [{"params": [p], "lr": o.lr / shares.get(id(p), 1.0) ** o.sparse_rate} for p in net.parameters()]
            return (torch.optim.AdamW if o.decoupled_decay else torch.optim.Adam)(
                rates, betas=(o.beta1, o.beta2), eps=o.adam_eps, weight_decay=o.weight_decay
            )

        self.optimizers = {id(net): adam(net) for net in self.networks.values()}
        self.updates = 0
        self.actor_adapts = False
        if isinstance(agent, EntropyCritic) and o.alpha == "auto":
            self.log_alpha = torch.zeros((), dtype=torch.float64, requires_grad=True)
            self.alpha_optimizer = torch.optim.Adam([self.log_alpha], lr=o.lr, betas=(o.beta1, o.beta2), eps=o.adam_eps)
            self.target_entropy = agent.target_entropy

    # --------------------------------------------------------------- helpers

    def normal(self, n: int) -> torch.Tensor:
        noise = Batch(self.n_act, n)
        RandomStream(self.rng).normal(noise)
        return torch.from_numpy(noise.array.T.copy()).to(self.dtype)

    def descend(self, net: Masked, loss: torch.Tensor) -> None:
        self.optimizers[id(net)].zero_grad()
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter.grad = gradient
        self.optimizers[id(net)].step()

    def adapt(self, net: Masked) -> None:
        state = self.optimizers[id(net)].state
        for layer, links in enumerate(net.links):
            if links.n_free == 0:
                continue
            w = net.weights[layer]
            change = self.rule.at(self.updates).rewire(
                links, by_position(links, w), self.rng, self.layer_gradient(net, layer)
            )
            net.links[layer] = change.links
            net.masks[layer] = mask_of(change.links, self.dtype)
            fresh = mask_of(Links(links.n_in, links.n_out, links.block, change.grown), self.dtype)
            stays = net.masks[layer] * (1 - fresh)
            with torch.no_grad():
                w.mul_(stays)
                state[w]["exp_avg"].mul_(stays)
                estimate = rank_one(state[w]["exp_avg_sq"], mask_of(links, self.dtype))
                state[w]["exp_avg_sq"].mul_(stays).add_(estimate * fresh)

    def layer_gradient(self, net: Masked, layer: int) -> np.ndarray | None:
        """The dense gradient of the last loss, found by autograd through unmasked copies of the weights."""
        if not self.rule.wants_gradients:
            return None
        return self.full_gradients[id(net)][layer]

    def remember_full_gradients(self, net: Masked, loss_of) -> None:
        if not self.rule.wants_gradients:
            return
        # w·m with a free addition at every place: its gradient is the dense one
        free = [torch.zeros_like(w, requires_grad=True) for w in net.weights]
        norms = copy.deepcopy(net.norms)  # whose statistics this pass may change

        def forward(x: torch.Tensor) -> torch.Tensor:
            last = len(net.weights) - 1
            for i, (w, b, m, z) in enumerate(zip(net.weights, net.biases, net.masks, free, strict=True)):
                x = F.linear(norms[i](x), w.detach() * m + z, b.detach())
                x = net.hidden(x) if i < last else x
            return x

        gradients = torch.autograd.grad(loss_of(forward), free)
        self.full_gradients = getattr(self, "full_gradients", {})
        self.full_gradients[id(net)] = [g.numpy().astype(np.float32) for g in gradients]

    def train(self, net: Masked, loss_of) -> None:
        self.remember_full_gradients(net, loss_of)
        self.descend(net, loss_of(net))

    def follow(self, target: Masked, online: Masked, tau: float) -> None:
        with torch.no_grad():
            for layer, (mine, theirs) in enumerate(zip(target.weights, online.weights, strict=True)):
                mine.copy_(tau * theirs * online.masks[layer] + (1 - tau) * mine)
                links = online.links[layer]
                if links.n_free:
                    # MaintainSparsity: the k largest stay (blocks by the sum of their magnitudes)
                    size = mine.abs().T.reshape(links.n_places, links.block).sum(1)
                    keep = torch.zeros_like(size)
                    keep[torch.topk(size, links.blocks).indices] = 1
                    kept = keep.repeat_interleave(links.block).reshape(links.n_in, links.n_out).T
                    mine.mul_(kept)
                target.masks[layer] = torch.ones_like(mine)
            for mine, theirs in zip(target.biases, online.biases, strict=True):
                mine.copy_(tau * theirs + (1 - tau) * mine)

    def tensors(self, transitions) -> tuple[torch.Tensor, ...]:
        def of(array):
            return torch.from_numpy(np.ascontiguousarray(array.T)).to(self.dtype)

        t = transitions
        return tuple(of(x.array) for x in (t.obs, t.action, t.reward, t.terminated, t.next_obs))


class ActorCriticReference(Reference):
    def __init__(self, agent: WiredAgent, dtype: torch.dtype) -> None:
        super().__init__(agent, dtype)
        self.actor, *self.critics = self.networks.values()
        self.critic_targets = [self.targets[name] for name in agent.critic_names if name in self.targets]


class TorchTD3(ActorCriticReference):
    def update(self, transitions) -> None:
        o = self.options
        self.updates += 1
        s, a, r, d, s2 = self.tensors(transitions)
        n = len(s)
        with torch.no_grad():
            noise = (o.target_noise * self.normal(n)).clamp(-o.target_clip, o.target_clip)
            a2 = (torch.tanh(self.targets["actor"](s2)) + noise).clamp(-1, 1)
            x2 = torch.cat([s2, a2], 1)
            y = r + o.gamma * (1 - d) * torch.min(*(t(x2) for t in self.critic_targets))
        x = torch.cat([s, a], 1)
        for critic in self.critics:
            self.train(critic, lambda net: F.mse_loss(net(x), y))
        if self.rule.due(self.updates):
            for critic in self.critics:
                self.adapt(critic)
            self.actor_adapts = True
        if self.updates % o.policy_delay == 0:
            self.train(self.actor, lambda net: -self.critics[0](torch.cat([s, torch.tanh(net(s))], 1)).mean())
            if self.actor_adapts:
                self.adapt(self.actor)
                self.actor_adapts = False
            for target, online in zip(self.critic_targets, self.critics, strict=True):
                self.follow(target, online, o.tau)
            self.follow(self.targets["actor"], self.actor, o.tau)


class EntropyReference(ActorCriticReference):
    def alpha(self) -> float:
        return float(self.log_alpha.detach().exp()) if self.options.alpha == "auto" else self.options.alpha

    def sample(self, out: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, log_std = out.chunk(2, dim=1)
        std = log_std.clamp(-20, 2).exp()
        gaussian = torch.distributions.Normal(mean, std)
        u = mean + std * noise
        squash = torch.distributions.transforms.TanhTransform(cache_size=1)
        a = squash(u)
        log_prob = gaussian.log_prob(u) - squash.log_abs_det_jacobian(u, a)
        return a, log_prob.sum(1, keepdim=True)

    def train_actor(self, s: torch.Tensor) -> None:
        alpha, noise, log_probs = self.alpha(), self.normal(len(s)), []

        def actor_loss(net) -> torch.Tensor:
            a_new, log_prob = self.sample(net(s), noise)
            log_probs.append(log_prob.detach())
            q = torch.min(*(c(torch.cat([s, a_new], 1)) for c in self.critics))
            return (alpha * log_prob - q).mean()

        self.train(self.actor, actor_loss)
        if self.actor_adapts:
            self.adapt(self.actor)
            self.actor_adapts = False
        if self.options.alpha == "auto":
            loss = -(self.log_alpha * (log_probs[-1].mean().double() + self.target_entropy))
            self.alpha_optimizer.zero_grad()
            loss.backward()
            self.alpha_optimizer.step()


class TorchSAC(EntropyReference):
    def update(self, transitions) -> None:
        o = self.options
        self.updates += 1
        s, a, r, d, s2 = self.tensors(transitions)
        n = len(s)
        alpha = self.alpha()
        with torch.no_grad():
            a2, log_prob2 = self.sample(self.actor(s2), self.normal(n))
            x2 = torch.cat([s2, a2], 1)
            y = r + o.gamma * (1 - d) * (torch.min(*(t(x2) for t in self.critic_targets)) - alpha * log_prob2)
        x = torch.cat([s, a], 1)
        for critic in self.critics:
            self.train(critic, lambda net: F.mse_loss(net(x), y))
        if self.rule.due(self.updates):
            for critic in self.critics:
                self.adapt(critic)
            self.actor_adapts = True
        self.train_actor(s)
        if self.updates % o.target_interval == 0:
            for target, online in zip(self.critic_targets, self.critics, strict=True):
                self.follow(target, online, o.tau)


class TorchCrossQ(EntropyReference):
    def update(self, transitions) -> None:
        o = self.options
        self.updates += 1
        s, a, r, d, s2 = self.tensors(transitions)
        n = len(s)
        with torch.no_grad():
            self.actor.eval()
            a2, log_prob2 = self.sample(self.actor(s2), self.normal(n))
            joint = torch.cat([torch.cat([s, a], 1), torch.cat([s2, a2], 1)])
            for critic in self.critics:
                critic.train()
            next_q = torch.min(*(copy.deepcopy(critic)(joint)[n:] for critic in self.critics))
            y = r + o.gamma * (1 - d) * (next_q - self.alpha() * log_prob2)
        for critic in self.critics:
            self.train(critic, lambda net: F.mse_loss(net(joint)[:n], y))
        if self.rule.due(self.updates):
            for critic in self.critics:
                self.adapt(critic)
            self.actor_adapts = True
        if self.updates % o.policy_delay == 0:
            for critic in self.critics:
                critic.eval()
            self.actor.train()
            self.train_actor(s)


class TorchDQN(Reference):
    def update(self, transitions) -> None:
        o = self.options
        self.updates += 1
        s, a, r, d, s2 = self.tensors(transitions)
        net, target = self.networks["q"], self.targets["q"]
        a = a.argmax(1, keepdim=True)
        with torch.no_grad():
            best = net(s2).argmax(1, keepdim=True)
            y = r + o.gamma * (1 - d) * target(s2).gather(1, best)
        loss = F.smooth_l1_loss if o.loss == "huber" else F.mse_loss
        self.train(net, lambda net: loss(net(s).gather(1, a), y))
        if self.rule.due(self.updates):
            self.adapt(net)
        if self.updates % o.target_interval == 0:
            self.follow(target, net, o.tau)

"""Names of features: one for each number, and each at its place in the observation that the task gives."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
import pytest

from rewirl.envs.catalogue import TASKS, action_names, observation_names

JOINTS = {
    "HalfCheetah-v5": {"rootz": "torso height", "bfoot": "back foot angle", "fthigh": "front thigh angle"},
    "Hopper-v5": {"rooty": "torso angle", "leg_joint": "leg angle"},
    "Walker2d-v5": {"thigh_left_joint": "left thigh angle", "foot_joint": "right foot angle"},
    "Ant-v5": {"hip_3": "back left hip angle", "ankle_2": "front right ankle angle"},
    "Humanoid-v5": {"abdomen_y": "abdomen y angle", "left_knee": "left knee angle", "right_elbow": "right elbow angle"},
    "Swimmer-v5": {"motor2_rot": "second joint angle"},
    "Pusher-v5": {"r_wrist_roll_joint": "wrist roll angle"},
    "InvertedPendulum-v5": {"hinge": "pole angle"},
}
SPEEDS = {"torso height": "vertical speed", "torso angle": "torso turning"}


@pytest.mark.parametrize("task", TASKS)
def test_one_name_for_each_number(task):
    n_obs, n_act = TASKS[task].sizes()
    for names, count in ((observation_names(task, n_obs), n_obs), (action_names(task, n_act), n_act)):
        assert len(names) == len(set(names)) == count
        assert not any(name.startswith(("observation ", "action ")) for name in names)


def test_numbers_where_names_are_not_known_or_would_be_wrong():
    assert observation_names("Mine-v0", 2) == ("observation 0", "observation 1")
    assert observation_names("HalfCheetah-v5", 18)[0] == "observation 0"  # with the position included
    assert action_names("", 1) == ("action 0",)


@pytest.mark.parametrize("task", JOINTS)
def test_a_joint_that_moves_is_seen_under_its_name(task):
    env = gymnasium.make(task).unwrapped
    env.reset(seed=0)
    names = observation_names(task, env.observation_space.shape[0])
    for joint, name in JOINTS[task].items():
        model, data = env.model, env.data
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint)
        speed = SPEEDS.get(name, name.replace("angle", "speed"))
        for values, at, moved in (
            (data.qpos, model.jnt_qposadr[number], name),
            (data.qvel, model.jnt_dofadr[number], speed),
        ):
            before = np.array(env._get_obs())
            values[at] += 0.125
            assert [names[index] for index in np.flatnonzero(env._get_obs() != before)] == [moved]
    env.close()


@pytest.mark.parametrize(("task", "actuator", "joint"), [("Ant-v5", 0, "hip_4"), ("Humanoid-v5", 0, "abdomen_y")])
def test_motors_are_in_the_order_of_the_model(task, actuator, joint):
    model = gymnasium.make(task).unwrapped.model
    number = int(model.actuator_trnid[actuator, 0])
    assert mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, number) == joint
    spoken = {"hip_4": "back right hip torque", "abdomen_y": "abdomen y torque"}[joint]
    assert action_names(task, model.nu)[actuator] == spoken

"""Objectives and similarity of episodes that are given step by step."""

from openfield.objectives.intervals import compare_counted, count_episode, objectives_of_counted


def objectives_of_episodes(groups, num_obs=None, draws=200):
    """Compute the objectives of groups of episodes in one environment."""
    inputs, actions = {}, {}
    counted = {group: [count_episode(steps, inputs, actions) for steps in each] for group, each in groups.items()}
    size = len(inputs) if num_obs is None else num_obs
    return {group: objectives_of_counted(parts, size, draws=draws) for group, parts in counted.items()}


def compare_episodes(first, second):
    """Compare the inputs two agents acted on."""
    inputs = {}
    one, other = ([count_episode(steps, inputs, {}) for steps in episodes] for episodes in (first, second))
    return compare_counted(one, other, len(inputs))

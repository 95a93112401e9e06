"""The sentences of a report, on made-up numbers."""

from __future__ import annotations

from openfield.metrics.comparison import Comparison
from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import SILENT, AgentResults, Summary
from openfield.report.findings import sum_up, write_findings
from openfield.report.words import rank_agents

SWAP = Scenario("maze", ("swap",), False, "")


def guess(mean: float, n: int = 6, width: float = 0.1) -> Estimate:
    return Estimate(mean, mean - width, mean + width, n) if n >= 5 else Estimate(mean, None, None, n)


def group(agent: str, after: float | None = None, **others: Estimate) -> AgentResults:
    own = {"before": guess(0.9)} | ({} if after is None else {"after": guess(after)}) | others
    return AgentResults(agent, SWAP, 6, 0, {"done": 6}, own)


def against(first: str, second: str, gap: float, p: float | None) -> Comparison:
    return Comparison(SWAP, first, second, True, guess(gap), guess(0.5 + gap / 2), p, p, 1)


def tell(*groups: AgentResults, pairs: tuple[Comparison, ...] = ()) -> str:
    names = {each.agent: each.agent for each in groups}
    return " ".join(each.text for each in write_findings(groups, pairs, names))


def tell_briefly(*groups: AgentResults, pairs: tuple[Comparison, ...] = ()) -> str:
    return sum_up(Summary((), groups, pairs, {}), SWAP, groups)


def test_better_is_said_only_where_the_corrected_p_value_supports_it() -> None:
    agents = group("ada", 0.7), group("bob", 0.4)
    assert tell(*agents, pairs=(against("ada", "bob", 0.3, 0.031),)) == (
        "ada does best after the change (0.70, 95 % interval 0.60 to 0.80), better than bob (p = 0.031)."
    )
    assert tell(*agents, pairs=(against("bob", "ada", -0.3, 0.06),)) == (
        "No agent is clearly best after the change: ada scores 0.70 (95 % interval 0.60 to 0.80) "
        "and bob 0.40 (95 % interval 0.30 to 0.50); p = 0.060."
    )
    assert "better than bob" in tell(*agents, pairs=(against("bob", "ada", -0.3, 0.01),))
    assert "better than" not in tell(*agents, pairs=(against("ada", "bob", -0.3, 0.01),))


def test_the_agents_that_it_does_not_beat_are_named() -> None:
    agents = group("ada", 0.7), group("bob", 0.6), group("cyd", 0.1)
    pairs = against("ada", "bob", 0.1, 0.4), against("ada", "cyd", 0.6, 0.0001)
    assert tell_briefly(*agents, pairs=pairs) == (
        "ada does best (0.70), better than cyd (p < 0.001), but not clearly better than bob."
    )
    assert "ada most often does best" in tell(group("ada", 0.5), *agents[1:], pairs=pairs)


def test_only_a_sentence_about_one_agent_goes_on_about_it() -> None:
    seen = {"correct": guess(1.0), "detected": guess(1.0)}
    agents = group("ada (old)", 0.7, **seen), group("ada (new)", 0.4, **{name: guess(0.0) for name in seen})
    assert tell_briefly(*agents) == "ada (old) scores 0.70 and ada (new) 0.40; ada (old) notices in 6 of 6 trials."
    deaf = [group(name, value, **{each: guess(0.0) for each in seen}) for name, value in (("ada", 0.7), ("bob", 0.6))]
    assert tell_briefly(*deaf, pairs=(against("ada", "bob", 0.1, 0.4),)) == (
        "No agent is clearly best (ada 0.70 and bob 0.60); no agent notices."
    )


def test_many_agents_are_counted() -> None:
    agents = [group(name, value / 10) for value, name in zip((9, 5, 4, 3, 2), "abcde", strict=True)]
    pairs = tuple(against("a", other, 0.4, 0.01 * place) for place, other in enumerate("bcde", 1))
    assert tell(*agents, pairs=pairs).endswith("0.80 to 1.00), better than 4 others (p ≤ 0.040).")
    assert tell_briefly(*agents, pairs=pairs) == "a does best (0.90)."
    undecided = tuple(against("a", other, 0.4, 0.5) for other in "bcde")
    assert ", b 0.50 (95 % interval 0.40 to 0.60) and c " in tell(*agents, pairs=undecided)
    assert tell(*agents, pairs=undecided).endswith(", ahead of 2 others; p ≥ 0.500.")
    briefly = tell_briefly(*agents, pairs=undecided)
    assert briefly == "No agent is clearly best (a 0.90, b 0.50 and c 0.40, ahead of 2 others)."


def test_ties() -> None:
    pairs = (against("ada", "bob", 0.0, 1.0),)
    assert tell_briefly(group("ada", 0.5), group("bob", 0.5), pairs=pairs) == ("ada and bob do equally well (0.50).")
    same = tell(*(group(name, 0.5) for name in "abcd"))
    assert same == "All 4 agents do equally well after the change (0.50, 95 % interval 0.40 to 0.60)."


def test_a_p_value_of_one_is_no_lower_bound() -> None:
    pairs = against("ada", "bob", 0.0, 1.0), against("ada", "cyd", 0.0, 1.0)
    assert tell(group("ada", 0.3), group("bob", 0.2), group("cyd", 0.1), pairs=pairs).endswith("; p = 1.")


def test_too_few_trials_compare_nobody() -> None:
    means = {"ada": 0.1, "bob": 0.2}
    few = [AgentResults(name, SWAP, 3, 0, {"done": 3}, {"after": guess(mean, 3)}) for name, mean in means.items()]
    told = tell(*few, pairs=(against("ada", "bob", 0.1, None),))
    assert told == "bob scores 0.20 and ada 0.10 after the change; 3 trials are too few to compare them."


def test_one_agent() -> None:
    assert tell_briefly(group("ada", 0.7)) == "ada scores 0.70, down from 0.90."
    assert tell_briefly(group("ada", 0.95)) == "ada scores 0.95, up from 0.90."
    assert tell_briefly(group("ada", 0.9)) == "ada scores 0.90, as before."


def test_nothing_changes() -> None:
    still = AgentResults("ada", Scenario("maze", (), False, ""), 6, 0, {"done": 6}, {"before": guess(0.9)})
    assert tell_briefly(still) == "ada scores 0.90."


def test_returns_without_a_scale_rank_nobody() -> None:
    raw = [AgentResults(name, SWAP, 6, 0, {"done": 6}, {"return_before": guess(150), "return_after": guess(value)})
           for name, value in (("ada", 120.0), ("bob", 3.5))]  # fmt: skip
    assert tell_briefly(*raw) == "The mean return is 120 for ada and 3.50 for bob."
    assert tell(*raw).startswith("After the change the mean return is 120 (95 % interval 120 to 120) for ada and 3.50")
    assert tell_briefly(raw[0]) == "The mean return is 120 for ada, and was 150 before."


def rates(correct: float, detected: float, alarmed: float, delay: float | None = None) -> dict[str, Estimate]:
    found = {"correct": guess(correct), "detected": guess(detected), "alarmed": guess(alarmed)}
    return found | ({} if delay is None else {"delay": guess(delay)})


def noticed(*groups: AgentResults) -> str:
    return tell(*groups).split(". ", 1)[-1]


def test_detections_come_with_their_delay_and_false_alarms() -> None:
    assert noticed(group("ada", 0.5, **rates(1, 1, 0, 1))).endswith(
        "ada notices the change in 6 of 6 trials, one episode late on average, without a false alarm."
    )
    assert noticed(group("ada", 0.5, **rates(0.5, 0.5, 0, 0))).endswith(
        "ada notices the change in 3 of 6 trials, at once, without a false alarm."
    )
    assert noticed(group("ada", 0.5, **rates(0.5, 1, 0.5, 0))).endswith(
        "ada notices the change in 6 of 6 trials, but raises a false alarm before it in 3 of 6 trials."
    )
    assert noticed(group("ada", 0.5, **rates(0, 0, 0))).endswith("ada never notices the change.")
    assert noticed(group("ada", 0.5, **rates(0, 0, 1))).endswith(
        "ada never notices the change, but raises a false alarm before it in 6 of 6 trials."
    )


def test_alarms_in_twins_count_and_a_missing_twin_is_not_mentioned() -> None:
    alarmed = group("ada", 0.5, **rates(1, 1, 0, 0), alarmed_unchanged=guess(0.5, 2))
    assert noticed(alarmed).endswith("but raises a false alarm in 1 of 2 trials in which nothing changes.")
    assert tell_briefly(alarmed).endswith("notices in 6 of 6 trials, but also raises false alarms.")
    assert "nothing changes" not in noticed(group("ada", 0.5, **rates(1, 1, 0, 0)))


def test_repeats_are_told_in_percent() -> None:
    assert "notices the change in 75 % of 6 trials" in noticed(group("ada", 0.5, **rates(0.75, 0.75, 0, 0)))


def test_who_states_no_belief() -> None:
    silent, other = group("ada", 0.5, correct=SILENT), group("bob", 0.5, correct=SILENT)
    assert noticed(silent).endswith("ada does not say whether its world has changed.")
    assert noticed(silent, other).endswith("No agent says whether its world has changed.")
    assert tell_briefly(silent, other).endswith("; no agent says whether its world has changed.")
    assert noticed(silent, group("bob", 0.5, **rates(0, 0, 0)), group("cyd", 0.5, **rates(0, 0, 0))).endswith(
        "No agent notices the change."
    )
    assert "whether" not in tell(group("ada", 0.5))


def test_the_red_light_leaves_nothing_to_notice() -> None:
    told = Scenario("maze", ("swap",), True, "")
    lit = AgentResults("ada", told, 6, 0, {"done": 6}, {"after": guess(0.5)} | rates(1, 1, 0, 0))
    assert "notices" not in tell(lit)


def test_agents_that_failed_everywhere_are_last_and_said_to_fail() -> None:
    crashed = AgentResults("ada", SWAP, 6, 0, {"agent_error": 6}, {"after": guess(0.0)})
    played = AgentResults("bob", SWAP, 6, 0, {"done": 4, "agent_error": 2}, {"return_after": guess(3.0)})
    ranked = rank_agents([crashed, played], [against("ada", "bob", 0.3, 0.01)])
    assert [each.agent for each in ranked] == ["bob", "ada"]
    assert tell_briefly(*ranked) == (
        "The mean return is 3.00 for bob; bob failed 2 of 6 times (agent_error); ada failed every time (agent_error)."
    )
    assert tell() == ""

"""The example streams of the specification, symbol by symbol: questions come from a script, the rest must follow."""

import pytest

from openfield.domains.commai.curriculum import make_environment
from openfield.domains.commai.environment.schedulers import ConsecutiveScheduler
from openfield.domains.commai.environment.task import Round, RoundScript
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import make_task

OK, AS_ABOVE = "good job! ;", None


def rounds(*entries):
    """Rounds from (question, answer, feedback if right, feedback if wrong)."""
    return [Round(*entry) for entry in entries]


def told(question, answer, praise="good job! ", blame="wrong! "):
    return Round(question, answer, f"{praise}{answer};", f"{blame}{answer};")


def short(question, answer):
    return Round(question, answer, OK, f"wrong! {answer};")


def digits(*pairs):
    return [Round(f"{key}.", answer, f"{answer};", f"{answer};") for key, answer in pairs]


MICRO = {
    "micro1": (
        [[Round(key, "d") for key in "gPtxxtg#"]],
        "gPtxxtg",
        "#dddddd",
        ".-+++++",
    ),
    "micro3": (
        [rounds(("e", "u"), ("e", "u"), (".", "."), (";", ";"), ('"', '"'), ("k", "k"), (" ", " "), ("e", "u"))],
        'ee.;"k_',
        '#u.;"k_',
        ".-+++++",
    ),
    "micro5.1": (
        [rounds(("3", "9", "9", "9"), ("9", "8", "8", "8"), ("9", "8", "8", "8"), ("2", "6", "6", "6"), ("1", "0"))],
        "39989826",
        "#_8_8_6_",
        ".-.+.+.+",
    ),
    "micro5.3": (
        [digits(("3", "9"), ("9", "8"), ("9", "8"), ("1", "0"))],
        "3.9;9.8;9.8",
        "_#___8___8_",
        "..-...+...+",
    ),
    "micro5.4": (
        [digits(("5", "83"), ("5", "83"), ("7", "60"))],
        "5._83;5._83;7.",
        "_##____83____6",
        "...-.....+....",
    ),
    "micro5.6": (
        [rounds(("7.", "5.", "5;", "5.;"), ("2.", "6.", "6;", "6.;"), ("8.", "9.", "9;", "9.;"))],
        "7._5.;2._6;8._",
        "_#.____6.___9.",
        "...-.....+....",
    ),
    "micro5.10": (
        [rounds(("7.", "5.", "", "45.;"), ("2.", "6.", "56.;"), ("8.", "9."))],
        "7._45.;2._56.;8",
        "_#._____6._____",
        "...-......+....",
    ),
    "micro5.17": (
        [digits(("08", "4911."), ("46", "62527."), ("1", "2."))],
        "08.____4911.;46._____62527",
        "__####.________62527._____",
        ".......-.............+....",
    ),
    "micro6": (
        [[short("random_map: never.", "we."), short("random_map: can.", "point."), short("random_map: x.", "y.")]],
        "random_map:_never.__wrong!_we.;random_map:_can._____good_",
        "_________________##.__________________________point._____",
        "....................-...............................+....",
    ),
    "micro7.1": (
        [
            [
                told("say: k.", "k.", "correct! ", "false! "),
                told("say: e.", "e.", "correct! ", "false! "),
                short("x.", "y."),
            ]
        ],
        "say:_k._false!_k.;say:_e._corre",
        "______#.________________e._____",
        "........-.................+....",
    ),
    "micro8": (
        [
            [
                told("say:   e   u.", "e u.", "correct! ", "false! "),
                told("say: rl    .", "rl .", "correct! ", "false! "),
                short("x.", "y."),
            ]
        ],
        "say:___e___u.___false!_e_u.;say:_rl____.___corre",
        "____________###._______________________rl_._____",
        "................-..........................+....",
    ),
    "micro9.1": (
        [[told("spell: k.", "k ."), told("spell: e.", "e ."), short("x.", "y.")]],
        "spell:_k.__wrong!_k_.;spell:_e.__good_",
        "________##.___________________e_._____",
        "...........-.....................+....",
    ),
    "micro9.3": (
        [
            [
                told("interleave: suggestion by -.", "s-u-g-g-e-s-t-i-o-n."),
                told("interleave: admission by ,.", "a,d,m,i,s,s,i,o,n."),
                short("x.", "y."),
            ]
        ],
        "interleave:_suggestion_by_-.___________________wrong!_s-u-g-g-e-s-t-i-o-n.;"
        "interleave:_admission_by_,._________________good_",
        "___________________________###################._____________________________"
        "_________________________a,d,m,i,s,s,i,o,n._____",
        "...............................................-............................"
        "...........................................+....",
    ),
    "micro11": (
        [
            [
                short("say: ac say: bc concatenate:.", "acbc."),
                short("say: ab say: ab interleave:.", "aabb."),
                short("x.", "y."),
            ]
        ],
        "say:_ac_say:_bc_concatenate:.____wrong!_acbc.;say:_ab_say:_ab_interleave:.____good_",
        "____________________________####.________________________________________aabb._____",
        ".................................-............................................+....",
    ),
    "micro12": (
        [[short("say: acd say: d exclude:.", "ac."), short("say: abc say: a union:.", "abc."), short("x.", "y.")]],
        "say:_acd_say:_d_exclude:.__wrong!_ac.;say:_abc_say:_a_union:.___good_",
        "________________________##._________________________________abc._____",
        "...........................-....................................+....",
    ),
    "micro13.2": (
        [
            [
                short("say: ub and r.", "ubr."),
                Round("say: bqg or c or nc.", "bqg.", OK, "", lambda answer: "bqg" in answer),
                short("x.", "y."),
            ]
        ],
        "say:_ub_and_r.___wrong!_ubr.;say:_bqg_or_c_or_nc.___good_",
        "_____________###._______________________________bqg._____",
        ".................-..................................+....",
    ),
    "micro14": (
        [[short("after k comes what:.", "l."), short("after e comes what:.", "f."), short("x.", "y.")]],
        "after_k_comes_what:._wrong!_l.;after_e_comes_what:._good_",
        "___________________#._____________________________f._____",
        ".....................-..............................+....",
    ),
    "micro15": (
        [[short("say next after: seventy.", "eighty."), short("say next after: ten.", "twenty."), short("x.", "y.")]],
        "say_next_after:_seventy.______wrong!_eighty.;say_next_after:_ten.______good_",
        "_______________________######.__________________________________twenty._____",
        "..............................-........................................+....",
    ),
    "micro19": (
        [[short("say: bcd say: a union:.", "bcda."), short("print: abc print: d joint:.", "abcd."), short("x.", "y.")]],
        "say:_bcd_say:_a_union:.____wrong!_bcda.;print:_abc_print:_d_joint:.____good_",
        "______________________####._______________________________________abcd._____",
        "...........................-...........................................+....",
    ),
    "micro20": (
        [
            [
                short("love is as say - love: nothing love: pastry love: crowd.", "nothing pastry crowd."),
                short("love is as say - love: soften love: steer.", "soften steer."),
                short("x.", "y."),
            ]
        ],
        "love_is_as_say_-_love:_nothing_love:_pastry_love:_crowd.____________________wrong!_nothing_pastry_crowd.;"
        "love_is_as_say_-_love:_soften_love:_steer.____________good_",
        "_______________________________________________________####################._____________________________"
        "_________________________________________soften_steer._____",
        "............................................................................-............................"
        "......................................................+....",
    ),
}


def verify(description, string, answer, praise):
    blame = f"Wrong. The right answer is: {answer}."
    return [Round(f"description: {description}; verify: {string}.", f"{answer}.", praise, blame)]


MINI = {
    "mini0": (
        [verify("K", "KKK", "true", ""), verify("K", "X", "false", "bravo."), verify("K", "K", "true", "")],
        "description:_K;_verify:_KKK._____Wrong._The_right_answer_is:_true._description:_K;_verify:_X._____bravo._d",
        "___________________________false.___________________________________________________________false.________",
        ".........................................................................................................+",
    ),
    "mini1": (
        [verify("M", "MMM", "true", ""), verify("C", "CCCCCCCSC", "false", "correct."), verify("K", "K", "true", "")],
        "description:_M;_verify:_MMM._____Wrong._The_right_answer_is:_true._"
        "description:_C;_verify:_CCCCCCCSC._____correct._d",
        "___________________________false.__________________________________"
        "_________________________________false.__________",
        "." * 115 + "+",
    ),
    "mini2": (
        [
            verify("C or DLS", "CCCDLSCCDLS", "true", ""),
            verify("BH", "BHBHBHBHBH", "true", "good job."),
            verify("K", "K", "true", ""),
        ],
        "description:_C_or_DLS;_verify:_CCCDLSCCDLS._____Wrong._The_right_answer_is:_true._"
        "description:_BH;_verify:_BHBHBHBHBH.____good_job._d",
        "__________________________________________false.__________________________________"
        "___________________________________true.___________",
        "." * 132 + "+",
    ),
    "mini3": (
        [
            verify("UB and anything and R", "XWUBUBVNRSGKYW", "true", ""),
            verify("JRV and anything", "CPJRV", "true", "nice work."),
            verify("K", "K", "true", ""),
        ],
        "description:_UB_and_anything_and_R;_verify:_XWUBUBVNRSGKYW._____Wrong._The_right_answer_is:_true._"
        "description:_JRV_and_anything;_verify:_CPJRV.____nice_work._d",
        "__________________________________________________________false.__________________________________"
        "____________________________________________true.____________",
        "." * 158 + "+",
    ),
    "mini4": (
        [
            verify("anything and EBE and CDU", "CDUCDUEBEQMCDUXAEBEC", "true", ""),
            verify("LKR and anything and not DDN", "QERQERDQERIHQX", "false", "bravo."),
            verify("K", "K", "true", ""),
        ],
        "description:_anything_and_EBE_and_CDU;_verify:_CDUCDUEBEQMCDUXAEBEC._____Wrong._The_right_answer_is:_true._"
        "description:_LKR_and_anything_and_not_DDN;_verify:_QERQERDQERIHQX._____bravo._d",
        "___________________________________________________________________false.__________________________________"
        "_________________________________________________________________false.________",
        "." * 185 + "+",
    ),
    "mini5": (
        [
            verify("BCR", "BCRBCRBCRBCRBCR", "true", ""),
            verify("R", "RRRRRR", "true", "correct."),
            verify("K", "K", "true", ""),
        ],
        "description:_BCR;_verify:_BCRBCRBCRBCRBCR._____Wrong._The_right_answer_is:_true._"
        "description:_R;_verify:_RRRRRR.____correct._d",
        "_________________________________________false.__________________________________"
        "______________________________true.__________",
        "." * 125 + "+",
    ),
}


def replay(name, script, learner):
    """What the teacher says and pays when the learner says exactly this."""
    task = make_task(name)
    task.script = RoundScript(script)
    environment = make_environment(CommaiSettings(), scheduler=ConsecutiveScheduler([task]))
    heard, said, paid = None, [], []
    for symbol in learner:
        spoken, reward = environment.next(heard)
        said.append(spoken)
        paid.append("-.+"[reward + 1])
        heard = " " if symbol == "_" else symbol
    return "".join(said), "".join(paid)


@pytest.mark.parametrize("name", [*MICRO, *MINI])
def test_stream_is_exact(name):
    script, teacher, learner, rewards = (MICRO | MINI)[name]
    said, paid = replay(name, script, learner)
    assert said == teacher.replace("_", " ").replace("random map", "random_map")
    assert paid == rewards

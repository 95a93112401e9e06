"""Configuration files for tests: a description with values to fill in, and a list with one trial."""

CONFIG = """<evaluation>
  <novelty_detection_measurement step="2" measure_in_training="True" measure_in_testing="False" />
  <trials>
    <trial id="0" number_of_executions="1" checkpoint_time_limit="0" checkpoint_interaction_limit="2"
        notify_novelty="False">
      <game_level_set mode="training" time_limit="0" total_interaction_limit="0" attempt_limit_per_level="1"
          allow_level_selection="False">
        <game_levels novelty_level="novelty_level_0" type="type010101" start="0" end="1" />
      </game_level_set>
      <game_level_set mode="test" time_limit="0" total_interaction_limit="0" attempt_limit_per_level="1"
          allow_level_selection="True">
        <game_levels level_path="C:\\birds\\Levels\\novelty_level_1\\type010101\\Levels\\00001_0_1_010101_1_1.xml" />
      </game_level_set>
    </trial>
  </trials>
</evaluation>
"""
META = """<?xml version='1.0' encoding='utf-16'?>
<!-- trials -->
<config_generation>
  <novelty_detection_measurement step='{step}' measure_in_training='true' measure_in_testing='false'/>
  <trials>
    <trial count='{count}' repeats='{repeats}' notify_novelty='{notify}'>
      <checkpoint><limit type='time' value='{cp_time}'/><limit type='interaction' value='{cp_count}'/></checkpoint>
      <training>
        <limits>
          <limit type='time' value='{time}'/><limit type='interaction' value='{interaction}'/>
          <limit type='attempt_per_level' value='2'/><limit type='allow_level_selection' value='{selection}'/>
        </limits>
        <game_level_sets>
          <game_level_set novelty_level='0' novelty_type='1' amount='{amount}'/>
          <game_level_set novelty_level='1' novelty_type='1' amount='3'/>
        </game_level_sets>
      </training>
      <test ordered='{ordered}'><game_level_sets>
        <game_level_set novelty_level='0' novelty_type='1' amount='4' set_appearance_percentage='{share}'
          time='9' interaction='8' attempt_per_level='7' allow_level_selection='true'/>
        <game_level_set novelty_level='1' novelty_type='1' amount='2' set_appearance_percentage='50'/>
      </game_level_sets></test>
    </trial>
  </trials>
</config_generation>
"""
VALUES = {
    **{"step": 3, "count": 2, "repeats": 1, "notify": "false", "cp_time": 0, "cp_count": 10, "time": 100},
    **{"interaction": 25, "selection": "true", "amount": "5", "ordered": "true", "share": 100},
}


def meta(tmp_path, encoding="utf-8", **changes):
    path = tmp_path / "configMeta.xml"
    path.write_bytes(encoded(META.format(**{**VALUES, **changes}), encoding))
    return path


def encoded(text, encoding):
    name, _, mark = encoding.partition(" ")
    return ("\ufeff" if mark else "").encode(name) + text.encode(name)

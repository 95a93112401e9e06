"""The queries by which `reader` reads a run file."""

TRIALS = "SELECT id, content FROM trials ORDER BY rowid"
TRIAL = "SELECT id, content FROM trials WHERE id = (SELECT trial FROM cells WHERE id = ?)"
VERDICTS = "SELECT cell, attempt, number, detected FROM verdicts {only}"
EPISODES = "SELECT * FROM episodes {only} ORDER BY cell, attempt, number"
REPLACED = """
    SELECT cell, number, outcome FROM attempts AS earlier
    WHERE number < (SELECT max(number) FROM attempts WHERE cell = earlier.cell)
      AND coalesce(outcome, '') NOT IN (?, ?, ?)
"""
COUNTS = """
    SELECT (SELECT count(*) FROM cells),
      count(*) FILTER (WHERE is_latest AND coalesce(outcome, 'cancelled') NOT IN (?4, ?3)),
      count(*) FILTER (WHERE NOT is_latest AND outcome IN (?1, ?2)),
      count(*) FILTER (WHERE outcome = ?3)
    FROM (SELECT outcome, number = max(number) OVER (PARTITION BY cell) AS is_latest FROM attempts)
"""
CHUNKS = """
    SELECT cell, attempt, first, count, crc, data FROM chunks
    WHERE cell = ?1 AND attempt = ?2 AND first >= coalesce(
      (SELECT max(first) FROM chunks WHERE cell = ?1 AND attempt = ?2 AND first <= ?3), 0)
    ORDER BY first
"""
ORPHANS = "SELECT cell, attempt FROM {} EXCEPT SELECT cell, number FROM attempts"
PLAYER = "(SELECT fingerprint FROM players WHERE players.cell = id AND attempt = number)"
LATEST_ATTEMPTS = """
    SELECT id, agent, trial, repeat, number, outcome, note,
      (SELECT max(first + count) FROM chunks WHERE chunks.cell = id AND attempt = number), seconds, {player}
    FROM cells LEFT JOIN attempts ON cell = id AND number = (SELECT max(number) FROM attempts WHERE cell = id)
    {only} ORDER BY cells.rowid
"""
PROGRESS = """
    SELECT agent, count(*), count(*) FILTER (WHERE coalesce(outcome, ?2) NOT IN (?1, ?2)),
      count(*) FILTER (WHERE outcome LIKE 'agent_%'), coalesce(sum(played), 0), sum(score) / sum(scored)
    FROM cells
    LEFT JOIN (SELECT cell, max(number) AS number, outcome FROM attempts GROUP BY cell) ON cell = id
    LEFT JOIN (
      SELECT cell AS of_cell, attempt, count(*) AS played, sum(performance) AS score, count(performance) AS scored
      FROM episodes GROUP BY cell, attempt
    ) ON of_cell = id AND attempt = number
    GROUP BY agent ORDER BY min(cells.rowid)
"""
STATUSES = """
    SELECT id, number, outcome, {player}
    FROM (SELECT cell AS id, max(number) AS number, outcome FROM attempts GROUP BY cell)
"""
"""With a maximum, SQLite gives the other columns of the row that has it."""
CELLS_BESIDE = """
    SELECT
      (SELECT id FROM cells WHERE agent = own.agent AND rowid < own.rowid ORDER BY rowid DESC LIMIT 1),
      (SELECT id FROM cells WHERE agent = own.agent AND rowid > own.rowid ORDER BY rowid LIMIT 1)
    FROM cells AS own WHERE id = ?
"""
CELLS_OF_TRIAL = "SELECT id, agent, repeat FROM cells WHERE trial = (SELECT trial FROM cells WHERE id = ?) LIMIT ?"
NEAR_CELLS = (
    "SELECT id FROM cells WHERE id < ? ORDER BY id DESC LIMIT 2",
    "SELECT id FROM cells WHERE id >= ? ORDER BY id LIMIT 2",
)
EPISODE_COUNTS = "SELECT cell, attempt, count(*) FROM episodes GROUP BY cell, attempt"
HELD_CELL = "SELECT id FROM cells WHERE holder IS NOT NULL AND held_until > ? LIMIT 1"

"""Any domain with declared spaces as a Gymnasium environment: `gymnasium.make("openfield.gym:openfield/NAME-v0")`.

The caller's loop drives the rollout, and the record is the same as that of any other run. Importing this package
registers all installed domains; `register_domain` registers others. Start with `environment`; `window` shows pictures
for `render_mode="human"`, and `processes` steps many environments at once.
"""

from openfield.gym.environment import DomainEnv, register_domain, register_installed

__all__ = ["DomainEnv", "register_domain"]

register_installed()

"""Any domain with declared spaces as a Gymnasium environment: `gymnasium.make("openfield.gym:openfield/NAME-v0")`.

The caller's loop drives the rollout, and the record is the same as that of any other run. Importing this package
registers all installed domains; `register_domain` registers others. Start with `environment`. For
`gymnasium.make_vec`, `vector_env` steps many environments in threads, and `process_vector_env` in processes.
"""

from openfield.gym.environment import DomainEnv, register_domain, register_installed

__all__ = ["DomainEnv", "register_domain"]

register_installed()

"""The viewer: a local web application that shows runs while they are played and afterwards.

Start with `app.py`, which says how a page is made and added. `server.py` serves the application, `access.py` lets its
user in, `library.py` finds run files and reads them once, `live.py` notifies browsers of changes, `pages/` has one
module per kind of page. The part needs the extra `view`; `openfield.cli` imports it late.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.view.app import make_app
    from openfield.view.library import Library
    from openfield.view.requirements import check_view, has_view
    from openfield.view.server import ViewServer

__all__ = ["Library", "ViewServer", "check_view", "has_view", "make_app"]

__getattr__, __dir__ = attach(__name__)

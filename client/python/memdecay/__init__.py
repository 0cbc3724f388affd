"""memdecay in pure Python: an engine's side of the protocol, from proto/README.md alone.

What it is: the proof that the protocol can be spoken without our library. Slow and small; engines
use libmemdecay.so. Generated messages (memdecay.v1) come from generate.py and are not committed;
they may stand in this package or anywhere on the path.
Thread: one thread uses a Client; the stream is read on another, behind one lock.
"""

from pkgutil import extend_path

# memdecay.v1 may have been generated into another folder on the path.
__path__ = extend_path(__path__, __name__)

from memdecay.attachment import Credentials, Member  # noqa: E402
from memdecay.client import Client  # noqa: E402
from memdecay.errors import MemdecayError  # noqa: E402
from memdecay.identity import Group, Layout, Rope, namespace, page_key  # noqa: E402
from memdecay.session import Page, Session  # noqa: E402

__all__ = [
    "Client",
    "Credentials",
    "Group",
    "Layout",
    "Member",
    "MemdecayError",
    "Page",
    "Rope",
    "Session",
    "namespace",
    "page_key",
]

"""Dropboxes: settings of sources and sinks of messages in folders, and how they are made and tested."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.connectors.base import NotConnectedError
from engine.connectors.dropbox.settings import ADDRESSES, DropboxConfig, DropboxSinkConfig, DropboxSourceConfig
from engine.connectors.jms import check_subscription
from engine.connectors.system import Connector
from routes.systems import SourceConfig

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from routes.keys.settings import Settings

__all__ = ["SYSTEM", "DropboxConnector"]

_DESTINATION = re.compile(rf"(?=queue:|topic:)(?:{ADDRESSES.pattern})")
_URL = re.compile(r"dropbox://(/[^\x00-\x1f\x7f]*)")


class DropboxConnector(Connector[DropboxConfig, DropboxSourceConfig, DropboxSinkConfig]):
    """Folders of DropboxMQ."""

    name = "dropbox"
    connection = DropboxConfig
    source = DropboxSourceConfig
    sink = DropboxSinkConfig
    source_class = "source.DropboxSource"
    sink_class = "sink.DropboxSink"
    depth_class = "depth.DropboxDepth"
    addresses = ADDRESSES
    place = ("folder", "root")
    in_folders = True
    has_login = False
    not_sent = Connector.not_sent | {"JMSMessageID", "JMSTimestamp", "JMSXUserID"}
    remedy = "mount its disk and give the bridge's user the rights, or correct {key}.root"
    url_form = "dropbox:///PATH, the folder of the dropboxes"

    def check_connection(self, endpoint: SystemEndpoint[DropboxConfig], client_id: str) -> str:
        """See `Connector`: checks that the folders of a source can be read and written."""
        broker = endpoint.settings
        from engine.connectors.dropbox.box import examine, locate
        from engine.connectors.dropbox.folder import open_root, translated_errors

        root = endpoint.root
        if broker.root is None and not root.exists():
            return f"{root} is not there yet; the bridge makes it"
        with open_root(str(root)) as opened:
            for destination in broker.destinations if isinstance(broker, SourceConfig) else ():
                box = locate(root, destination)
                there = next(each for each in (Path(box.path), *Path(box.path).parents) if each.exists())
                if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
                    raise NotConnectedError(f"the bridge may not read and write {there}; give its user the rights")
                with translated_errors():
                    examine(opened, box)
        return f"{root} can be read and written"

    def check(self, settings: Settings, section: str, name: str) -> None:
        """Checks that a root is a folder, and that destinations have names that folders can have.

        A root may be missing for now, like a disk that is not mounted.
        """
        root: Path | None = settings.get(f"{section}.NAME.root", name)
        if root is not None and settings.has_file(root):
            settings.fault(f"{section}.NAME.root", name, f"'{root}' is a file", "name the folder of the dropboxes")
        if section == "source":
            check_subscription(settings, name)
        entry = settings.entry("source.NAME.destinations", name) if section == "source" else None
        for destination in (entry and settings.get("source.NAME.destinations", name)) or ():
            if entry is not None and not _DESTINATION.fullmatch(destination):
                message = f"'{destination}' is not a dropbox"
                hint = "as in queue:orders or topic:prices.eu; a name holds no '/' and begins with no '.'"
                settings.faults.append(entry.fault(message, hint, max(entry.value.find(destination), 0)))

    def at(self, url: str) -> dict[str, Any] | None:
        """See `Connector`."""
        match = _URL.fullmatch(url)
        return {"root": Path(match[1])} if match else None

    def keeps(self, address: str) -> bool:
        """See `Connector`."""
        return not address.startswith("topic")


SYSTEM = DropboxConnector()

"""Checks of the folders that a bridge writes to and the files that it reads: there, and with the right permissions."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from engine.claims.section import ClaimCheckConfig
from engine.doctor.checks import Finding, failed, ok, warning
from engine.kafka.security import SECRET_FILES
from engine.telemetry.http_section import HttpConfig
from routes.keys.secrets import LONG_SECRET, Secret, has_reference, is_secret_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from routes.config.snapshot import Snapshot
    from routes.model import Config

__all__ = [
    "check_bridge_secret",
    "check_file",
    "check_files",
    "check_folder",
    "check_folders",
    "check_hard_links",
    "check_privacy",
    "check_secrets",
    "existing",
    "folders_of",
]

_ALL = os.R_OK | os.W_OK | os.X_OK
_HARD_LINKS = Path("/proc/sys/fs/protected_hardlinks")
_OTHER_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.truststore.location")


def folders_of(config: Config) -> Mapping[str, Path]:
    """Returns the folders on this machine that a bridge writes to, by the setting that names each."""
    places = {
        "embedded.data": config.embedded.data,
        "router.checkpoint": config.router.checkpoint,
        "claim-check.folder": config.section(ClaimCheckConfig).folder,
    }
    return {setting: place for setting, place in places.items() if isinstance(place, Path)}


def check_folders(folders: Mapping[str, Path]) -> Iterator[Finding]:
    """Checks the folders of `folders_of`, and whether other users can read their files."""
    for setting, folder in folders.items():
        yield check_folder(setting, folder)
        yield from check_privacy(setting, folder)


def check_privacy(setting: str, folder: Path) -> Iterator[Finding]:
    """Yields a warning if every user of this machine can enter a folder.

    The bridge leaves the permissions of an existing folder as they are.
    """
    others = (folder, *folder.absolute().parents)
    if folder.is_dir() and all(each.stat().st_mode & stat.S_IXOTH for each in others):
        what = f"{folder} holds messages and can be entered by every user of this machine"
        yield warning(setting, what, f"chmod go-rwx {shlex.quote(str(folder))}")


def check_hard_links(switch: Path = _HARD_LINKS) -> Finding:
    """Checks that Linux does not let users make hard links to files of others, which they could put into a dropbox."""
    name = "hard links"
    if switch.exists() and switch.read_text().strip() == "0":
        what = "every user may make hard links to files of others, and bring their content into a dropbox"
        return warning(name, what, "sysctl -w fs.protected_hardlinks=1")
    return ok(name, "a user may bring only files of their own into a dropbox")


def check_folder(setting: str, folder: Path) -> Finding:
    """Checks that this user can make a folder, or work in it and its subfolders."""
    remedy = f"give the bridge's user (now {_user()}) the rights, or set {setting} to another folder"
    nearest = existing(folder)
    if not nearest.is_dir():
        return failed(setting, f"{nearest} is not a folder", remedy)
    if not os.access(nearest, _ALL):
        return failed(setting, f"{nearest} cannot be written", remedy)
    if nearest != folder:
        return ok(setting, f"{folder} is not there yet; the bridge makes it")
    # A subfolder of another user, such as root's from a trial run, stops the bridge as well.
    if closed := next((each for each in sorted(folder.iterdir()) if each.is_dir() and not os.access(each, _ALL)), None):
        return failed(setting, f"{closed} belongs to {_owner(closed)} and cannot be written", remedy)
    return ok(setting, f"{folder} can be written")


def check_files(config: Config, snapshot: Snapshot) -> Iterator[Finding]:
    """Checks the files with keys, certificates and secrets."""
    files = _files(config, snapshot)
    wrong = [finding for path, secret in files.items() for finding in check_file(path, secret=secret)]
    yield from wrong
    if files and not wrong:
        number = f"{len(files)} files" if len(files) > 1 else "1 file"
        yield ok("files", f"{number} can be read, and none with a secret in it by every user of this machine")


def check_file(path: Path, *, secret: bool) -> Iterator[Finding]:
    """Yields a finding if a file is missing, cannot be read, or is secret and readable by every user."""
    name = f"file {path.name}"
    if not path.exists():
        yield failed(name, f"{path} is not there", "put it there, or correct the properties file")
    elif not os.access(path, os.R_OK):
        yield failed(name, f"{path} cannot be read", f"give the bridge's user (now {_user()}) the right to read it")
    elif secret and path.stat().st_mode & stat.S_IROTH:
        what = f"{path} has a secret in it and can be read by every user of this machine"
        yield warning(name, what, f"chmod o-rwx {shlex.quote(str(path))}")


def check_secrets(snapshot: Snapshot) -> Iterator[Finding]:
    """Yields a warning for secrets too short to be masked wherever they appear."""
    short = [
        setting.entry.key
        for setting in snapshot.settings().by_key.values()
        if (setting.row.masked or is_secret_key(setting.entry.key))
        and isinstance(setting.value, Secret)
        and 0 < len(setting.value) < LONG_SECRET
    ]
    if short:
        what = f"{', '.join(short)}: fewer than {LONG_SECRET} characters, not masked within words of logs and pages"
        yield warning("secrets", what, "choose longer ones")


def check_bridge_secret(secret: str | None, http: HttpConfig, checkpoint: Path | str) -> Iterator[Finding]:
    """Yields a warning if hosts of the bridge cannot tell each other's records from those of others."""
    if http.peers and secret is None and isinstance(checkpoint, Path):
        what = "without bridge.secret a host that takes over cannot tell the bridge's records from those of others"
        yield warning("secrets", what, "set the same bridge.secret on all hosts, at those that stand by first")


def existing(path: Path) -> Path:
    """Returns the path, or its nearest ancestor that exists."""
    return next(each for each in (path, *path.absolute().parents) if os.path.lexists(each))


def _files(config: Config, snapshot: Snapshot) -> dict[Path, bool]:
    """Returns each file, with whether it contains a secret."""
    base = config.path.absolute().parent
    others = [
        config.section(HttpConfig).certificate,
        *(path for broker in config.brokers for path in (*broker.authorities, *broker.certificates)),
    ]
    secret = [config.section(HttpConfig).key, *(path for broker in config.brokers for path in broker.secret_files)]
    for table in (config.kafka.common, config.kafka.producer, config.kafka.consumer):
        others += [base / table[name] for name in _OTHER_FILES if name in table]
        secret += [base / table[name] for name in SECRET_FILES if name in table]
    secret += [base / name for name in snapshot.files]
    if _has_secrets(snapshot):
        secret.append(config.path)
    # Certificate and key may be in one file, which is secret then.
    return dict.fromkeys(filter(None, others), False) | dict.fromkeys(filter(None, secret), True)


def _has_secrets(snapshot: Snapshot) -> bool:
    """True if a secret stands in the properties file itself, not in a file or variable that it refers to."""
    return any(
        (setting.row.masked or is_secret_key(setting.entry.key))
        and setting.entry.value
        and not has_reference(setting.entry.value)
        for setting in snapshot.settings().by_key.values()
    )


def _user() -> str:
    return _name(os.geteuid())


def _owner(path: Path) -> str:
    return _name(path.stat().st_uid)


def _name(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"

"""The stable codes of problems that can reach an HTTP client, read from the sources: the reason of each
Status that is made where the daemon decides, and the codes' own names."""
import glob
import os
import re

MAKERS = ("InvalidArgument", "NotFound", "AlreadyExists", "FailedPrecondition", "ResourceExhausted",
          "Unavailable", "Unknown", "DataLoss", "PermissionDenied", "DeadlineExceeded", "Internal",
          "OutOfRange")
# A job's state, where that is what refuses a change (RefuseState).
STATES = ("dead", "leased", "ready")
# What the client's half of the room says, or TLS, never comes from a daemon as a problem.
CLIENT_ONLY = ("client.cc", "connection.cc", "host_lookup.cc", "http_reader.cc", "server_address.cc", "tls.cc")


def arguments(text, begin):
    """The top-level arguments of the call whose '(' is at begin."""
    depth, quoted, start, parts = 0, False, begin + 1, []
    i = begin
    while i < len(text):
        c = text[i]
        if quoted:
            if c == "\\":
                i += 1
            elif c == '"':
                quoted = False
        elif c == '"':
            quoted = True
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                parts.append(text[start:i].strip())
                return parts
        elif c == "," and depth == 1:
            parts.append(text[start:i].strip())
            start = i + 1
        i += 1
    return parts


def sources(root):
    for folder in ("base", "daemon/engine", "daemon/http", "protocol"):
        for path in sorted(glob.glob(os.path.join(root, folder, "*.cc")) + glob.glob(os.path.join(root, folder, "*.h"))):
            if not (folder == "protocol" and os.path.basename(path) in CLIENT_ONLY):
                yield path
    yield from sorted(glob.glob(os.path.join(root, "daemon", "server*.cc")))
    yield os.path.join(root, "daemon", "front_ends.cc")
    # Why the disk takes no new jobs.
    yield os.path.join(root, "daemon", "disk_reserve.cc")
    # What a backup or verify could not do.
    for name in ("live_copy.cc", "posix_error.cc", "rocks_backup.cc", "rocks_status.cc", "same_directory.cc", "verify.cc"):
        yield os.path.join(root, "storage", name)


def problem_codes(root):
    codes = set(STATES)
    for path in sources(root):
        with open(path, encoding="utf-8") as source:
            text = source.read()
        for call in re.finditer(r"\b(?:" + "|".join(MAKERS) + r")\(", text):
            parts = arguments(text, call.end() - 1)
            if len(parts) >= 2 and (slug := re.fullmatch(r'"([a-z][a-z0-9_]*)"', parts[-1])):
                codes.add(slug.group(1))
        if path.endswith(os.path.join("protocol", "problem.cc")):
            codes.update(re.findall(r'\{"([a-z_0-9]+)", StatusCode::', text[text.index("kCodes"):]))
    codes.discard("data_dir_in_use")  # of an open, before there is a client
    codes.discard("memory_full")  # a reason of /readyz alone
    return codes


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    print("\n".join(sorted(problem_codes(os.path.dirname(os.path.dirname(here))))))

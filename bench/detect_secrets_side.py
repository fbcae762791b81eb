"""Prints what detect-secrets finds in the files of a folder, as JSON: `found`, pairs of a file and a secret, and `late`, the files given up.

Its command makes a process for each processor and reports hashes only. Here its plugins and filters, as they are by default and without
verification over the network, run in one process. A file that takes longer than SECONDS of processor time is given up.
"""

import json
import signal
import sys
from pathlib import Path

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

SECONDS = 20


def stop(_signal, _frame):
    raise TimeoutError


signal.signal(signal.SIGPROF, stop)
found, late = [], []
with default_settings():
    for file in sorted(Path(sys.argv[1]).iterdir()):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            secrets = [secret.secret_value for secret in scan_file(str(file))]
            found += [(file.name, secret) for secret in secrets]
        except TimeoutError:
            late.append(file.name)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
json.dump({'found': found, 'late': late}, sys.stdout)

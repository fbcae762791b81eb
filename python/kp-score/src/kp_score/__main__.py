"""``python -m kp_score`` is the command."""

import os
import subprocess
import sys

from kp_score import KpScoreError, program


def main() -> int:
    try:
        command = [program(), *sys.argv[1:]]
    except KpScoreError as error:
        print(f"kp-score: {error}", file=sys.stderr)
        return error.code
    if os.name != "nt":
        os.execv(command[0], command)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
